// Changes rate, events, stacks or processes of the running recording. The session continues.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { agentStatus, changeRecording } from '../../store/actions';
import { capabilitiesFor, look } from '../../store/probe';
import { closeDialog, closeIfOpen, dialog } from '../../store/ui';
import { changeArgs, draftOfReply, isValid, type RecordingDraft, targetText } from '../../text/recording';
import { Button } from '../widgets/Button';
import { Message } from '../widgets/Message';
import { Modal } from '../widgets/Modal';
import { ProcessTable } from './ProcessTable';
import { RecordingFields } from './RecordingFields';

export function ChangeDialog({ agent }: { agent: string }) {
  const before = useSignal<RecordingDraft | null>(null);
  const draft = useSignal<RecordingDraft | null>(null);
  const problem = useSignal('');
  const choosing = useSignal(false);
  const busy = useSignal(false);
  useEffect(() => {
    void look(agent, false);
    agentStatus(agent).then(
      (reply) => (draft.value = before.value = draftOfReply(reply)),
      (reason: unknown) => (problem.value = reason instanceof Error ? reason.message : String(reason)),
    );
  }, [agent]);
  const edit = (patch: Partial<RecordingDraft>) => draft.value && (draft.value = { ...draft.value, ...patch });
  const args = before.value && draft.value ? changeArgs(before.value, draft.value) : {};
  const changed = Object.keys(args).length > 0;
  const known = capabilitiesFor(agent);
  const valid = draft.value !== null && isValid(draft.value);
  const apply = async () => {
    if (!changed || !valid || busy.value) return;
    const shown = dialog.peek();
    busy.value = true;
    problem.value = await changeRecording(agent, args);
    busy.value = false;
    if (!problem.value) closeIfOpen(shown);
  };
  return (
    <Modal
      title="Change the recording"
      class={choosing.value ? 'process-dialog' : 'settings-dialog change-dialog'}
      footer={
        <>
          <span class="faint">The session continues; the moment of the change is marked on the time axis.</span>
          <span class="spacer" />
          {choosing.value ? (
            <Button title="Back to rate, events and stacks" onClick={() => (choosing.value = false)}>
              Done
            </Button>
          ) : (
            <>
              <Button title="Close" onClick={closeDialog}>
                Cancel
              </Button>
              <Button
                id="apply-change"
                kind="primary"
                title="Record this way from now on"
                disabled={!changed || !valid || busy.value}
                onClick={() => void apply()}
              >
                Apply
              </Button>
            </>
          )}
        </>
      }
    >
      {!draft.value ? (
        <Message title={problem.value || 'Loading the settings of the agent'} busy={!problem.value} />
      ) : choosing.value ? (
        <ProcessTable agent={agent} chosen={draft.value} onChoose={edit} onStart={() => (choosing.value = false)} />
      ) : (
        <>
          {problem.value && (
            <p class="note note-error" role="alert">
              {`Nothing was changed: ${problem.value}`}
            </p>
          )}
          <div class="target-row">
            <div>
              <h3>Target</h3>
              <span>{targetText(draft.value)}</span>
              {before.value && targetText(draft.value) !== targetText(before.value) && (
                <span class="faint"> instead of {targetText(before.value)}</span>
              )}
            </div>
            <Button
              id="other-process"
              title="Choose other processes for the same session"
              onClick={() => (choosing.value = true)}
            >
              Other processes
            </Button>
          </div>
          <RecordingFields agent={agent} draft={draft.value} known={known} edit={edit} />
        </>
      )}
    </Modal>
  );
}
