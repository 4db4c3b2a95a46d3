// The time axis: what it shows, what is asked of the server for it, and what keys and gestures do with it.
import { computed, effect, signal } from '@preact/signals';
import { api, orEmpty } from '../api/client';
import type { Counters, Timeline } from '../api/types';
import type { Span } from '../model/axis';
import { axisOf, bucketFor, panned, spanOf, stepped, zoomed } from '../timeline/axis';
import {
  counterLine,
  counterPlot,
  healthLine,
  healthPlots,
  type Frame,
  type Line,
  type PlotKind,
} from '../timeline/plots';
import { dataVersion, frozen, healthVersion } from './data';
import { createQuery } from './query';
import { currentId, filter, isLive, session } from './session';
import { setView, tab, view } from './view';

// CSS pixels of the plotted area, by the component that draws it.
export const timelineWidth = signal(1200);
const SLICE_PIXELS = 3;
const MOST_SLICES = 1990;
// Lines have no more points than this.
const LINE_SLICES = 400;

const axis = computed(() => view.value.axis);
const shown = () => currentId.value !== '' && tab.value !== 'sessions';
const scope = () => currentId.value;

// Until when the session is known. Only grows; a frozen view's stands still with its data.
const knownEnd = signal({ session: '', ms: 0 });
export const sessionEnd = computed(() => {
  const known = knownEnd.value.session === currentId.value ? knownEnd.value.ms : 0;
  return frozen.value && known > 0
    ? known
    : Math.max(known, session.value?.id === currentId.value ? (session.value?.duration_ms ?? 0) : 0);
});

// What is asked for: a little more than what is shown, since the answer is of a later moment. A span that follows is asked for by its
// length, so that it is not another question each time.
const asked = () => {
  const chosen = axis.peek();
  const span = spanOf(chosen, sessionEnd.peek());
  const most = Math.min(MOST_SLICES - 10, Math.max(50, timelineWidth.peek() / SLICE_PIXELS));
  const bucket = bucketFor(span, most);
  const follows = chosen === null || 'last' in chosen;
  return { start: chosen === null ? null : Math.floor(span.from), end: follows ? null : Math.ceil(span.to), bucket };
};

export const timeline = createQuery<Timeline | null>({
  key: () =>
    shown()
      ? JSON.stringify([
          { ...filter.value, start: null, end: null },
          axis.value,
          view.value.lanes,
          Math.round(timelineWidth.value / 50),
        ])
      : null,
  version: dataVersion,
  scope,
  fetch: (abort) => {
    const { start, end, bucket } = asked();
    const slices = sessionEnd.peek() > 0 ? { bucket } : { slices: 400 };
    return orEmpty(api.timeline({ ...filter.peek(), start, end }, slices, view.peek().lanes, abort));
  },
  // A second is a few pixels of it.
  intervalMs: 1000,
  deferrable: true,
});

effect(() => {
  const ms = timeline.data.value?.session_end_ms;
  const id = timeline.data.value?.session;
  const known = knownEnd.peek();
  if (ms !== undefined && id !== undefined && (known.session !== id || ms > known.ms))
    knownEnd.value = { session: id, ms };
});

export const axisSpan = computed<Span>(() => spanOf(axis.value, sessionEnd.value));
// It goes on by itself with a live session.
export const follows = computed(() => isLive.value && (axis.value === null || 'last' in axis.value));

// What is known of the counters and the health at all, for the choice of lines.
export const plotMenuOpen = signal(false);
export const plotChoices = createQuery<PlotKind[]>({
  key: () => (plotMenuOpen.value && shown() ? currentId.value : null),
  scope,
  fetch: async (abort) => {
    const [counters, health] = await Promise.all([
      api.counters({ session: currentId.peek() }, 'total', abort, 1),
      api.health(currentId.peek(), abort),
    ]);
    const counted = counters.groups[0]?.counters.filter((counter) => counter.status === 'counted') ?? [];
    return [
      ...counted.map((counter) => counterPlot(counter.name, counter.unit)),
      ...healthPlots.filter((plot) => plot.type in health),
    ];
  },
});

