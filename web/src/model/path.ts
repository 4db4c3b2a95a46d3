// Paths to frames in the address. An entry is a function's name, which stays valid when new data arrives. Siblings can share a
// name, for example if one is inlined. The heaviest of them needs only its name. The entries of the others also contain kind and
// module, and the line or address if the tree is merged by it.
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

// The sibling that matches the entry, or else the heaviest one with its name; -1: none has its name.
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

// Line or address of each node; 0 if the tree is merged by function.
export function placesOf(graph: FlameGraph, merge: Merge): Float64Array {
  const { parent, line, address } = graph.nodes;
  if (merge === 'function') return new Float64Array(parent.length);
  return Float64Array.from(parent, (_, node) => address?.[node] || line[node]!);
}
