// What runs on a target, with its use of the CPU, to choose what is profiled.
import { useSignal } from '@preact/signals';
import { startProfiling } from '../store/actions';
import { agents, connectedAgents } from '../store/live';
import { capabilitiesFor } from '../store/probe';
import { closeDialog, closeIfOpen, dialog } from '../store/ui';
import { eventsText, type RecordingDraft, isValid, targetName, usualDraft } from '../text/recording';
import { Button } from './Button';
import { Modal } from './Modal';
import { ProcessTable } from './ProcessTable';
import { RecordingFields } from './RecordingFields';

export function ProcessDialog({ agent }: { agent: string }) {
  const draft = useSignal<RecordingDraft>(usualDraft);
  const options = useSignal(false); // in the place of the processes
  const busy = useSignal(false);
  const problem = useSignal(''); // what kept it from starting
  const edit = (patch: Partial<RecordingDraft>) => (draft.value = { ...draft.value, ...patch });

  const machine = agents.value.find((entry) => entry.id === agent);
  const running = machine?.state === 'profiling' || machine?.state === 'paused';
  const { pid, frequency, unwind } = draft.value;
  const valid = pid !== 0 && isValid(draft.value);
  const start = async () => {
    if (!valid || busy.value || running) return;
    const shown = dialog.peek();
    busy.value = true;
    problem.value = await startProfiling(agent, draft.value);
    busy.value = false;
    if (!problem.value) closeIfOpen(shown);
  };

  return (
    <Modal
      title="Choose a process to profile"
      class="process-dialog"
      footer={
        <>
          <Button
            id="options"
            title="Rate, stacks and events"
            pressed={options.value}
            onClick={() => (options.value = !options.value)}
          >
            Options
          </Button>
          <span class="faint ellipsis foot-options">{`${frequency} Hz · ${unwind} · ${eventsText(draft.value)}`}</span>
          {running && <span class="note">This agent is recording. Stop it first.</span>}
          <Button title="Close" onClick={closeDialog}>
            Cancel
          </Button>
          <Button
            id="start"
            icon="record"
            kind="primary"
            title="Start profiling"
            disabled={!valid || busy.value || running}
            onClick={() => void start()}
          >
            {`Profile ${targetName(draft.value)}`.trim()}
          </Button>
        </>
      }
    >
      {problem.value && (
        <p class="note note-error" role="alert">
          {`It does not start: ${problem.value}`}
        </p>
      )}
      {options.value ? (
        <RecordingFields draft={draft.value} known={capabilitiesFor(agent)} edit={edit} />
      ) : (
        <ProcessTable agent={agent} chosen={draft.value} onChoose={edit} onStart={() => void start()}>
          {connectedAgents.value.length > 1 && (
            <label class="select">
              <span class="visually-hidden">Agent</span>
              <select
                value={agent}
                onChange={(event) => (dialog.value = { kind: 'process', agent: event.currentTarget.value })}
              >
                {connectedAgents.value.map((entry) => (
                  <option key={entry.id} value={entry.id}>
                    {entry.address}
                  </option>
                ))}
              </select>
            </label>
          )}
        </ProcessTable>
      )}
    </Modal>
  );
}
