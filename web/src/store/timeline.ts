// The time axis: its range, the data that it needs, and the actions of keys and gestures.
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

// Width of the plot in CSS pixels, set by the component that draws it.
export const timelineWidth = signal(1200);
const SLICE_PIXELS = 3;
const MOST_SLICES = 1990;
// The maximum number of points of a line.
const LINE_SLICES = 400;

const axis = computed(() => view.value.axis);
const shown = () => currentId.value !== '' && tab.value !== 'sessions';
const scope = () => currentId.value;

// The end of the known data. It only grows, and it stands still while the view is frozen.
const knownEnd = signal({ session: '', ms: 0 });
export const sessionEnd = computed(() => {
  const known = knownEnd.value.session === currentId.value ? knownEnd.value.ms : 0;
  return frozen.value && known > 0
    ? known
    : Math.max(known, session.value?.id === currentId.value ? (session.value?.duration_ms ?? 0) : 0);
});

// The range to request. If the axis follows live data, the range has no end, because the answer is from a later moment.
// The query key contains only the length of such a range, so it does not change with time.
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
  // One second is only a few pixels wide.
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
// The axis moves with a live session.
export const follows = computed(() => isLive.value && (axis.value === null || 'last' in axis.value));

// All available counters and health values, for the menu of lines.
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
    // The interval before the range provides the first value.
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

// The middle of the chosen range if it is visible, else of the shown range.
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

const MOMENT_MS = 1000;
// Shows a moment in the middle of the axis, and what happened within a second around it.
export function showMoment(ms: number): void {
  const { from, to } = axisSpan.value;
  const half = Math.min(to - from, MOMENT_MS) / 2;
  show({ from: ms - half, to: ms + half });
}

// Moves the chosen range by its own width. The axis follows.
export function stepRange(by: number): void {
  const { start, end } = view.value;
  if (start === null || end === null) return;
  const range = stepped({ start, end }, by, sessionEnd.value);
  setView(range, 'replace');
  const { from, to } = axisSpan.value;
  if (range.end > to) show({ from: range.end - (to - from), to: range.end });
  else if (range.start < from) show({ from: range.start, to: range.start + (to - from) });
}

// Wall-clock time of the target at 0 ms.
export const startedAt = computed(() => {
  const shownSession = session.value;
  return shownSession ? Date.parse(shownSession.target_started ?? shownSession.started) : NaN;
});
