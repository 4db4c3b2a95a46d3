// The menu of sessions: the shown one, and the others that matter now.
import { isSaved } from '../../store/saved';
import { currentId, liveSessions, session, sessions } from '../../store/session';
import { openSession, openTab } from '../../store/view';
import { clock } from '../../text/format';
import { sessionTitle } from '../../text/sessions';
import { Icon } from '../widgets/Icon';
import { Popover } from '../widgets/Popover';
import { StateBadge } from './StateBadge';

const RECENT = 8;

export function SessionMenu() {
  const shown = session.value;
  const live = liveSessions.value;
  const recent = sessions.value.filter((entry) => entry.state === 'ended').slice(0, RECENT);
  if (!shown && sessions.value.length === 0) return null;
  return (
    <Popover
      id="session-menu"
      class="picker"
      panelClass="session-panel"
      title={shown ? `Session ${shown.id}` : 'Choose a session'}
      label={
        <>
          {shown ? <StateBadge state={shown.state} /> : <Icon name="record" />}
          <strong class="ellipsis">{shown ? sessionTitle(shown) : 'Choose a session'}</strong>
          {shown?.host && <span class="faint ellipsis wide-only">{shown.host}</span>}
          <Icon name="down" />
        </>
      }
    >
      {(close) => (
        <ul class="menu">
          {[...live, ...recent].map((entry) => (
            <li key={entry.id}>
              <button
                type="button"
                aria-current={entry.id === currentId.value ? 'true' : undefined}
                onClick={() => {
                  openSession(entry.id);
                  close();
                }}
              >
                <StateBadge state={entry.state} />
                <span class="ellipsis">{sessionTitle(entry)}</span>
                <span class="faint">{clock(entry.started)}</span>
              </button>
            </li>
          ))}
          {!isSaved && (
            <li class="menu-last">
              <button
                type="button"
                onClick={() => {
                  openTab('sessions');
                  close();
                }}
              >
                All sessions
              </button>
            </li>
          )}
        </ul>
      )}
    </Popover>
  );
}
