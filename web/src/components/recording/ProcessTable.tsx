// The processes of a target with their CPU use, to choose processes, a container or a larger target.
// Processes are grouped by container if the target has containers.
import { useComputed, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import type { ProcessInfo } from '../../api/types';
import { listProcesses } from '../../store/actions';
import { rowsReleased } from '../../store/pressed';
import { count } from '../../text/format';
import { pickedOf, processTarget, type Target, toggled, wholeSystem, wide } from '../../text/recording';
import { Button } from '../widgets/Button';
import { cell, head } from '../widgets/cells';
import { Message } from '../widgets/Message';
import { SearchBox } from '../widgets/SearchBox';
import { VirtualRows } from '../widgets/VirtualRows';

const ROW_HEIGHT = 30;
const REFRESH_MS = 1500;

// Ctrl, or a click on the checkbox, adds a process to the choice.
const besides = (event: MouseEvent) => event.ctrlKey || event.metaKey || event.target instanceof HTMLInputElement;

interface RowProps {
  process: ProcessInfo;
  on: boolean;
  here: boolean;
  choose: (besides: boolean) => void;
  start: () => void;
}
function Row({ process, on, here, choose, start }: RowProps) {
  return (
    <div
      class={`row process-row ${on ? 'row-selected' : ''} ${here ? 'row-here' : ''}`}
      role="row"
      aria-selected={on}
      data-pid={process.pid}
      onClick={(event) => choose(besides(event))}
      onDblClick={(event) => besides(event) || start()}
    >
      {cell(
        '',
        <input
          type="checkbox"
          checked={on}
          tabIndex={-1}
          aria-label={`${process.comm} ${process.pid}`}
          title="Choose several (Ctrl and a click; Shift and arrows, or Space)"
        />,
      )}
      <span class="cell cell-number" role="cell">
        <span class="cpu-bar" style={{ width: `${Math.min(100, process.cpu) * 0.8}%` }} />
        <span class="cpu-text">{process.cpu.toFixed(1)}</span>
      </span>
      {cell(
        'cell-number mono',
        process.pid,
        process.ns_pid && process.ns_pid !== process.pid ? `${process.ns_pid} in its container` : undefined,
      )}
      {cell('ellipsis faint', process.user ?? '')}
      {cell('ellipsis strong', process.comm)}
      {cell('ellipsis faint mono', process.cmdline, process.cmdline)}
      {cell('ellipsis faint mono', process.container?.slice(0, 12) ?? '', process.container)}
    </div>
  );
}

interface Group {
  container: string; // empty: processes outside of containers
  processes: ProcessInfo[];
  cpu: number;
}
type Item = ProcessInfo | Group;
const isGroup = (item: Item): item is Group => 'processes' in item;
const nameOf = (container: string) => `container ${container.slice(0, 12)}`;
const keyOf = (item: Item) => (isGroup(item) ? item.container : item.pid);
const targetOf = (item: Item): Target | null =>
  !isGroup(item)
    ? processTarget([{ pid: item.pid, comm: item.comm }])
    : item.container
      ? wide(nameOf(item.container), { container: item.container })
      : null;

function byContainer(processes: ProcessInfo[]): Item[] {
  if (!processes.some((one) => one.container)) return processes;
  const groups = new Map<string, Group>();
  for (const one of processes) {
    const container = one.container ?? '';
    const group = groups.get(container) ?? { container, processes: [], cpu: 0 };
    group.processes.push(one);
    group.cpu += one.cpu;
    groups.set(container, group);
  }
  return [...groups.values()].sort((a, b) => b.cpu - a.cpu).flatMap((group) => [group, ...group.processes]);
}

interface Props {
  agent: string;
  chosen: Target;
  onChoose: (target: Target) => void;
  onStart: () => void; // Enter or a double click on the choice
  children?: ComponentChildren; // additional items of the toolbar
}

export function ProcessTable({ agent, chosen, onChoose, onStart, children }: Props) {
  const list = useSignal<ProcessInfo[] | null>(null);
  const error = useSignal('');
  const text = useSignal('');
  const scroll = useSignal({ index: -1, stamp: 0 });
  const cursor = useSignal<string | number>(-1); // the row with the keyboard cursor

  useEffect(() => {
    let over = false;
    let timer = 0;
    list.value = null;
    const look = async () => {
      try {
        const fresh = await listProcesses(agent);
        await rowsReleased();
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
    const kept = (list.value ?? []).filter((p) =>
      `${p.pid} ${p.comm} ${p.cmdline} ${p.user ?? ''} ${p.container ?? ''}`.toLowerCase().includes(wanted),
    );
    return kept.sort((a, b) => b.cpu - a.cpu || a.pid - b.pid);
  });
  const items = useComputed(() => byContainer(rows.value));
  const { pid, container, cgroup, cpus } = chosen;
  const picked = pickedOf(chosen);
  const isOn = (item: Item) =>
    isGroup(item)
      ? pid === wholeSystem && item.container !== '' && item.container === container
      : picked.some((one) => one.pid === item.pid);
  const choose = (item: Item, besides: boolean) => {
    const target = besides && !isGroup(item) ? toggled(chosen, item) : targetOf(item);
    cursor.value = keyOf(item);
    if (target) onChoose(target);
  };

  // Arrow keys choose one row. With Shift they add the row, and with Ctrl they only move the cursor.
  const walk = (step: number, event: KeyboardEvent) => {
    const list = items.value;
    const from = list.findIndex((item) => keyOf(item) === cursor.value);
    let next = (from < 0 ? list.findIndex(isOn) : from) + step;
    if (next >= 0 && next < list.length && !targetOf(list[next]!)) next += step;
    next = Math.min(list.length - 1, Math.max(0, next));
    const item = list[next];
    if (!item) return;
    cursor.value = keyOf(item);
    if (!event.ctrlKey && !(event.shiftKey && isOn(item))) choose(item, event.shiftKey);
    scroll.value = { index: next, stamp: scroll.value.stamp + 1 };
  };
  const keys = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    const here = items.value.find((item) => keyOf(item) === cursor.value);
    if (event.key === 'Enter') onStart();
    else if (event.key === ' ' && here && !(event.target instanceof HTMLInputElement)) choose(here, true);
    else if (step) walk(step, event);
    else return;
    event.preventDefault();
  };

  return (
    <>
      <div class="toolbar">
        <SearchBox
          value={text.value}
          placeholder="Find by name, pid, user or container"
          onInput={(value) => (text.value = value)}
        />
        <Button
          id="whole-system"
          title="Every process of the machine, kernel threads too; except idle time and the agent itself"
          pressed={pid === wholeSystem && !container && !cgroup}
          onClick={() => onChoose(wide('the whole system'))}
        >
          Whole system
        </Button>
        <input
          class="field"
          name="cgroup"
          aria-label="Control group"
          size={14}
          placeholder="Control group"
          title="Every process of a control group, by its path"
          value={cgroup ?? ''}
          onInput={({ currentTarget: { value } }) =>
            onChoose(value ? wide(`cgroup ${value}`, { cgroup: value }) : { ...wide(''), pid: 0 })
          }
        />
        {pid === wholeSystem && (
          <input
            class="field"
            name="cpus"
            aria-label="CPUs"
            size={8}
            placeholder="CPUs, as 0-3"
            title="On these CPUs only"
            value={cpus ?? ''}
            onInput={(event) => onChoose({ ...chosen, cpus: event.currentTarget.value })}
          />
        )}
        {children}
        <span class="faint" role="status">
          {list.value && `${count(rows.value.length)} ${rows.value.length === 1 ? 'process' : 'processes'}`}
          {picked.length > 1 && `, ${picked.length} chosen`}
        </span>
        {error.value && <span class="note note-error">{error.value}</span>}
      </div>
      {!list.value ? (
        <Message
          title={error.value ? 'The agent did not answer' : 'Loading the processes of the target'}
          busy={!error.value}
        />
      ) : (
        <VirtualRows
          class="processes"
          label="Processes"
          count={items.value.length}
          rowHeight={ROW_HEIGHT}
          scrollTo={scroll.value}
          onKeyDown={keys}
          head={
            <div class="row row-head process-row" role="row">
              {head('', <span class="visually-hidden">Chosen</span>)}
              {head('cell-number', 'CPU %')}
              {head('cell-number', 'PID')}
              {head('', 'User')}
              {head('', 'Name')}
              {head('', 'Command')}
              {head('', 'Container')}
            </div>
          }
          render={(index) => {
            const item = items.value[index]!;
            const start = () => {
              choose(item, false);
              if (targetOf(item)) onStart();
            };
            const here = keyOf(item) === cursor.value;
            if (!isGroup(item))
              return (
                <Row
                  key={item.pid}
                  process={item}
                  on={isOn(item)}
                  here={here}
                  choose={(besides) => choose(item, besides)}
                  start={start}
                />
              );
            return (
              <div
                key={item.container}
                class={`row process-row process-group ${isOn(item) ? 'row-selected' : ''} ${here ? 'row-here' : ''}`}
                role="row"
                aria-selected={isOn(item)}
                data-container={item.container}
                onClick={() => choose(item, false)}
                onDblClick={start}
              >
                <span class="cell" role="cell" />
                {cell('cell-number cpu-text', item.cpu.toFixed(1))}
                {cell('cell-number', count(item.processes.length))}
                <span class="cell" role="cell" />
                {cell('ellipsis strong', item.container ? nameOf(item.container) : 'No container', item.container)}
              </div>
            );
          }}
        />
      )}
    </>
  );
}
