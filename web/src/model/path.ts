// Frames on the way to a zoomed one, as the address keeps them: a function's name, which survives new data. Siblings may share a
// name (a function inlined at one place and called at another, or of two modules); the heaviest needs its name alone, the others
// carry kind and module as well, and in a tree that is merged by it, line or address.
import type { FlameGraph } from '../api/types';
import type { Merge } from './view_state';

const MARK = '\u001e';

export const entryName = (entry: string): string => {
  const cut = entry.indexOf(MARK);
  return cut < 0 ? entry : entry.slice(0, cut);
};

export const isQualified = (entry: string): boolean => entry.includes(MARK);

// `place` is 0 in a tree that is merged by function.
export const qualified = (name: string, kind: number, module: string, place: number): string =>
  `${name}${MARK}${kind}${MARK}${module}${place > 0 ? `${MARK}${place}` : ''}`;

export interface Candidate {
  name: string;
  kind: number;
  module: string;
  place: number;
  total: number;
}

// The place of the entry's frame among siblings, -1 when none has its name.
export function chooseSibling(entry: string, siblings: Iterable<number>, look: (node: number) => Candidate): number {
  const name = entryName(entry);
  let best = -1;
  let most = -1;
  for (const node of siblings) {
    const frame = look(node);
    if (frame.name !== name) continue;
    if (isQualified(entry) && qualified(name, frame.kind, frame.module, frame.place) === entry) return node;
    if (frame.total > most) {
      most = frame.total;
      best = node;
    }
  }
  return best;
}

// Line or address of every node; zeros when the tree is merged by function.
export function placesOf(graph: FlameGraph, merge: Merge): Float64Array {
  const { parent, line, address } = graph.nodes;
  if (merge === 'function') return new Float64Array(parent.length);
  return Float64Array.from(parent, (_, node) => address?.[node] || line[node]!);
}
