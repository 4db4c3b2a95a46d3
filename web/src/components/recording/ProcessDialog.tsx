// The processes of a target with their CPU use, to choose what to profile.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { agentStatus, startProfiling } from '../../store/actions';
import { agents, connectedAgents } from '../../store/live';
import { capabilitiesFor } from '../../store/probe';
import { closeDialog, closeIfOpen, dialog } from '../../store/ui';
import { draftOfIdle, eventsText, type RecordingDraft, isValid, targetName, usualDraft } from '../../text/recording';
import { Button } from '../widgets/Button';
import { Modal } from '../widgets/Modal';
import { ProcessTable } from './ProcessTable';
import { RecordingFields } from './RecordingFields';

export function ProcessDialog({ agent }: { agent: string }) {
  const edits = useSignal<Partial<RecordingDraft>>({});
  const own = useSignal<Partial<RecordingDraft>>({}); // the agent's settings
  const settled = useSignal(false); // the settings were read, or the agent does not answer
  const options = useSignal(false); // shown instead of the processes
  const busy = useSignal(false);
  const problem = useSignal(''); // why the recording cannot start
  const edit = (patch: Partial<RecordingDraft>) => (edits.value = { ...edits.value, ...patch });
  const draft: RecordingDraft = { ...usualDraft, ...own.value, ...edits.value };

  const machine = agents.value.find((entry) => entry.id === agent);
  const running = machine?.state === 'profiling' || machine?.state === 'paused';
  useEffect(() => {
    let current = true;
    settled.value = false;
    void agentStatus(agent)
      .then(
        (reply) => current && (own.value = draftOfIdle(reply)),
        () => undefined,
      )
      .finally(() => current && (settled.value = true));
    return () => {
      current = false;
    };
  }, [agent, running]);

  const { pid, frequency, unwind } = draft;
  const valid = settled.value && pid !== 0 && isValid(draft);
  const start = async () => {
    if (!valid || busy.value || running) return;
    const shown = dialog.peek();
    busy.value = true;
    problem.value = await startProfiling(agent, draft);
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
          <span class="faint ellipsis foot-options">{`${frequency} Hz · ${unwind} · ${eventsText(draft)}`}</span>
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
            {`Profile ${targetName(draft)}`.trim()}
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
        <RecordingFields agent={agent} draft={draft} known={capabilitiesFor(agent)} edit={edit} />
      ) : (
        <ProcessTable agent={agent} chosen={draft} onChoose={edit} onStart={() => void start()}>
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
