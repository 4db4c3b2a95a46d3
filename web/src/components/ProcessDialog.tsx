// What runs on a target, with its use of the CPU, to choose what is profiled.
import { useComputed, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { ProcessInfo } from '../api/types';
import { listProcesses, startProfiling } from '../store/actions';
import { agents, connectedAgents } from '../store/live';
import { closeDialog, dialog } from '../store/ui';
import { count } from '../text/format';
import { Button } from './Button';
import { Message } from './Message';
import { Modal } from './Modal';
import { SearchBox } from './SearchBox';
import { VirtualRows } from './VirtualRows';

const ROW_HEIGHT = 30;
const REFRESH_MS = 1500;

interface Offer {
  record: readonly string[];
}

// The events that the agent found to work, from its hello.
function offerOf(agentId: string): Offer {
  const hello = agents.value.find((agent) => agent.id === agentId)?.hello as
    | { capabilities?: { record_events?: unknown } }
    | undefined;
  const list = hello?.capabilities?.record_events;
  return { record: Array.isArray(list) ? list.filter((name): name is string => typeof name === 'string') : [] };
}

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

export function ProcessDialog({ agent }: { agent: string }) {
  const list = useSignal<ProcessInfo[] | null>(null);
  const error = useSignal('');
  const text = useSignal('');
  const pid = useSignal(0);
  const frequency = useSignal(99);
  const events = useSignal<readonly string[]>([]);
  const busy = useSignal(false);
  const scroll = useSignal({ index: -1, stamp: 0 });

  useEffect(() => {
    let over = false;
    let timer = 0;
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

  const machine = agents.value.find((entry) => entry.id === agent);
  const offer = offerOf(agent);
  const running = machine?.state === 'profiling' || machine?.state === 'paused';
  const valid = pid.value > 0 && frequency.value >= 1 && frequency.value <= 100000;
  const start = async () => {
    if (!valid || busy.value) return;
    busy.value = true;
    const done = await startProfiling(agent, { pid: pid.value, frequency: frequency.value, events: events.value });
    busy.value = false;
    if (done) closeDialog();
  };
  const keys = (event: KeyboardEvent) => {
    const at = rows.value.findIndex((row) => row.pid === pid.value);
    if (event.key === 'Enter') void start();
    else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      const next = Math.min(rows.value.length - 1, Math.max(0, at + (event.key === 'ArrowDown' ? 1 : -1)));
      pid.value = rows.value[next]?.pid ?? 0;
      scroll.value = { index: next, stamp: scroll.value.stamp + 1 };
    } else return;
    event.preventDefault();
  };
  const chosen = rows.value.find((row) => row.pid === pid.value);

  return (
    <Modal
      title="Choose a process to profile"
      class="process-dialog"
      footer={
        <>
          <div class="foot-options">
          <label class="inline-field" title="Samples a second and thread">
            Frequency
            <input class="field" type="number" min="1" max="100000" value={frequency.value} onInput={(event) => (frequency.value = Number(event.currentTarget.value))} />
            Hz
          </label>
          {offer.record.length > 0 && (
            <fieldset class="events">
              <legend class="visually-hidden">Events</legend>
              {offer.record.map((name) => (
                <label key={name} class="check">
                  <input
                    type="checkbox"
                    checked={events.value.includes(name)}
                    onChange={(event) => (events.value = event.currentTarget.checked ? [...events.value, name] : events.value.filter((other) => other !== name))}
                  />
                  {name}
                </label>
              ))}
              {events.value.length === 0 && <span class="faint">default event</span>}
            </fieldset>
          )}
          </div>
          {running && <span class="note">This agent is recording. Stop it first.</span>}
          <Button title="Close" onClick={closeDialog}>
            Cancel
          </Button>
          <Button id="start" icon="record" kind="primary" title="Start profiling" disabled={!valid || busy.value || running} onClick={() => void start()}>
            {chosen ? `Profile ${chosen.comm}` : 'Profile'}
          </Button>
        </>
      }
    >
      <div class="toolbar">
        <SearchBox value={text.value} placeholder="Find by name, pid, user or container" onInput={(value) => (text.value = value)} />
        {connectedAgents.value.length > 1 && (
          <label class="select">
            <span class="visually-hidden">Agent</span>
            <select value={agent} onChange={(event) => (dialog.value = { kind: 'process', agent: event.currentTarget.value })}>
              {connectedAgents.value.map((entry) => (
                <option key={entry.id} value={entry.id}>
                  {entry.address}
                </option>
              ))}
            </select>
          </label>
        )}
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
                on={row.pid === pid.value}
                choose={() => (pid.value = row.pid)}
                start={() => {
                  pid.value = row.pid;
                  void start();
                }}
              />
            );
          }}
        />
      )}
    </Modal>
  );
}
