// The recordings on the server: find, open, name, tag, pin, merge, download and delete.
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { download } from '../../api/client';
import type { Session, SessionList } from '../../api/types';
import { changeSession, mergeSessions } from '../../store/actions';
import {
  currentId,
  foundSessions,
  searchSessions,
  SESSIONS_A_PAGE,
  sessionSearch,
  showSessionsFrom,
} from '../../store/session';
import { dialog } from '../../store/ui';
import { openSession } from '../../store/view';
import { bytes, clock, count, duration, percent } from '../../text/format';
import { otherTools } from '../../text/formats';
import { lostText } from '../../text/loss';
import { keepText, pageText, sessionTitle } from '../../text/sessions';
import { Button } from '../widgets/Button';
import { Icon } from '../widgets/Icon';
import { ImportButton } from './ImportFile';
import { LineEdit } from '../widgets/LineEdit';
import { Failure, Message } from '../widgets/Message';
import { Popover } from '../widgets/Popover';
import { SearchBox } from '../widgets/SearchBox';
import { SessionTags } from './SessionTags';
import { StateBadge } from './StateBadge';

// Sessions to merge, in the order in which they were chosen.
const chosen = signal<readonly string[]>([]);
const MOST_MERGED = 32;

function choose(id: string, on: boolean): void {
  const others = chosen.value.filter((one) => one !== id);
  chosen.value = on ? [...others, id] : others;
}

function Merge() {
  const sessions = chosen.value;
  if (sessions.length === 0) return null;
  const able = sessions.length >= 2 && sessions.length <= MOST_MERGED;
  return (
    <>
      <Button
        icon="merge"
        disabled={!able}
        title={
          able
            ? 'A new session with all of their samples, each at its own time'
            : `2 to ${MOST_MERGED} sessions become one`
        }
        onClick={() => void mergeSessions(sessions).then((done) => done && (chosen.value = []))}
      >
        Merge {sessions.length}
      </Button>
      <Button title="Choose none" onClick={() => (chosen.value = [])}>
        None
      </Button>
    </>
  );
}

function Exports({ session }: { session: Session }) {
  return (
    <Popover
      class="button button-plain button-icon"
      align="end"
      name={`Download ${sessionTitle(session)}`}
      title={`Download ${sessionTitle(session)}`}
      label={<Icon name="download" />}
    >
      {(close) => (
        <ul class="menu" onClick={close}>
          <li>
            <a href={download.svg({ session: session.id })} download>
              Flame graph <span class="faint">SVG</span>
            </a>
          </li>
          <li>
            <a href={download.session(session.id, 'collapsed')} download>
              Collapsed stacks <span class="faint">text</span>
            </a>
          </li>
          <li>
            <a href={download.session(session.id, 'json')} download>
              Whole session <span class="faint">JSON</span>
            </a>
          </li>
          {otherTools.map(([format, name, what]) => (
            <li key={format}>
              <a href={download.session(session.id, format)} download>
                {name} <span class="faint">{what}</span>
              </a>
            </li>
          ))}
          <li>
            <a href={download.page(session.id)} download>
              Page without a server <span class="faint">HTML</span>
            </a>
          </li>
          <li>
            <a href={download.archive(session.id, true)} download>
              Session for another server <span class="faint">with its names and sources</span>
            </a>
          </li>
        </ul>
      )}
    </Popover>
  );
}

function Name({ session }: { session: Session }) {
  const [editing, setEditing] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const title = sessionTitle(session);
  return (
    <div class="session-name">
      {editing ? (
        <LineEdit
          value={session.name}
          label={`Name of ${title}`}
          placeholder={session.target || session.id}
          maxLength={256}
          onTake={(name) => changeSession(session, { name })}
          onEnd={(byKey) => {
            setEditing(false);
            if (byKey) requestAnimationFrame(() => button.current?.focus());
          }}
        />
      ) : (
        <button type="button" class="link ellipsis" title={session.id} onClick={() => openSession(session.id)}>
          {title}
        </button>
      )}
      <button
        type="button"
        ref={button}
        class="rename"
        hidden={editing}
        title="Rename"
        aria-label={`Rename ${title}`}
        onClick={() => setEditing(true)}
      >
        <Icon name="pencil" />
      </button>
    </div>
  );
}

