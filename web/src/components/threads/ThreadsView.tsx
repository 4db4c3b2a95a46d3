// Threads: state, weights, times and sparklines. The chosen ones filter every other view, and two can be compared.
import { computed } from '@preact/signals';
import { isSaved } from '../../store/saved';
import type { ThreadRow } from '../../api/types';
import { scheduling, threads, threadsShow, threadStates } from '../../store/data';
import { compareThreads } from '../../store/compare';
import { session } from '../../store/session';
import { setView, view } from '../../store/view';
import { count, percent, weight } from '../../text/format';
import { barsPath, cpuSource, cpuText, cpuTitle, placeText, shortId, stateTitle, wakeUpNote } from '../../text/threads';
import { Button } from '../widgets/Button';
import { cell, head } from '../widgets/cells';
import { Choice } from '../widgets/Choice';
import { ExportMenu } from '../widgets/ExportMenu';
import { Failure, Message } from '../widgets/Message';
import { NotRefreshed } from '../widgets/NotRefreshed';
import { Share } from '../widgets/Share';
import { SchedulingTable, StatesTable } from './ThreadTimes';
import { VirtualRows } from '../widgets/VirtualRows';

const ROW_HEIGHT = 32;
const SPARK = { width: 120, height: 20 };
const chosen = computed(() => new Set(view.value.tids));

function toggle(tid: number): void {
  const next = new Set(chosen.value);
  if (!next.delete(tid)) next.add(tid);
  setView({ tids: [...next].sort((a, b) => a - b) }, 'replace');
}

// The maximum of all sparklines: all threads have the same scale.
const tallest = computed(() =>
  (threads.data.value?.threads ?? []).reduce((most, row) => Math.max(most, ...(row.slices ?? [0])), 0),
);

function Row({ row, unit }: { row: ThreadRow; unit: string }) {
  const on = chosen.value.has(row.tid);
  return (
    <div
      class={`row thread-row ${on ? 'row-selected' : ''}`}
      role="row"
      onClick={() => toggle(row.tid)}
      onDblClick={() => setView({ tab: 'flame', tids: [row.tid] })}
    >
      <span class="cell" role="cell">
        <input
          type="checkbox"
          checked={on}
          aria-label={`Filter by thread ${row.comm} ${row.tid}`}
          onClick={(event) => event.stopPropagation()}
          onChange={() => toggle(row.tid)}
        />
      </span>
      {cell('ellipsis strong', row.comm, row.comm)}
      {cell('cell-number mono', row.tid)}
      <span class="cell cell-number mono faint" role="cell" title={placeText(row)}>
        {row.container_id ? (
          <button
            type="button"
            class="link"
            aria-label={`Show only container ${shortId(row.container_id)}`}
            onClick={(event) => {
              event.stopPropagation();
              setView({ container: row.container_id! });
            }}
          >
            {row.pid}
          </button>
        ) : (
          row.pid
        )}
      </span>
      <span class={`cell thread-state thread-state-${row.state}`} role="cell" title={stateTitle(row.state)}>
        <span class="dot" /> {row.state}
      </span>
      {cell('cell-number', cpuText(row), cpuTitle(row))}
      {cell('', <Share value={row.percent / 100} />)}
      {cell('cell-number', count(row.samples), weight(row.weight, unit))}
      <span class="cell" role="cell">
        <svg
          class="thread-spark"
          width={SPARK.width}
          height={SPARK.height}
          viewBox={`0 0 ${SPARK.width} ${SPARK.height}`}
          aria-hidden="true"
        >
          <path d={barsPath(row.slices ?? [], tallest.value, SPARK.width, SPARK.height)} />
        </svg>
      </span>
      <span class="cell thread-top" role="cell">
        {row.top_functions.slice(0, 3).map((top) => (
          <span key={top.name} class="top-function" title={`${top.name}: ${percent(top.percent / 100)} of this thread`}>
            <span class="top-function-bar" style={{ width: `${Math.min(100, top.percent)}%` }} />
            <span class="ellipsis">{top.name}</span>
            <span class="faint">{percent(top.percent / 100, 0)}</span>
          </span>
        ))}
      </span>
    </div>
  );
}

const choosing = { has: (tid: number) => chosen.value.has(tid), toggle };
const shows = [
  { value: 'samples', text: 'Samples' },
  { value: 'states', text: 'States' },
  { value: 'scheduling', text: 'Scheduling' },
] as const;

export function ThreadsView() {
  const data = threads.data.value;
  const error = threads.error.value;
  if (!data || data.threads.length === 0) {
    if (error && !data) return <Failure error={error} />;
    if (threads.loading.value) return <Message title="Loading the threads" busy />;
    return <Message title="No samples yet" />;
  }
  const list = data.threads;
  const states = threadStates.data.value;
  const show = states?.known ? threadsShow.value : 'samples';
  const turns = scheduling.data.value;
  const note = show === 'samples' ? cpuSource(list) : wakeUpNote(session.value?.events ?? []);
  const rows =
    (show === 'samples' ? threads : show === 'states' ? threadStates : scheduling).data.value?.threads.length ?? 0;
  // The busier thread is the baseline of the comparison.
  const pair = chosen.value.size === 2 ? list.filter((row) => chosen.value.has(row.tid)) : [];
  return (
    <section class={`view ${threads.loading.value ? 'is-stale' : ''}`}>
      <div class="toolbar">
        {states?.known && (
          <Choice
            label="What of threads"
            value={show}
            options={shows}
            onChoose={(value) => (threadsShow.value = value)}
          />
        )}
        <span class="faint" role="status">
          {count(rows)} {rows === 1 ? 'thread' : 'threads'}
          {chosen.value.size > 0 && `, ${chosen.value.size} chosen`}
          {note && `. ${note}.`}
        </span>
        <span class="spacer" />
        <NotRefreshed of={threads} />
        {chosen.value.size > 0 && (
          <>
            {pair.length === 2 && !isSaved && (
              <Button
                icon="compare"
                title={`${pair[1]!.comm} (${pair[1]!.tid}) against ${pair[0]!.comm} (${pair[0]!.tid})`}
                onClick={() => compareThreads(pair[0]!.tid, pair[1]!.tid)}
              >
                Compare the two
              </Button>
            )}
            <Button
              icon="flame"
              title="Show the chosen threads in the flame graph"
              onClick={() => setView({ tab: 'flame' })}
            >
              Show in flame graph
            </Button>
            <Button title="Show all threads again" onClick={() => setView({ tids: [] }, 'replace')}>
              Clear
            </Button>
          </>
        )}
        <ExportMenu />
      </div>
      {show === 'states' && states && <StatesTable data={states} choosing={choosing} />}
      {show === 'scheduling' && turns && <SchedulingTable data={turns} choosing={choosing} />}
      {show === 'samples' && (
        <VirtualRows
          class="threads"
          label="Threads"
          count={list.length}
          rowHeight={ROW_HEIGHT}
          head={
            <div class="row row-head thread-row" role="row">
              <span role="columnheader" class="cell" />
              {head('', 'Thread')}
              {head('cell-number', 'TID')}
              {head('cell-number', 'PID')}
              {head('', 'State')}
              {head('cell-number', 'CPU', 'Of one CPU, in the chosen time')}
              {head('', 'Share')}
              {head('cell-number', 'Samples')}
              {head('', 'Over time', 'Samples over the chosen time, all threads on one scale')}
              {head('', 'Hottest functions')}
            </div>
          }
          render={(index) => (
            <Row key={`${list[index]!.pid}/${list[index]!.tid}`} row={list[index]!} unit={data.unit} />
          )}
        />
      )}
    </section>
  );
}
