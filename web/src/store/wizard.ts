// The current step of the guide, and what the browser stores about it.
import { effect, signal } from '@preact/signals';
import {
  after,
  before,
  formatRemembered,
  freshWizard,
  isLater,
  missing,
  parseRemembered,
  reachable,
  type Step,
  type WizardState,
} from '../text/wizard';
import { changedOfIdle, processTarget, type RecordingDraft } from '../text/recording';
import { agentStatus, startProfiling } from './actions';
import { applyConfig } from './configDraft';
import { connectedAgents, streamState } from './live';
import { sessionList } from './session';
import { closeIfOpen, dialog } from './ui';
import { view } from './view';

const STORAGE = 'flamewire-guide';
const remembered = parseRemembered(localStorage.getItem(STORAGE));

export const wizard = signal<WizardState>({ ...freshWizard, draft: remembered.draft });
const remember = () => localStorage.setItem(STORAGE, formatRemembered({ seen: true, draft: wizard.value.draft }));

// Why the last start failed, while its step is shown.
export const startProblem = signal('');

export const isConnected = () => connectedAgents.value.some((agent) => agent.id === wizard.value.agent);
export const blocker = () => missing(wizard.value, isConnected());

export function editWizard(patch: Partial<RecordingDraft>): void {
  wizard.value = { ...wizard.value, draft: { ...wizard.value.draft, ...patch } };
}

export function chooseAgent(agent: string): void {
  if (agent === wizard.value.agent) return;
  wizard.value = { ...wizard.value, agent, draft: { ...wizard.value.draft, ...processTarget([]) } };
  // The agent's command line overrides the stored options. Without an answer, the options show what will be sent.
  agentStatus(agent).then(
    (reply) => wizard.value.agent === agent && editWizard(changedOfIdle(reply)),
    () => undefined,
  );
}

let moves = 0;
export async function goTo(step: Step): Promise<void> {
  const move = ++moves;
  const { step: from } = wizard.value;
  if (from === 'files' && isLater(step, from) && !(await applyConfig())) return;
  // Another step may have been chosen while the change was applied.
  if (move !== moves) return;
  startProblem.value = '';
  if (reachable(step, wizard.value, isConnected())) wizard.value = { ...wizard.value, step };
}

export async function next(): Promise<void> {
  if (!blocker()) await goTo(after(wizard.value.step));
}
export const back = () => goTo(before(wizard.value.step));

export async function finish(): Promise<boolean> {
  if (blocker()) return false;
  const shown = dialog.peek();
  startProblem.value = await startProfiling(wizard.value.agent, wizard.value.draft);
  if (startProblem.value) return false;
  remember();
  wizard.value = { ...wizard.value, step: 'connect', draft: { ...wizard.value.draft, ...processTarget([]) } };
  closeIfOpen(shown);
  return true;
}

// Choose an agent, preferably an idle one, if none is chosen or the chosen one has disconnected.
effect(() => {
  const here = connectedAgents.value;
  const { agent } = wizard.peek();
  if (here.some((entry) => entry.id === agent)) return;
  const idle = here.find((entry) => entry.state === 'idle') ?? here[0];
  chooseAgent(idle?.id ?? '');
});

// Open the guide on the first visit to a server without sessions, unless the address selects a view.
let offered = remembered.seen;
effect(() => {
  if (offered || streamState.value !== 'open' || !sessionList.data.value) return;
  offered = true;
  if (
    sessionList.data.value.total > 0 ||
    view.peek().session ||
    view.peek().tab !== 'flame' ||
    dialog.peek().kind !== 'none'
  )
    return;
  dialog.value = { kind: 'wizard' };
});

// A closed guide does not open again on its own.
let open = false;
effect(() => {
  const now = dialog.value.kind === 'wizard';
  if (open && !now) remember();
  open = now;
});
