// Thread states over time and scheduling, if the recording contains them.
import type { ComponentChildren } from 'preact';
import type { Scheduling, ThreadStates } from '../../api/types';
import { count, duration, percent } from '../../text/format';
import { barsPath, stackedStates, threadStates as kinds } from '../../text/threads';
import { cell, head } from '../widgets/cells';
import { VirtualRows } from '../widgets/VirtualRows';

const ROW_HEIGHT = 32;
const BAR = { width: 600, height: 22 };

interface Named {
  tid: number;
  pid: number;
  comm: string;
}
// Which threads are chosen, and how to change that.
export interface Choosing {
  has: (tid: number) => boolean;
  toggle: (tid: number) => void;
}

// Additional columns of a table of threads, and their cells.
interface Columns<T> {
  kind: string;
  label: string;
  heads: ComponentChildren;
  cells: (row: T) => ComponentChildren;
}

function Table<T extends Named>({
  rows,
  choosing,
  kind,
  label,
  heads,
  cells,
}: Columns<T> & { rows: T[]; choosing: Choosing }) {
  return (
    <VirtualRows
      class="threads"
      label={label}
      count={rows.length}
      rowHeight={ROW_HEIGHT}
      head={
        <div class={`row row-head thread-row ${kind}`} role="row">
          {head('', 'Thread')}
          {head('cell-number', 'TID')}
          {heads}
        </div>
      }
      render={(index) => {
        const row = rows[index]!;
        const on = choosing.has(row.tid);
        return (
          <div
            key={`${row.pid}/${row.tid}`}
            class={`row thread-row ${kind} ${on ? 'row-selected' : ''}`}
            role="row"
            aria-selected={on}
            onClick={() => choosing.toggle(row.tid)}
          >
            {cell('ellipsis strong', row.comm, row.comm)}
            {cell('cell-number mono', row.tid)}
            {cells(row)}
          </div>
        );
      }}
    />
  );
}

const number = (text: string, title?: string) => cell('cell-number', text, title);

export function StatesTable({ data, choosing }: { data: ThreadStates; choosing: Choosing }) {
  return (
    <Table
      rows={data.threads}
      choosing={choosing}
      kind="state-row"
      label="States of threads"
      heads={
        <>
          {kinds.map((kind) =>
            head(
              'cell-number',
              <>
                <span class={`dot state-${kind.name}`} /> {kind.text}
              </>,
              kind.title,
            ),
          )}
          {head('', 'Over time')}
        </>
      }
      cells={(row) => {
        const life = kinds.reduce((sum, kind) => sum + row[kind.name], 0);
        const stacked = stackedStates(row);
        const slice = (data.end_ms - data.start_ms) / Math.max(1, stacked[0]!.length);
        return (
          <>
            {kinds.map((kind) => number(duration(row[kind.name]), percent(row[kind.name] / life)))}
            {cell(
              '',
              <svg
                class="state-bar"
                height={BAR.height}
                viewBox={`0 0 ${BAR.width} ${BAR.height}`}
                preserveAspectRatio="none"
                role="img"
                aria-label={kinds.map((kind) => `${kind.text} ${percent(row[kind.name] / life)}`).join(', ')}
              >
                {kinds
                  .map((kind, i) => (
                    <path
                      key={kind.name}
                      class={`state-${kind.name}`}
                      d={barsPath(stacked[i]!, slice, BAR.width, BAR.height)}
                    />
                  ))
                  .reverse()}
              </svg>,
            )}
          </>
        );
      }}
    />
  );
}

type Scheduled = Scheduling['all'];
// Without waits or turns, a thread has no percentiles.
const columns: [heading: string, text: (one: Scheduled) => string][] = (['latency', 'slice'] as const).flatMap((of) => {
  const what = of === 'slice' ? 'Turn' : 'Wait';
  return [
    [`${what}s`, (one) => count(one[of].count)],
    ...(['p50', 'p99', 'max'] as const).map((which) => [
      `${what} ${which}`,
      (one: Scheduled) => (one[of].count ? duration(one[of][which]) : '–'),
    ]),
  ] as typeof columns;
});
for (const [heading, of] of [
  ['Preempted', 'preempted'],
  ['Slept', 'slept'],
  ['I/O waits', 'io_waits'],
] as const)
  columns.push([heading, (one) => count(one[of])]);

// How long threads waited for a CPU, how long they ran, and why they left the CPU.
export const SchedulingTable = ({ data, choosing }: { data: Scheduling; choosing: Choosing }) => (
  <Table
    rows={data.threads}
    choosing={choosing}
    kind="sched-row"
    label="Scheduling of threads"
    heads={columns.map(([heading]) => head('cell-number', heading))}
    cells={(row) => columns.map(([, text]) => number(text(row)))}
  />
);
