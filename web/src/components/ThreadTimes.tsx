// What threads did with their time, of a recording that tells: their states over time.
import type { ComponentChildren } from 'preact';
import type { ThreadStates } from '../api/types';
import { duration, percent } from '../text/format';
import { barsPath, stackedStates, threadStates as kinds } from '../text/threads';
import { VirtualRows } from './VirtualRows';

const ROW_HEIGHT = 32;
const BAR = { width: 600, height: 22 };

interface Named {
  tid: number;
  pid: number;
  comm: string;
}
// Whether threads are chosen, and how to choose one.
export interface Choosing {
  has: (tid: number) => boolean;
  toggle: (tid: number) => void;
}

function Row({ row, choosing, kind, children }: { row: Named; choosing: Choosing; kind: string; children: ComponentChildren }) {
  const on = choosing.has(row.tid);
  return (
    <div class={`row thread-row ${kind} ${on ? 'row-selected' : ''}`} role="row" aria-selected={on} onClick={() => choosing.toggle(row.tid)}>
      <span class="cell ellipsis strong" role="cell" title={row.comm}>
        {row.comm}
      </span>
      <span class="cell cell-number mono" role="cell">
        {row.tid}
      </span>
      {children}
    </div>
  );
}

const number = (text: ComponentChildren, title = '') => (
  <span class="cell cell-number" role="cell" title={title}>
    {text}
  </span>
);
const head = (text: ComponentChildren, title = '', right = true) => (
  <span role="columnheader" class={`cell ${right ? 'cell-number' : ''}`} title={title}>
    {text}
  </span>
);
const named = (
  <>
    {head('Thread', '', false)}
    {head('TID')}
  </>
);

export function StatesTable({ data, choosing }: { data: ThreadStates; choosing: Choosing }) {
  return (
    <VirtualRows
      class="threads"
      label="States of threads"
      count={data.threads.length}
      rowHeight={ROW_HEIGHT}
      head={
        <div class="row row-head thread-row state-row" role="row">
          {named}
          {kinds.map((kind) => head(<><span class={`dot state-${kind.name}`} /> {kind.text}</>, kind.title))}
          {head('Over time', '', false)}
        </div>
      }
      render={(index) => {
        const row = data.threads[index]!;
        const life = kinds.reduce((sum, kind) => sum + row[kind.name], 0);
        const stacked = stackedStates(row);
        const slice = (data.end_ms - data.start_ms) / Math.max(1, stacked[0]!.length);
        return (
          <Row key={`${row.pid}/${row.tid}`} row={row} choosing={choosing} kind="state-row">
            {kinds.map((kind) => number(duration(row[kind.name]), percent(row[kind.name] / life)))}
            <span class="cell" role="cell">
              <svg class="state-bar" height={BAR.height} viewBox={`0 0 ${BAR.width} ${BAR.height}`} preserveAspectRatio="none" role="img" aria-label={kinds.map((kind) => `${kind.text} ${percent(row[kind.name] / life)}`).join(', ')}>
                {kinds.map((kind, i) => <path key={kind.name} class={`state-${kind.name}`} d={barsPath(stacked[i]!, slice, BAR.width, BAR.height)} />).reverse()}
              </svg>
            </span>
          </Row>
        );
      }}
    />
  );
}
