// The choice of the time range that the time axis shows, and its form in the address. Times are ms since the session's start.

export interface Span {
  from: number;
  to: number;
}

// null: the whole session. `last`: the newest `last` ms, which move with a live session. Span: a fixed range.
export type Axis = null | { last: number } | Span;

export const SHORTEST_MS = 10;

// The form in the address: "", "last-30000" or "1000-5000".
export function axisText(axis: Axis): string {
  if (axis === null) return '';
  return 'last' in axis ? `last-${axis.last}` : `${axis.from}-${axis.to}`;
}

export function parseAxis(text: string | null): Axis {
  const match = /^(?:last-(\d+)|(\d+)-(\d+))$/.exec(text ?? '');
  if (!match) return null;
  if (match[1] !== undefined) return { last: Math.max(SHORTEST_MS, Number(match[1])) };
  const span = { from: Number(match[2]), to: Number(match[3]) };
  return span.to - span.from >= SHORTEST_MS ? span : null;
}
