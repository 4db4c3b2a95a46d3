// The recordings on the server: open, download, delete.
import { download } from '../api/client';
import type { Session } from '../api/types';
import { currentId, foundSessions, sessionList, sessionSearch } from '../store/session';
import { dialog } from '../store/ui';
import { openSession } from '../store/view';
import { bytes, clock, count, duration, percent } from '../text/format';
import { otherTools } from '../text/formats';
import { Button } from './Button';
import { Icon } from './Icon';
import { ImportButton } from './ImportFile';
import { Failure, Message } from './Message';
import { Popover } from './Popover';
import { SearchBox } from './SearchBox';
import { StateBadge } from './StateBadge';

function Exports({ session }: { session: Session }) {
  return (
    <Popover class="button button-plain button-icon" align="end" title={`Download ${session.target}`} label={<Icon name="download" />}>
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

function Row({ session }: { session: Session }) {
  const shown = session.id === currentId.value;
  const whole = session.samples + session.lost;
  return (
    <tr class={shown ? 'row-selected' : ''} data-session={session.id} onDblClick={() => openSession(session.id)}>
      <td>
        <StateBadge state={session.state} />
      </td>
      <td>
        <button type="button" class="link" title={session.id} onClick={() => openSession(session.id)}>
          {session.target || session.id}
        </button>
        <div class="faint small">
          {session.host}
          {session.arch && ` · ${session.arch}`}
          {session.agent && ` · ${session.agent}`}
        </div>
      </td>
      <td>{clock(session.started)}</td>
      <td class="cell-number">{duration(session.duration_ms)}</td>
      <td class="cell-number">{count(session.samples)}</td>
      <td class={`cell-number ${session.lost > 0 ? 'is-lossy' : 'faint'}`}>
        {session.lost > 0 ? `${count(session.lost)} (${percent(session.lost / whole, 2)})` : '0'}
      </td>
      <td class="faint">{session.events.map((event) => event.name).join(', ')}</td>
      <td class="cell-number">{bytes(session.size_bytes)}</td>
      <td>
        <div class="actions">
        <Button icon="play" title={session.state === 'ended' ? 'Replay this session' : 'Watch this session'} onClick={() => openSession(session.id)}>
          {session.state === 'ended' ? 'Replay' : 'Watch'}
        </Button>
        <Exports session={session} />
        <Button
          icon="trash"
          title={session.state === 'ended' ? `Delete ${session.target}` : 'A session can be deleted when it has ended'}
          disabled={session.state !== 'ended'}
          onClick={() => (dialog.value = { kind: 'delete', session })}
        />
        </div>
      </td>
    </tr>
  );
}

export function SessionsView() {
  const error = sessionList.error.value;
  if (!sessionList.data.value) return error ? <Failure error={error} /> : <Message title="Loading the sessions" busy />;
  const searching = sessionSearch.value.trim() !== '';
  const answer = (searching ? foundSessions.data.value : null) ?? sessionList.data.value;
  const list = answer.sessions;
  const size = list.reduce((sum, s) => sum + s.size_bytes, 0);
  return (
    <section class="view">
      <div class="toolbar">
        <SearchBox value={sessionSearch.value} placeholder="Find a session by target or host" onInput={(value) => (sessionSearch.value = value)} />
        <span class="faint" role="status">
          {list.length < answer.total ? `the newest ${count(list.length)} of ${count(answer.total)} sessions` : `${count(list.length)} ${list.length === 1 ? 'session' : 'sessions'}`},{' '}
          {bytes(size)} on disk
        </span>
        <ImportButton />
      </div>
      {list.length === 0 ? (
        <Message title={searching ? 'No session matches' : 'No sessions yet'}>
          {!searching && <p>Every recording is kept on the server and listed here; so are files of other tools that are imported, or dropped on the page.</p>}
        </Message>
      ) : (
        <div class="table-scroll">
          <table class="sessions">
            <thead>
              <tr>
                <th>State</th>
                <th>Target</th>
                <th>Started</th>
                <th class="cell-number">Duration</th>
                <th class="cell-number">Samples</th>
                <th class="cell-number">Lost</th>
                <th>Events</th>
                <th class="cell-number">Size</th>
                <th />
              </tr>
            </thead>
            <tbody>
              {list.map((session) => (
                <Row key={session.id} session={session} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
