// What runs on a target, with its use of the CPU, to choose one process.
import { useComputed, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import type { ProcessInfo } from '../api/types';
import { listProcesses } from '../store/actions';
import { count } from '../text/format';
import { wholeSystem } from '../text/recording';
import { Button } from './Button';
import { Message } from './Message';
import { SearchBox } from './SearchBox';
import { VirtualRows } from './VirtualRows';

const ROW_HEIGHT = 30;
const REFRESH_MS = 1500;

function Row({ process, on, choose, start }: { process: ProcessInfo; on: boolean; choose: () => void; start: () => void }) {
  return (
    <div class={`row process-row ${on ? 'row-selected' : ''}`} role="row" aria-selected={on} data-pid={process.pid} onClick={choose} onDblClick={start}>
      <span class="cell cell-number" role="cell">
        <span class="cpu-bar" style={{ width: `${Math.min(100, process.cpu) * 0.8}%` }} />
        <span class="cpu-text">{process.cpu.toFixed(1)}</span>
      </span>
      <span class="cell cell-number mono" role="cell" title={process.ns_pid && process.ns_pid !== process.pid ? `${process.ns_pid} in its container` : undefined}>
        {process.pid}
      </span>
      <span class="cell ellipsis faint" role="cell">
        {process.user ?? ''}
      </span>
      <span class="cell ellipsis strong" role="cell">
        {process.comm}
      </span>
      <span class="cell ellipsis faint mono" role="cell" title={process.cmdline}>
        {process.cmdline}
      </span>
      <span class="cell ellipsis faint mono" role="cell" title={process.container}>
        {process.container?.slice(0, 12) ?? ''}
      </span>
    </div>
  );
}

interface Props {
  agent: string;
  pid: number;
  onChoose: (process: { pid: number; comm: string }) => void;
  onStart: () => void; // Enter or a double click on what is chosen
  children?: ComponentChildren; // more for the toolbar
}

export function ProcessTable({ agent, pid, onChoose, onStart, children }: Props) {
  const list = useSignal<ProcessInfo[] | null>(null);
  const error = useSignal('');
  const text = useSignal('');
  const scroll = useSignal({ index: -1, stamp: 0 });

  useEffect(() => {
    let over = false;
    let timer = 0;
    list.value = null;
    const look = async () => {
      try {
        const fresh = await listProcesses(agent);
        if (over) return;
        list.value = fresh;
        error.value = '';
      } catch (reason) {
        if (over) return;
        error.value = reason instanceof Error ? reason.message : String(reason);
      }
      timer = window.setTimeout(() => void look(), REFRESH_MS);
    };
    void look();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [agent]);

  const rows = useComputed(() => {
    const wanted = text.value.toLowerCase();
    const kept = (list.value ?? []).filter((p) => `${p.pid} ${p.comm} ${p.cmdline} ${p.user ?? ''} ${p.container ?? ''}`.toLowerCase().includes(wanted));
    return kept.sort((a, b) => b.cpu - a.cpu || a.pid - b.pid);
  });

  const keys = (event: KeyboardEvent) => {
    const at = rows.value.findIndex((row) => row.pid === pid);
    if (event.key === 'Enter') onStart();
    else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      const next = Math.min(rows.value.length - 1, Math.max(0, at + (event.key === 'ArrowDown' ? 1 : -1)));
      const row = rows.value[next];
      if (row) onChoose(row);
      scroll.value = { index: next, stamp: scroll.value.stamp + 1 };
    } else return;
    event.preventDefault();
  };

  return (
    <>
      <div class="toolbar">
        <SearchBox value={text.value} placeholder="Find by name, pid, user or container" onInput={(value) => (text.value = value)} />
        <Button id="whole-system" title="Every process of the machine, kernel threads too; without idling and the agent itself" pressed={pid === wholeSystem} onClick={() => onChoose({ pid: wholeSystem, comm: 'the whole system' })}>
          Whole system
        </Button>
        {children}
        <span class="faint" role="status">
          {list.value && `${count(rows.value.length)} ${rows.value.length === 1 ? "process" : "processes"}`}
        </span>
        {error.value && <span class="note note-error">{error.value}</span>}
      </div>
      {!list.value ? (
        <Message title={error.value ? 'The agent did not answer' : 'Asking the agent what runs there'} busy={!error.value} />
      ) : (
        <VirtualRows
          class="processes"
          label="Processes"
          count={rows.value.length}
          rowHeight={ROW_HEIGHT}
          scrollTo={scroll.value}
          onKeyDown={keys}
          head={
            <div class="row row-head process-row" role="row">
              <span role="columnheader" class="cell cell-number">CPU %</span>
              <span role="columnheader" class="cell cell-number">PID</span>
              <span role="columnheader" class="cell">User</span>
              <span role="columnheader" class="cell">Name</span>
              <span role="columnheader" class="cell">Command</span>
              <span role="columnheader" class="cell">Container</span>
            </div>
          }
          render={(index) => {
            const row = rows.value[index]!;
            return (
              <Row
                key={row.pid}
                process={row}
                on={row.pid === pid}
                choose={() => onChoose(row)}
                start={() => {
                  onChoose(row);
                  onStart();
                }}
              />
            );
          }}
        />
      )}
    </>
  );
}
