// What runs on a target, with its use of the CPU, to choose what is profiled.
import { useSignal } from '@preact/signals';
import { startProfiling } from '../store/actions';
import { agents, connectedAgents } from '../store/live';
import { capabilitiesFor } from '../store/probe';
import { closeDialog, dialog } from '../store/ui';
import { type RecordingDraft, isValid, unwindWords, usualDraft } from '../text/recording';
import { Button } from './Button';
import { Modal } from './Modal';
import { ProcessTable } from './ProcessTable';

export function ProcessDialog({ agent }: { agent: string }) {
  const draft = useSignal<RecordingDraft>(usualDraft);
  const busy = useSignal(false);
  const problem = useSignal(''); // what kept it from starting
  const edit = (patch: Partial<RecordingDraft>) => (draft.value = { ...draft.value, ...patch });

  const machine = agents.value.find((entry) => entry.id === agent);
  const known = capabilitiesFor(agent);
  const running = machine?.state === 'profiling' || machine?.state === 'paused';
  const { pid, comm, frequency, events, unwind } = draft.value;
  const valid = pid !== 0 && isValid(draft.value);
  const start = async () => {
    if (!valid || busy.value || running) return;
    busy.value = true;
    problem.value = await startProfiling(agent, draft.value);
    busy.value = false;
    if (!problem.value) closeDialog();
  };

  return (
    <Modal
      title="Choose a process to profile"
      class="process-dialog"
      footer={
        <>
          <div class="foot-options">
          <label class="inline-field" title="Samples a second and thread">
            Frequency
            <input class="field" type="number" min="1" max="100000" value={frequency} onInput={(event) => edit({ frequency: Number(event.currentTarget.value) })} />
            Hz
          </label>
          {known.unwind.length > 0 && (
            <label class="inline-field" title={unwindWords[unwind] ?? ''}>
              Stacks
              <select value={unwind} onChange={(event) => edit({ unwind: event.currentTarget.value })}>
                {known.unwind.map((mode) => (
                  <option key={mode} value={mode}>
                    {mode}
                  </option>
                ))}
              </select>
            </label>
          )}
          {known.events.length > 0 && (
            <fieldset class="events">
              <legend class="visually-hidden">Events</legend>
              {known.events.map((name) => (
                <label key={name} class="check">
                  <input
                    type="checkbox"
                    checked={events.includes(name)}
                    onChange={(event) => edit({ events: event.currentTarget.checked ? [...events, name] : events.filter((other) => other !== name) })}
                  />
                  {name}
                </label>
              ))}
              {events.length === 0 && <span class="faint">default event</span>}
            </fieldset>
          )}
          </div>
          {running && <span class="note">This agent is recording. Stop it first.</span>}
          <Button title="Close" onClick={closeDialog}>
            Cancel
          </Button>
          <Button id="start" icon="record" kind="primary" title="Start profiling" disabled={!valid || busy.value || running} onClick={() => void start()}>
            {comm ? `Profile ${comm}` : 'Profile'}
          </Button>
        </>
      }
    >
      {problem.value && (
        <p class="note note-error" role="alert">
          {`It does not start: ${problem.value}`}
        </p>
      )}
      <ProcessTable agent={agent} chosen={draft.value} onChoose={edit} onStart={() => void start()}>
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
      </ProcessTable>
    </Modal>
  );
}
