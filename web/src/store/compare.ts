// The baseline of the view: choosing, swapping and dropping it.
import { computed } from '@preact/signals';
import type { Baseline } from '../model/baseline';
import { threads } from './data';
import { currentId, session, sessions } from './session';
import { sessionEnd } from './timeline';
import { setView, view } from './view';
import { partText, rangeText } from '../text/diff';
import { sessionTitle } from '../text/sessions';

export const comparing = computed(() => view.value.baseline !== null);

const whole = (id: string): Baseline => ({ session: id, pids: [], tids: [], start: null, end: null });

// The shown view, as a baseline.
export function shownNow(): Baseline {
  const { pids, tids, start, end } = view.value;
  return { session: currentId.value, pids, tids, start, end };
}

function compareWith(baseline: Baseline): void {
  setView({ baseline, zoom: [], span: null, hidden: [] });
}

export const compareWithSession = (id: string): void => compareWith(whole(id));

// Makes the shown view the baseline. The next choice is compared with it.
export const holdShown = (): void => compareWith(shownNow());

// Makes all data until now the baseline, and shows only later data.
export function snapshot(): void {
  const now = Math.round(sessionEnd.value);
  setView({ baseline: { ...shownNow(), end: now }, start: now, end: null, zoom: [], span: null, hidden: [] });
}

// The range before the chosen one, of the same length.
export const canCompareBefore = computed(() => view.value.start !== null && view.value.start > 0);
export function compareBefore(): void {
  const { start, end } = view.value;
  if (start === null) return;
  const length = (end ?? sessionEnd.value) - start;
  compareWith({ ...shownNow(), start: Math.max(0, start - length), end: start });
}

// Compares one thread with another of the same session.
export function compareThreads(before: number, after: number): void {
  setView({
    tab: 'flame',
    tids: [after],
    zoom: [],
    span: null,
    hidden: [],
    baseline: { ...shownNow(), tids: [before] },
  });
}

// Swaps the view and the baseline.
export function exchange(): void {
  const { baseline } = view.value;
  if (!baseline) return;
  setView({ ...baseline, baseline: shownNow() });
}

export const dropBaseline = (): void => setView({ baseline: null, zoom: [], span: null, hidden: [] });

const threadName = (tid: number): string =>
  threads.data.value?.threads.find((thread) => thread.tid === tid)?.comm ?? String(tid);
const sessionName = (id: string): string => {
  const known = sessions.value.find((entry) => entry.id === id);
  return known ? sessionTitle(known) : id;
};

export const baselineText = computed(() => {
  const { baseline } = view.value;
  if (!baseline) return '';
  const part = partText(baseline, threadName);
  const same = baseline.session === currentId.value;
  return same ? part || 'itself' : [sessionName(baseline.session), part].filter(Boolean).join(', ');
});

export const shownText = computed(
  () => rangeText(view.value.start, view.value.end) || (session.value && sessionTitle(session.value)) || 'all of it',
);
