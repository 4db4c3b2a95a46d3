// Finds tracepoints, functions and USDT probes on an agent's machine, and adds them to the events of a recording.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { api } from '../../api/client';
import type { AgentEvents } from '../../api/types';
import {
  detailsOf,
  type EventDetails,
  type EventKind,
  eventTarget,
  hasEvent,
  isInFile,
  kindNames,
  toggledEvent,
} from '../../text/event_list';
import { count } from '../../text/format';
import type { RecordingDraft } from '../../text/recording';
import { Choice } from '../widgets/Choice';

const TYPING_MS = 200;
const words = (reason: unknown) => (reason instanceof Error ? reason.message : String(reason));

// Calls `work` when one of `inputs` has not changed for a moment. A newer call ends an older one.
function useAfterTyping(work: (signal: AbortSignal) => Promise<void>, inputs: readonly unknown[]) {
  useEffect(() => {
    const ended = new AbortController();
    const timer = window.setTimeout(() => void work(ended.signal), TYPING_MS);
    return () => {
      clearTimeout(timer);
      ended.abort();
    };
  }, inputs);
}

function Details({ details }: { details: EventDetails | string }) {
  if (typeof details === 'string') return <p>{details}</p>;
  return (
    <>
      {details.places.map((place) => (
        <p key={place}>At {place}</p>
      ))}
      {details.fields.length > 0 ? (
        <dl>
          {details.fields.map(({ name, type }) => (
            <div key={name}>
              <dt class="mono">{name}</dt>
              <dd class="mono faint">{type}</dd>
            </div>
          ))}
        </dl>
      ) : (
        <p class="faint">
          {details.places.length > 0
            ? 'No fields yet. For arguments, add them to the event: /size=$arg1/'
            : 'This event has no fields.'}
        </p>
      )}
    </>
  );
}

interface Props {
  agent: string;
  draft: RecordingDraft;
  edit: (patch: Partial<RecordingDraft>) => void;
}

