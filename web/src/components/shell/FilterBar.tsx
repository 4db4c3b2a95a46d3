// What the view shows of the session: the event and the active filters, each with a button to remove it.
import type { ComponentChildren } from 'preact';
import { keepWindow } from '../../store/actions';
import { threads } from '../../store/data';
import { isSaved } from '../../store/saved';
import { event, session } from '../../store/session';
import { places } from '../../model/view_state';
import { openTab, setView, view } from '../../store/view';
import { duration } from '../../text/format';
import { shortId } from '../../text/threads';
import { Button } from '../widgets/Button';
import { CompareMenu } from '../sessions/CompareMenu';
import { Icon } from '../widgets/Icon';

function Chip({ label, onClear, onClick }: { label: ComponentChildren; onClear: () => void; onClick?: () => void }) {
  return (
    <span class="chip">
      {onClick ? (
        <button type="button" onClick={onClick}>
          {label}
        </button>
      ) : (
        <span>{label}</span>
      )}
      <button
        type="button"
        class="chip-clear"
        aria-label="Remove this filter"
        title="Remove this filter"
        onClick={onClear}
      >
        <Icon name="close" />
      </button>
    </span>
  );
}

export function FilterBar() {
  const v = view.value;
  const events = session.value?.events ?? [];
  const pids = session.value?.pids ?? [];
  const known = threads.data.value?.threads ?? [];
  const names = v.tids.map((tid) => known.find((t) => t.tid === tid)?.comm ?? String(tid));
  return (
    <div class="filters">
      {events.length > 0 && (
        <label class="select" title="What is measured">
          <span class="visually-hidden">Event</span>
          <select
            id="event-select"
            value={event.value?.name ?? ''}
            onChange={(change) => setView({ event: change.currentTarget.value })}
          >
            {events.map((entry) => (
              <option key={entry.name} value={entry.name}>
                {entry.name}
                {entry.frequency_hz > 0 ? ` @ ${entry.frequency_hz} Hz` : ''}
              </option>
            ))}
          </select>
          <Icon name="down" />
        </label>
      )}
      {pids.length > 1 && v.pids.length === 0 && (
        <label class="select" title="Show one process">
          <span class="visually-hidden">Process</span>
          <select value="" onChange={(change) => setView({ pids: [Number(change.currentTarget.value)] })}>
            <option value="">all {pids.length} processes</option>
            {pids.map((pid) => (
              <option key={pid} value={pid}>
                pid {pid}
              </option>
            ))}
          </select>
          <Icon name="down" />
        </label>
      )}
      {v.pids.length > 0 && <Chip label={`pid ${v.pids.join(', ')}`} onClear={() => setView({ pids: [] })} />}
      {places.map(
        (place) =>
          v[place] && (
            <Chip key={place} label={`${place} ${shortId(v[place])}`} onClear={() => setView({ [place]: '' })} />
          ),
      )}
      {v.tids.length > 0 && (
        <Chip
          label={
            v.tids.length > 2
              ? `${v.tids.length} threads`
              : `${v.tids.length > 1 ? 'threads' : 'thread'} ${names.join(', ')}`
          }
          onClick={() => openTab('threads')}
          onClear={() => setView({ tids: [] })}
        />
      )}
      {(v.start !== null || v.end !== null) && (
        <Chip
          label={`${v.start === null ? 'start' : duration(v.start)} – ${v.end === null ? 'now' : duration(v.end)}`}
          onClear={() => setView({ start: null, end: null })}
        />
      )}
      {(v.start !== null || v.end !== null) && session.value && !isSaved && (
        <Button
          icon="file"
          id="keep-window"
          title="Save range as new session"
          onClick={() => void keepWindow(session.value!, v.start, v.end)}
        />
      )}
      <CompareMenu />
    </div>
  );
}
