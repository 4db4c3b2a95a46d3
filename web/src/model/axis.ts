// Which stretch of a session the time axis shows, as a choice, and how the address has it. Times are ms since the session's start.

export interface Span {
  from: number;
  to: number;
}

// What the person chose: everything, the newest so many ms (which follows a live session), or a fixed stretch.
export type Axis = null | { last: number } | Span;

export const SHORTEST_MS = 10;

// In the address: "", "last-30000", "1000-5000".
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