function Row({ session }: { session: Session }) {
  const shown = session.id === currentId.value;
  const whole = session.samples + session.lost;
  const title = sessionTitle(session);
  return (
    <tr class={shown ? 'row-selected' : ''} data-session={session.id}>
      <td>
        <label class="session-state">
          <input
            type="checkbox"
            aria-label={`Merge ${title}`}
            title={
              session.state === 'ended'
                ? 'Choose it, to make one session of several'
                : 'A session can be merged when it has ended'
            }
            checked={chosen.value.includes(session.id)}
            disabled={session.state !== 'ended'}
            onChange={(event) => choose(session.id, event.currentTarget.checked)}
          />
          <StateBadge state={session.state} />
        </label>
      </td>
      <td class="session-cell">
        <Name session={session} />
        <div class="session-about">
          <span class="faint small">
            {[session.name && session.target, session.host, session.arch, session.agent].filter(Boolean).join(' · ')}
          </span>
          <SessionTags session={session} />
        </div>
      </td>
      <td>{clock(session.started)}</td>
      <td class="cell-number">{duration(session.duration_ms)}</td>
      <td class="cell-number">{count(session.samples)}</td>
      <td class={`cell-number ${session.lost > 0 || session.lost_at_least ? 'is-lossy' : 'faint'}`}>
        {lostText(session.lost, session.lost_at_least)}
        {session.lost > 0 && !session.lost_at_least && ` (${percent(session.lost / whole, 2)})`}
      </td>
      <td class="faint">{session.events.map((event) => event.name).join(', ')}</td>
      <td class="cell-number">{bytes(session.size_bytes)}</td>
      <td>
        <div class="actions">
          <Button
            icon="play"
            title={session.state === 'ended' ? `Replay ${title}` : `Watch ${title}`}
            onClick={() => openSession(session.id)}
          >
            {session.state === 'ended' ? 'Replay' : 'Watch'}
          </Button>
          <Button
            icon="pin"
            pressed={session.keep}
            title={session.keep ? `Pinned: no rule deletes ${title}` : `Pin ${title}: no rule deletes it then`}
            onClick={() => void changeSession(session, { keep: !session.keep })}
          />
          <Exports session={session} />
          <Button
            icon="trash"
            title={session.state === 'ended' ? `Delete ${title}` : 'A session can be deleted when it has ended'}
            disabled={session.state !== 'ended'}
            onClick={() => (dialog.value = { kind: 'delete', session })}
          />
        </div>
      </td>
    </tr>
  );
}

function Pages({ list }: { list: SessionList }) {
  const { offset, total, sessions } = list;
  if (total <= SESSIONS_A_PAGE && offset === 0) return null;
  return (
    <nav class="pages" aria-label="Pages of sessions">
      <Button
        icon="left"
        title="Newer sessions"
        disabled={offset === 0}
        onClick={() => showSessionsFrom(offset - SESSIONS_A_PAGE)}
      />
      <span class="faint">{pageText(offset, sessions.length, total)}</span>
      <Button
        icon="right"
        title="Older sessions"
        disabled={offset + sessions.length >= total}
        onClick={() => showSessionsFrom(offset + SESSIONS_A_PAGE)}
      />
    </nav>
  );
}

const columns: readonly (readonly [name: string, number?: 'number'])[] = [
  ['State'],
  ['Session'],
  ['Started'],
  ['Duration', 'number'],
  ['Samples', 'number'],
  ['Lost', 'number'],
  ['Events'],
  ['Size', 'number'],
];

export function SessionsView() {
  const list = foundSessions.data.value;
  const error = foundSessions.error.value;
  // Deleting sessions can leave the last page empty.
  useEffect(() => {
    if (list && list.sessions.length === 0 && list.offset > 0)
      showSessionsFrom(Math.floor(Math.max(0, list.total - 1) / SESSIONS_A_PAGE) * SESSIONS_A_PAGE);
  }, [list]);
  if (!list) return error ? <Failure error={error} /> : <Message title="Loading the sessions" busy />;
  const searching = sessionSearch.value.trim() !== '';
  const kept = keepText(list.keep);
  return (
    <section class="view">
      <div class="toolbar sessions-toolbar">
        <SearchBox
          value={sessionSearch.value}
          placeholder="Find by name, host, tag or event"
          onInput={searchSessions}
        />
        <span class="faint" role="status">
          {count(list.total)} {list.total === 1 ? 'session' : 'sessions'}, {bytes(list.size_bytes)} on disk
        </span>
        <span
          class="faint ellipsis"
          id="keep-rules"
          title={
            kept
              ? 'Beyond these limits the oldest ended sessions are deleted, but not pinned ones and those in use'
              : 'The server keeps all sessions; it deletes old ones when it is started with --keep-count, --keep-days or --keep-size'
          }
        >
          {kept || 'nothing is deleted by itself'}
        </span>
        <Pages list={list} />
        <Merge />
        <ImportButton />
      </div>
      {list.unreadable.length > 0 && (
        <section class="notices" aria-label="Unreadable session files">
          {list.unreadable.map((sentence) => (
            <div class="notice" key={sentence}>
              <Icon name="warning" />
              <span class="notice-text">{sentence}</span>
            </div>
          ))}
        </section>
      )}
      {list.sessions.length === 0 ? (
        <Message title={searching ? 'No session matches' : 'No sessions yet'}>
          {!searching && (
            <p>
              Every recording is kept on the server and listed here; so are files of other tools that are imported, or
              dropped on the page.
            </p>
          )}
        </Message>
      ) : (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Sessions">
          <table class="sessions">
            <thead>
              <tr>
                {columns.map(([name, kind]) => (
                  <th key={name} class={kind ? 'cell-number' : ''}>
                    {name}
                  </th>
                ))}
                <td />
              </tr>
            </thead>
            <tbody>
              {list.sessions.map((session) => (
                <Row key={session.id} session={session} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
