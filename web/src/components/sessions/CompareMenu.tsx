// Shows the baseline of the view, and offers others.
import { isSaved } from '../../store/saved';
import {
  baselineText,
  canCompareBefore,
  compareBefore,
  compareWithSession,
  comparing,
  dropBaseline,
  exchange,
  holdShown,
  snapshot,
} from '../../store/compare';
import { currentId, isLive, sessions } from '../../store/session';
import { isFiltered } from '../../store/view';
import { clock } from '../../text/format';
import { sessionTitle } from '../../text/sessions';
import { Icon } from '../widgets/Icon';
import { Popover } from '../widgets/Popover';
import { StateBadge } from './StateBadge';

const RECENT = 8;

function Item({
  id,
  text,
  hint,
  off,
  run,
}: {
  id: string;
  text: string;
  hint: string;
  off?: boolean;
  run: () => void;
}) {
  return (
    <li>
      <button type="button" data-compare={id} disabled={off} onClick={run}>
        <span>{text}</span>
        <span class="faint">{hint}</span>
      </button>
    </li>
  );
}

export function CompareMenu() {
  // A saved page has only one view.
  if (!currentId.value || isSaved) return null;
  const others = sessions.value.filter((entry) => entry.id !== currentId.value).slice(0, RECENT);
  const ended = (run: () => void, close: () => void) => () => {
    run();
    close();
  };
  return (
    <>
      <Popover
        id="compare-menu"
        class={comparing.value ? 'chip chip-compared' : 'button button-plain'}
        panelClass="compare-panel"
        title="Compare with another session, time or thread"
        label={
          <>
            <Icon name="compare" />
            <span class="ellipsis">{comparing.value ? `against ${baselineText.value}` : 'Compare'}</span>
          </>
        }
      >
        {(close) => (
          <ul class="menu">
            {isLive.value && (
              <Item
                id="snapshot"
                text="Everything until now"
                hint="new samples against all samples until now"
                run={ended(snapshot, close)}
              />
            )}
            <Item
              id="before"
              text="The time before"
              hint={
                canCompareBefore.value
                  ? 'the chosen range against an equal range before it'
                  : 'choose a range on the time axis first'
              }
              off={!canCompareBefore.value}
              run={ended(compareBefore, close)}
            />
            <Item
              id="hold"
              text={isFiltered.value ? 'What is chosen' : 'This session'}
              hint="then choose what to compare with it"
              run={ended(holdShown, close)}
            />
            {others.length > 0 && <li class="menu-title">Against a session</li>}
            {others.map((entry) => (
              <li key={entry.id}>
                <button
                  type="button"
                  data-compare={entry.id}
                  onClick={ended(() => compareWithSession(entry.id), close)}
                >
                  <StateBadge state={entry.state} />
                  <span class="ellipsis">{sessionTitle(entry)}</span>
                  <span class="faint">{clock(entry.started)}</span>
                </button>
              </li>
            ))}
            {comparing.value && (
              <>
                <li class="menu-title" />
                <Item id="exchange" text="Swap the two" hint="" run={ended(exchange, close)} />
                <Item id="drop" text="Stop comparing" hint="" run={ended(dropBaseline, close)} />
              </>
            )}
          </ul>
        )}
      </Popover>
      {comparing.value && (
        <button
          type="button"
          class="chip-drop"
          aria-label="Stop comparing"
          title="Stop comparing"
          onClick={dropBaseline}
        >
          <Icon name="close" />
        </button>
      )}
    </>
  );
}
