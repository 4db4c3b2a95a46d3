// Recording options: rate, events and stacks. Used for a new recording and for the running one.
import { useSignal } from '@preact/signals';
import { commonEvents, hasTracepoint, type RecordingDraft, problemOf, unwindWords } from '../../text/recording';
import type { Capabilities } from '../../text/capabilities';
import { Button } from '../widgets/Button';
import { EventPicker } from './EventPicker';

interface Props {
  agent: string;
  draft: RecordingDraft;
  known: Capabilities;
  edit: (patch: Partial<RecordingDraft>) => void;
}

export function RecordingFields({ agent, draft, known, edit }: Props) {
  const modes = known.unwind.length > 0 ? known.unwind : ['auto', 'fp'];
  const events = [...new Set([...Object.keys(commonEvents), ...known.events, ...draft.events])];
  const finding = useSignal(false);
  const problem = problemOf(draft, known.maxFrequency);
  return (
    <form class="settings recording-fields" onSubmit={(event) => event.preventDefault()}>
      <label>
        Frequency
        <span class="faint">
          Samples per second of CPU time, per thread. 99 costs next to nothing; 999 shows short phases.
        </span>
        <span class="inline-field">
          <input
            class="field"
            name="frequency"
            type="number"
            min="1"
            max="100000"
            value={draft.frequency}
            onInput={(event) => edit({ frequency: Number(event.currentTarget.value) })}
          />
          Hz
        </span>
      </label>
      <label>
        Stacks
        <span class="faint">{unwindWords[draft.unwind] ?? ''}</span>
        <select
          class="field"
          name="unwind"
          value={draft.unwind}
          onChange={(event) => edit({ unwind: event.currentTarget.value })}
        >
          {[...new Set([...modes, draft.unwind])].map((mode) => (
            <option key={mode} value={mode}>
              {mode}
            </option>
          ))}
        </select>
      </label>
      {draft.unwind === 'dwarf' && (
        <label>
          Copied stack
          <span class="faint">With each sample. Deeper stacks are cut, and marked.</span>
          <span class="inline-field">
            <input
              class="field"
              name="stack"
              type="number"
              min="1"
              max="64"
              value={draft.stackKib}
              onInput={(event) => edit({ stackKib: Number(event.currentTarget.value) })}
            />
            KiB
          </span>
        </label>
      )}
      <fieldset class="event-choice">
        <legend>Events</legend>
        <span class="faint">None chosen: CPU cycles, or the clock where there is no counter.</span>
        <div class="event-grid">
          {events.map((name) => (
            <label key={name} class="check">
              <input
                type="checkbox"
                checked={draft.events.includes(name)}
                onChange={(event) =>
                  edit({
                    events: event.currentTarget.checked
                      ? [...draft.events, name]
                      : draft.events.filter((other) => other !== name),
                  })
                }
              />
              <span>
                {name}
                <span class="faint event-words">{commonEvents[name]}</span>
              </span>
            </label>
          ))}
        </div>
        <label>
          Other events
          <span class="faint">
            Tracepoints, probes of functions and perf’s other names, with commas: sched:sched_switch,
            uprobe:malloc@libc, usdt:libstdcxx:throw@libstdc++, kprobe:vfs_read, cycles:u, r01c2. With trace: before an
            event, each hit is kept with its values: trace:sched:sched_switch
          </span>
          <input
            class="field mono"
            name="others"
            value={draft.others}
            onInput={(event) => edit({ others: event.currentTarget.value })}
          />
        </label>
        <div>
          <Button
            id="find-events"
            title="Search tracepoints, functions and USDT probes of this machine"
            pressed={finding.value}
            onClick={() => (finding.value = !finding.value)}
          >
            Find events
          </Button>
        </div>
        {finding.value && <EventPicker agent={agent} draft={draft} edit={edit} />}
        {hasTracepoint(draft) && (
          <label>
            Filter
            <span class="faint">Of tracepoints and probes, in the kernel: prev_pid == 42 && prev_comm ~ "ba*"</span>
            <input
              class="field mono"
              name="filter"
              value={draft.filter}
              onInput={(event) => edit({ filter: event.currentTarget.value })}
            />
          </label>
        )}
      </fieldset>
      <label class="check">
        <input
          type="checkbox"
          name="kernel"
          checked={draft.kernel}
          onChange={(event) => edit({ kernel: event.currentTarget.checked })}
        />
        Kernel functions, where the kernel allows it
      </label>
      {problem && (
        <p class="note" role="status">
          {problem}
        </p>
      )}
    </form>
  );
}