export interface Plotted extends PlotKind {
  line: Line;
}

export const plots = createQuery<Plotted[]>({
  key: () =>
    shown() && view.value.plots.length > 0 ? JSON.stringify([currentId.value, axis.value, view.value.plots]) : null,
  version: () => `${dataVersion()}/${healthVersion()}`,
  scope,
  fetch: async (abort) => {
    const wanted = view.peek().plots;
    const { start, end } = asked();
    // The interval before tells how it begins.
    const range = { session: currentId.peek(), start: start === null ? null : Math.max(0, start - 5000), end };
    const startNs = session.peek()?.start_ns ?? 0;
    const health = healthPlots.filter((plot) => wanted.includes(plot.id));
    const types = [...new Set(health.map((plot) => plot.type))];
    const [counters, ...frames] = await Promise.all([
      wanted.some((id) => id.startsWith('counter:'))
        ? api.counters(range, 'total', abort, LINE_SLICES)
        : Promise.resolve<Counters | null>(null),
      ...types.map((type) => api.healthHistory(range, type, LINE_SLICES, abort)),
    ]);
    const lines: Plotted[] = [];
    for (const id of wanted) {
      const plot = health.find((one) => one.id === id);
      if (plot)
        lines.push({ ...plot, line: healthLine(plot, (frames[types.indexOf(plot.type)] ?? []) as Frame[], startNs) });
      else if (id.startsWith('counter:')) {
        const name = id.slice('counter:'.length);
        const unit = counters?.groups[0]?.counters.find((one) => one.name === name)?.unit ?? '';
        lines.push({
          ...counterPlot(name, unit),
          line: counters ? counterLine(name, counters) : { time: [], value: [] },
        });
      }
    }
    return lines;
  },
  intervalMs: 500,
});

export const MOST_PLOTS = 6;

export function togglePlot(id: string): void {
  const now = view.value.plots;
  const next = now.includes(id) ? now.filter((one) => one !== id) : [...now, id].slice(-MOST_PLOTS);
  setView({ plots: next }, 'replace');
}

const show = (span: Span) => setView({ axis: axisOf(span, sessionEnd.value, isLive.value) }, 'replace');

// The middle of what is chosen, when that is in sight; else of what is shown.
function middle(): number {
  const { from, to } = axisSpan.value;
  const { start, end } = view.value;
  const chosen = start !== null && end !== null ? (start + end) / 2 : NaN;
  return chosen >= from && chosen <= to ? chosen : (from + to) / 2;
}

export const zoomAxis = (factor: number, around = middle()) => show(zoomed(axisSpan.value, factor, around));
export const panAxis = (share: number) => show(panned(axisSpan.value, share));
export const showAllTime = () => setView({ axis: null }, 'replace');
export function followNow(): void {
  const { from, to } = axisSpan.value;
  setView({ axis: axis.value === null ? null : { last: Math.round(to - from) } }, 'replace');
}
export const clearRange = () => setView({ start: null, end: null });

export function zoomToRange(): void {
  const { start, end } = view.value;
  if (start === null || end === null) return;
  const edge = (end - start) / 10;
  show({ from: start - edge, to: end + edge });
}

// The chosen range, moved by its own width; the axis comes along.
export function stepRange(by: number): void {
  const { start, end } = view.value;
  if (start === null || end === null) return;
  const range = stepped({ start, end }, by, sessionEnd.value);
  setView(range, 'replace');
  const { from, to } = axisSpan.value;
  if (range.end > to) show({ from: range.end - (to - from), to: range.end });
  else if (range.start < from) show({ from: range.start, to: range.start + (to - from) });
}

// Wall clock of the target at ms 0.
export const startedAt = computed(() => {
  const shownSession = session.value;
  return shownSession ? Date.parse(shownSession.target_started ?? shownSession.started) : NaN;
});