export function EventPicker({ agent, draft, edit }: Props) {
  const kind = useSignal<EventKind>('tracepoint');
  const text = useSignal('');
  const file = useSignal('');
  const files = useSignal<readonly string[]>([]);
  const list = useSignal<AgentEvents | null>(null);
  const problem = useSignal('');
  const cursor = useSignal(0);
  const details = useSignal<EventDetails | string | null>(null); // string: why they are missing
  const kernel = useSignal(false); // the agent offers functions of the kernel
  const input = useRef<HTMLInputElement>(null);

  const target = eventTarget(draft);
  const whose = JSON.stringify(target);
  const wantsFile = isInFile(kind.value);
  const events = list.value?.events ?? [];
  const here = events[cursor.value];

  useEffect(() => {
    input.current?.closest('.event-picker')?.scrollIntoView({ block: 'nearest' });
    input.current?.focus({ preventScroll: true });
  }, []);

  useEffect(() => {
    files.value = [];
    if (!target.pid && !target.container && !target.cgroup) return;
    api.agentEvents(agent, { kind: 'file', limit: 500, ...target }).then(
      (found) => (files.value = (found.events ?? []).map((one) => one.name)),
      () => undefined,
    );
  }, [agent, whose]);

  useAfterTyping(
    async (signal) => {
      if (wantsFile && !file.value.trim()) {
        list.value = null;
        problem.value = '';
        return;
      }
      try {
        const found = await api.agentEvents(
          agent,
          { kind: kind.value, q: text.value.trim(), file: wantsFile ? file.value.trim() : '', ...target },
          signal,
        );
        if (signal.aborted) return;
        list.value = found;
        kernel.value = found.kernel_functions;
        problem.value = '';
        cursor.value = 0;
      } catch (reason) {
        if (signal.aborted) return;
        list.value = null;
        problem.value = words(reason);
      }
    },
    [agent, whose, kind.value, text.value, wantsFile && file.value],
  );

  useAfterTyping(
    async (signal) => {
      details.value = null;
      if (!here?.event) return;
      try {
        const { description } = await api.agentEvents(agent, { describe: here.event, ...target }, signal);
        if (!signal.aborted) details.value = detailsOf(description ?? '');
      } catch (reason) {
        if (!signal.aborted) details.value = words(reason);
      }
    },
    [agent, whose, here?.event],
  );

  const toggle = (event: string | undefined) => {
    if (event) edit({ others: toggledEvent(draft.others, event) });
  };
  const keys = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step) cursor.value = Math.min(events.length - 1, Math.max(0, cursor.value + step));
    else if (event.key === 'Enter') toggle(here?.event);
    else if (event.key === 'Escape' && text.value) text.value = '';
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const kinds = (Object.keys(kindNames) as EventKind[]).filter((one) => one !== 'kernel-function' || kernel.value);

  return (
    <div class="event-picker" role="group" aria-label="Find events">
      <div class="event-picker-head">
        <Choice
          label="Kind of events"
          value={kind.value}
          options={kinds.map((value) => ({ value, text: kindNames[value] }))}
          onChoose={(value) => {
            kind.value = value;
            list.value = null;
          }}
        />
        {wantsFile && (
          <>
            <input
              class="field mono event-picker-file"
              name="event-file"
              list="event-files"
              spellcheck={false}
              autocomplete="off"
              placeholder="Program or library, as libc"
              aria-label="Program or library"
              value={file.value}
              onInput={(event) => (file.value = event.currentTarget.value)}
              onKeyDown={(event) => event.key === 'Enter' && event.preventDefault()}
            />
            <datalist id="event-files">
              {files.value.map((path) => (
                <option key={path} value={path} />
              ))}
            </datalist>
          </>
        )}
      </div>
      <input
        ref={input}
        class="field"
        name="event-search"
        type="text"
        role="combobox"
        aria-expanded={events.length > 0}
        aria-controls="event-list"
        aria-activedescendant={here ? `event-${cursor.value}` : undefined}
        aria-autocomplete="list"
        spellcheck={false}
        autocomplete="off"
        placeholder="Part of a name"
        aria-label={`Search ${kindNames[kind.value]}`}
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
        onKeyDown={keys}
      />
      {problem.value && (
        <p class="note" role="alert">
          {problem.value}
        </p>
      )}
      <div class="event-picker-body">
        <ul id="event-list" role="listbox" aria-multiselectable="true" aria-label={kindNames[kind.value]}>
          {events.map((one, i) => {
            const chosen = one.event !== undefined && hasEvent(draft.others, one.event);
            return (
              <li
                key={`${one.name} ${one.event ?? ''}`}
                id={`event-${i}`}
                role="option"
                aria-selected={chosen}
                aria-disabled={!one.event}
                class={`${i === cursor.value ? 'row-here' : ''} ${one.event ? '' : 'faint'}`}
                title={one.event ?? `${one.name} ${one.problem ?? ''}`}
                ref={(row) => {
                  if (i === cursor.value) row?.scrollIntoView({ block: 'nearest' });
                }}
                onClick={() => {
                  cursor.value = i;
                  toggle(one.event);
                }}
              >
                <span class="event-mark" aria-hidden="true">
                  {chosen && '✓'}
                </span>
                <span class="mono ellipsis">{one.name}</span>
                {one.problem && <span class="faint ellipsis">{one.problem}</span>}
              </li>
            );
          })}
          {list.value && events.length === 0 && <li class="faint pad">Nothing matches.</li>}
          {!list.value && !problem.value && (
            <li class="faint pad">{wantsFile && !file.value ? 'Choose a program or library first.' : 'Searching'}</li>
          )}
        </ul>
        <div class="event-details" aria-live="polite">
          {here && <strong class="mono">{here.name}</strong>}
          {here?.problem && <p>This function {here.problem}.</p>}
          {here && details.value && <Details details={details.value} />}
        </div>
      </div>
      {list.value?.more && (
        <span class="faint">
          {`${count(events.length)} of ${count(list.value.total ?? 0)} are shown. Enter more of the name.`}
        </span>
      )}
    </div>
  );
}
