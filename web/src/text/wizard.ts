// The steps of the guide, and which of them are reachable. Pure.
import { draftOfStored, type RecordingDraft, usualDraft } from './recording';

export const steps = ['connect', 'process', 'check', 'files', 'options', 'start'] as const;
export type Step = (typeof steps)[number];

export const stepTitles: Record<Step, string> = {
  connect: 'Connect',
  process: 'Process',
  check: 'What works',
  files: 'Symbols and sources',
  options: 'Options',
  start: 'Start',
};

export interface WizardState {
  step: Step;
  agent: string;
  draft: RecordingDraft;
}
export const freshWizard: WizardState = { step: 'connect', agent: '', draft: usualDraft };

// What the next step still requires, as a sentence; '' if nothing.
export function missing(state: WizardState, connected: boolean): string {
  if (!connected || !state.agent) return 'Connect an agent first.';
  if (state.step !== 'connect' && state.draft.pid === 0) return 'Choose a process first.';
  return '';
}

// Whether the step is reachable from the current one.
export function reachable(step: Step, state: WizardState, connected: boolean): boolean {
  const at = steps.indexOf(step);
  if (at <= steps.indexOf(state.step)) return true;
  if (!connected || !state.agent) return false;
  return at <= 1 || state.draft.pid !== 0;
}

export const after = (step: Step): Step => steps[Math.min(steps.length - 1, steps.indexOf(step) + 1)]!;
export const before = (step: Step): Step => steps[Math.max(0, steps.indexOf(step) - 1)]!;
export const isLater = (step: Step, than: Step) => steps.indexOf(step) > steps.indexOf(than);

// What the browser stores: that the guide was shown, and the last settings. Never a process, because pids change.
export interface Remembered {
  seen: boolean;
  draft: RecordingDraft;
}
export function parseRemembered(text: string | null): Remembered {
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    if (typeof value !== 'object' || value === null) return { seen: false, draft: usualDraft };
    const known = value as Record<string, unknown>;
    return { seen: known['seen'] === true, draft: draftOfStored(known['draft']) };
  } catch {
    return { seen: false, draft: usualDraft };
  }
}
export const formatRemembered = ({
  seen,
  draft: { frequency, events, others, filter, unwind, stackKib, kernel },
}: Remembered): string =>
  JSON.stringify({ seen, draft: { frequency, events, others, filter, unwind, stackKib, kernel } });
