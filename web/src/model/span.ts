// The part of a zoomed frame that the window shows, as shares of the frame's weight. Pure.
export interface Span {
  readonly from: number; // 0: the left edge of the frame
  readonly to: number; // 1: the right edge of the frame
}

export const wholeSpan: Span = { from: 0, to: 1 };
const SMALLEST = 1e-6;

const settled = (from: number, to: number): Span => (from <= 0 && to >= 1 ? wholeSpan : { from, to });

// A `factor` below 1 zooms in. `around` (0 … 1) is the position in the window that stays fixed.
export function widened(span: Span, factor: number, around: number): Span {
  const width = span.to - span.from;
  const next = Math.min(1, Math.max(SMALLEST, width * factor));
  const fixed = span.from + width * around;
  const from = Math.min(1 - next, Math.max(0, fixed - next * around));
  return settled(from, from + next);
}

// Moves the span by a share of its width, at most to the edges of the frame.
export function panned(span: Span, share: number): Span {
  const width = span.to - span.from;
  const from = Math.min(1 - width, Math.max(0, span.from + width * share));
  return settled(from, from + width);
}

export const spanText = (span: Span | null): string =>
  span ? `${Number(span.from.toPrecision(9))}-${Number(span.to.toPrecision(9))}` : '';

export function parseSpan(text: string | null): Span | null {
  const parts = /^([\d.]+)-([\d.]+)$/.exec(text ?? '');
  const [from, to] = parts ? [Number(parts[1]), Number(parts[2])] : [NaN, NaN];
  return from >= 0 && to <= 1 && to - from >= SMALLEST / 2 ? settled(from, to) : null;
}
