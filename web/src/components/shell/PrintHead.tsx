// The head of a printed page: recording, time, event, and how complete the data are.
import { printing } from '../../store/printing';
import { savedFile } from '../../store/saved';
import { event, session } from '../../store/session';
import { view } from '../../store/view';
import { clock, count, duration, percent } from '../../text/format';
import { lostText } from '../../text/loss';
import { sessionTitle } from '../../text/sessions';
import { places } from '../../model/view_state';
import { tabNames } from './Tabs';

export function PrintHead() {
  const shown = session.value;
  if (!printing.value || !shown) return null;
  const { tab, start, end, tids, pids, search, zoom } = view.value;
  const range =
    start === null && end === null
      ? `all ${duration(shown.duration_ms)}`
      : `${duration(start ?? 0)} to ${duration(end ?? shown.duration_ms)} of ${duration(shown.duration_ms)}`;
  const all = shown.samples + shown.lost;
  const facts = [
    `Event: ${event.value ? `${event.value.name} (${event.value.unit})` : '–'}`,
    `Time: ${range}`,
    tids.length > 0 && `Threads: ${tids.join(', ')}`,
    pids.length > 0 && `Processes: ${pids.join(', ')}`,
    ...places.map((place) => view.value[place] && `${place} ${view.value[place]}`),
    zoom.length > 0 && tab === 'flame' && `Zoomed to ${zoom.at(-1)!.split('\u001e')[0]}`,
    search && tab === 'flame' && `Search: ${search}`,
    `Samples: ${count(shown.samples)}`,
    (shown.lost > 0 || shown.lost_at_least) &&
      `lost: ${lostText(shown.lost, shown.lost_at_least)}${shown.lost_at_least ? '' : ` (${percent(shown.lost / all, 2)})`}`,
    `without a name: ${percent(shown.unresolved_percent / 100)}`,
  ].filter(Boolean);
  return (
    <header class="print-head">
      <h1>
        {sessionTitle(shown)}
        {shown.host && ` on ${shown.host}`}: {tabNames[tab].toLowerCase()}
      </h1>
      <p>
        Recorded {clock(shown.started, new Date(0))} · {[shown.arch, shown.kernel_release].filter(Boolean).join(', ')} ·{' '}
        {shown.id}
        {savedFile.value && ` · saved ${clock(savedFile.value.made, new Date(0))}`}
      </p>
      <p>{facts.join(' · ')}</p>
      {(shown.notices ?? []).map((notice) => (
        <p key={notice.code}>{notice.text}</p>
      ))}
    </header>
  );
}
