// The guide: six steps to a first flame graph. It can be closed at any step and reopened from the header.
import { useSignal } from '@preact/signals';
import { agents, connectedAgents } from '../../store/live';
import { capabilitiesFor } from '../../store/probe';
import { closeDialog } from '../../store/ui';
import {
  back,
  blocker,
  chooseAgent,
  editWizard,
  finish,
  goTo,
  isConnected,
  next,
  startProblem,
  wizard,
} from '../../store/wizard';
import { commandOf, eventsText, hasTracepoint, isValid, pickedOf, targetName, targetText } from '../../text/recording';
import { reachable, steps, stepTitles, type Step } from '../../text/wizard';
import { Button } from '../widgets/Button';
import { CapabilityList } from './CapabilityList';
import { ConfigForm } from './ConfigForm';
import { ConnectOut } from './ConnectOut';
import { CopyLine } from '../widgets/CopyLine';
import { Modal } from '../widgets/Modal';
import { ProcessTable } from '../recording/ProcessTable';
import { RecordingFields } from '../recording/RecordingFields';
import { TargetLine } from './TargetLine';

function Progress() {
  const state = wizard.value;
  const at = steps.indexOf(state.step);
  return (
    <ol class="wizard-steps" aria-label="Steps">
      {steps.map((step, i) => (
        <li key={step}>
          <button
            type="button"
            class={`wizard-step ${i < at ? 'wizard-done' : ''}`}
            aria-current={step === state.step ? 'step' : undefined}
            disabled={!reachable(step, state, isConnected())}
            onClick={() => void goTo(step)}
          >
            <span class="wizard-number">{i + 1}</span>
            {stepTitles[step]}
          </button>
        </li>
      ))}
    </ol>
  );
}

function Connect() {
  const here = connectedAgents.value;
  return (
    <div class="wizard-pane">
      <p>Run this line on the machine or board that you want to profile. Nothing else needs to be installed there.</p>
      <TargetLine />
      <ConnectOut />
      {here.length === 0 ? (
        <p class="start-wait" role="status">
          <span class="dot" /> Waiting for an agent
        </p>
      ) : (
        <fieldset class="wizard-agents">
          <legend>Connected</legend>
          {here.map((agent) => {
            const platform =
              (agent.hello as { platform?: { hostname?: string; arch?: string; kernel?: string } }).platform ?? {};
            return (
              <label key={agent.id} class="check">
                <input
                  type="radio"
                  name="agent"
                  checked={agent.id === wizard.value.agent}
                  onChange={() => chooseAgent(agent.id)}
                />
                <strong>{platform.hostname || agent.address}</strong>
                <span class="faint">
                  {[platform.arch, platform.kernel, agent.address, agent.state === 'idle' ? '' : 'recording']
                    .filter(Boolean)
                    .join(' · ')}
                </span>
              </label>
            );
          })}
        </fieldset>
      )}
    </div>
  );
}

function Summary() {
  const { agent, draft } = wizard.value;
  const machine = agents.value.find((entry) => entry.id === agent);
  const platform = (machine?.hello as { platform?: { hostname?: string } } | undefined)?.platform;
  const rows: [string, string][] = [
    ['Machine', platform?.hostname || machine?.address || ''],
    ['Target', targetText(draft)],
    ['Rate', `${draft.frequency} Hz`],
    ['Stacks', draft.unwind === 'dwarf' ? `dwarf, ${draft.stackKib} KiB` : draft.unwind],
    ['Events', eventsText(draft)],
    ...(hasTracepoint(draft) && draft.filter ? [['Filter', draft.filter] as [string, string]] : []),
    ['Kernel', draft.kernel ? 'kernel functions too, where the kernel allows it' : 'user space only'],
  ];
  return (
    <div class="wizard-pane">
      <dl class="wizard-summary">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {startProblem.value && (
        <p class="note note-error" role="alert">
          {`It does not start: ${startProblem.value}`}
        </p>
      )}
      <p class="faint">The same without this page, on the machine itself:</p>
      <CopyLine text={commandOf(draft)} />
      <p class="faint">
        You can change rate, events, stacks and process while it records, without losing the session: use Change in the
        header.
      </p>
    </div>
  );
}

function Pane({ step }: { step: Step }) {
  const { agent, draft } = wizard.value;
  switch (step) {
    case 'connect':
      return <Connect />;
    case 'process':
      return <ProcessTable agent={agent} chosen={draft} onChoose={editWizard} onStart={() => void next()} />;
    case 'check':
      return <CapabilityList agent={agent} picked={pickedOf(draft)} />;
    case 'files':
      return <ConfigForm />;
    case 'options':
      return <RecordingFields agent={agent} draft={draft} known={capabilitiesFor(agent)} edit={editWizard} />;
    case 'start':
      return <Summary />;
  }
}

export function Wizard() {
  const busy = useSignal(false);
  const { step, agent, draft } = wizard.value;
  const recording = agents.value.find((entry) => entry.id === agent)?.state !== 'idle' && agent !== '';
  const missing = blocker() || (step === 'options' && !isValid(draft) ? 'Correct what is marked first.' : '');
  const act = async (work: () => Promise<unknown>) => {
    if (busy.value) return;
    busy.value = true;
    await work();
    busy.value = false;
  };
  return (
    <Modal
      title="Guide"
      class="wizard"
      footer={
        <>
          <Button id="wizard-skip" kind="ghost" title="Close the guide; it stays in the header" onClick={closeDialog}>
            Skip the guide
          </Button>
          <span class="spacer" />
          <span class="note" role="status">
            {missing || (step === 'start' && recording ? 'This agent is recording. Stop it first.' : '')}
          </span>
          {step !== 'connect' && (
            <Button id="wizard-back" title="Previous step" onClick={() => void back()}>
              Back
            </Button>
          )}
          {step === 'start' ? (
            <Button
              id="wizard-start"
              icon="record"
              kind="primary"
              title="Start profiling"
              disabled={missing !== '' || recording || busy.value}
              onClick={() => void act(finish)}
            >
              {`Profile ${targetName(draft)}`}
            </Button>
          ) : (
            <Button
              id="wizard-next"
              kind="primary"
              title="Next step"
              disabled={missing !== '' || busy.value}
              onClick={() => void act(next)}
            >
              Next
            </Button>
          )}
        </>
      }
    >
      <Progress />
      <div class={`wizard-body wizard-${step}`}>
        <Pane step={step} />
      </div>
    </Modal>
  );
}
