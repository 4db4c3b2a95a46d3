// The arithmetic of the time axis: its range, zooming, panning, slices and labels. Pure. Times are ms since the session's start.
import { SHORTEST_MS, type Axis, type Span } from '../model/axis';
import { ticks } from '../text/format';

// `end`: the time up to which the session has data.
export function spanOf(axis: Axis, end: number): Span {
  if (axis === null) return { from: 0, to: Math.max(end, SHORTEST_MS) };
  if ('last' in axis)
    return { from: Math.max(0, end - axis.last), to: Math.max(end, Math.min(axis.last, end), SHORTEST_MS) };
  return axis;
}

// Converts a range to a choice: the whole session if the range covers it, or the newest part if it ends at a live session's end.
export function axisOf(span: Span, end: number, live: boolean): Axis {
  const width = Math.max(SHORTEST_MS, Math.min(span.to - span.from, end));
  let from = Math.round(Math.min(Math.max(0, span.from), Math.max(0, end - width)));
  const to = Math.round(Math.min(Math.max(end, SHORTEST_MS), from + width));
  from = Math.min(from, to - SHORTEST_MS);
  // A range reaches an edge if it ends within 1% of its width from there, because a pointer is not more precise.
  const near = width / 100;
  if (from <= near && to >= end - near) return null;
  if (live && to >= end - near) return { last: Math.round(width) };
  return { from: Math.max(0, from), to };
}

// Zooms by `factor` (below 1: in). The time `around` keeps its position.
export function zoomed(span: Span, factor: number, around: number): Span {
  const width = Math.max(SHORTEST_MS, (span.to - span.from) * factor);
  const share = (around - span.from) / Math.max(1e-9, span.to - span.from);
  return { from: around - share * width, to: around + (1 - share) * width };
}

export function panned(span: Span, share: number): Span {
  const by = (span.to - span.from) * share;
  return { from: span.from + by, to: span.to + by };
}

// The width of slices such that at most `most` of them fill the span. It is a round number, so that slices keep their samples
// while the span grows.
export function bucketFor(span: Span, most: number): number {
  const rough = Math.max(10, (span.to - span.from) / Math.max(1, most));
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= rough * 0.999999) ?? rough;
}

// The range of whole ms between two times, limited to the session; null: it is empty.
export function rangeOf(a: number, b: number, end: number): { start: number; end: number } | null {
  const inside = (ms: number) => Math.max(0, Math.min(end, ms));
  const range = { start: Math.floor(inside(Math.min(a, b))), end: Math.ceil(inside(Math.max(a, b))) };
  return range.end > range.start ? range : null;
}

export interface CoarseStretch {
  readonly start_ms: number;
  readonly end_ms: number;
  readonly bucket_ms: number;
}

// Extends a chosen range to whole buckets where the session is coarse, because a query includes a bucket entirely or not at all.
// Buckets start at multiples of their width on the target's clock, whose time at ms 0 is `originNs`.
export function snapped(
  range: { start: number; end: number },
  coarse: readonly CoarseStretch[],
  originNs: number,
): { start: number; end: number } {
  const at = (ms: number) =>
    coarse.find((stretch) => stretch.bucket_ms > 0 && ms >= stretch.start_ms && ms < stretch.end_ms);
  const edge = (ms: number, round: (steps: number) => number) => {
    const stretch = at(ms);
    if (!stretch) return ms;
    const origin = originNs / 1e6;
    const moved = round((origin + ms) / stretch.bucket_ms) * stretch.bucket_ms - origin;
    return Math.min(stretch.end_ms, Math.max(0, stretch.start_ms, moved));
  };
  return { start: Math.floor(edge(range.start, Math.floor)), end: Math.ceil(edge(range.end, Math.ceil)) };
}

// Moves a chosen range by `by` times its width, within the session.
export function stepped(
  range: { start: number; end: number },
  by: number,
  end: number,
): { start: number; end: number } {
  const width = range.end - range.start;
  const start = Math.max(0, Math.min(end - width, range.start + by * width));
  return { start: Math.round(start), end: Math.round(start + width) };
}

// For example 14:03:12. Ticks of less than a second also show milliseconds; ticks of a minute or more do not show seconds.
export function wallClock(epochMs: number, stepMs: number): string {
  const time = new Date(epochMs);
  if (Number.isNaN(time.getTime())) return '';
  const two = (n: number) => String(n).padStart(2, '0');
  const whole = `${two(time.getHours())}:${two(time.getMinutes())}`;
  if (stepMs >= 60_000) return whole;
  const seconds = `${whole}:${two(time.getSeconds())}`;
  return stepMs >= 1000 ? seconds : `${seconds}.${String(time.getMilliseconds()).padStart(3, '0')}`;
}

// Ticks at round times, with enough space for their labels.
export const axisTicks = (span: Span, width: number) => ticks(span.from, span.to, Math.max(2, Math.floor(width / 96)));
