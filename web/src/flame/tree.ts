// A flame graph's answer as typed arrays, ready for layout. Each frame has a start on the weight axis. Its children follow one
// another from that start; hidden weight and self weight fill the rest of the frame.
import type { FlameGraph } from '../api/types';
import type { Width } from '../model/baseline';
import { chooseSibling, placesOf, qualified } from '../model/path';
import type { Merge } from '../model/view_state';
import { orderByNumber } from '../text/functions';
import { differences, isDiff, sideOf, type TreeDiff } from './difference';

export type SiblingOrder = 'name' | 'weight';

// The order of siblings, and for a diff the side whose weights are shown.
export interface Arrangement {
  readonly order: SiblingOrder;
  readonly width: Width;
}

export interface FlameTree {
  readonly id: number; // its key in the RenderWorker
  readonly arrangement: Arrangement;
  readonly size: number;
  readonly unit: string;
  readonly names: readonly string[];
  readonly modules: readonly string[];
  readonly files: readonly string[];
  readonly parent: Int32Array;
  readonly name: Int32Array;
  readonly module: Int32Array;
  readonly kind: Uint8Array;
  readonly file: Int32Array;
  readonly line: Int32Array;
  readonly self: Float64Array;
  readonly total: Float64Array;
  readonly samples: Float64Array;
  readonly selfSamples: Float64Array;
  readonly pruned: Int32Array; // number of children that the answer omits
  readonly hidden: Float64Array; // their weight
  // The text on a frame is its name and its place: the line or address if the tree is merged by it, otherwise 0.
  readonly labels: readonly string[];
  readonly label: Int32Array;
  readonly place: Float64Array;
  readonly depth: Uint16Array;
  readonly height: Uint16Array; // levels below
  readonly start: Float64Array;
  readonly firstChild: Int32Array; // -1: none
  readonly nextSibling: Int32Array;
  readonly diff: TreeDiff | null; // if set, self, total and samples are those of the side that determines the widths
}

const MAX_DEPTH = 65535;

// The ranks of texts in sorted order. The answers of a live session contain nearly the same names each time, so they are sorted
// again only if a name is new.
let placed: ReadonlyMap<string, number> = new Map();

export const emptyTree: FlameTree = buildTree(
  {
    session: '',
    event: '',
    unit: '',
    data_version: 0,
    total: { samples: 0, weight: 0 },
    newest_ns: 0,
    names: ['all'],
    modules: [''],
    files: [''],
    nodes: {
      parent: [0],
      name: [0],
      module: [0],
      kind: [0],
      file: [0],
      line: [0],
      self: [0],
      total: [0],
      samples: [0],
      self_samples: [0],
      pruned: [0],
    },
  },
  'name',
);

function ranks(names: readonly string[]): { rank: Int32Array; count: number } {
  if (names.some((name) => !placed.has(name))) {
    // Drop the names of old answers if the table has become much larger than the current answer.
    const kept = placed.size > 4 * names.length ? [] : [...placed.keys()];
    const sorted = [...new Set([...kept, ...names])].sort();
    placed = new Map(sorted.map((name, place) => [name, place]));
  }
  return { rank: Int32Array.from(names, (name) => placed.get(name)!), count: placed.size };
}

// All nodes, sorted by label. In this order siblings keep their positions while weights change.
function siblingOrder(label: Int32Array, labels: readonly string[]): Int32Array {
  const { rank, count: labelCount } = ranks(labels);
  const place = new Int32Array(labelCount + 1);
  for (let node = 0; node < label.length; node++) place[rank[label[node]!]! + 1]!++;
  for (let i = 0; i < labelCount; i++) place[i + 1]! += place[i]!;
  const order = new Int32Array(label.length);
  for (let node = 0; node < label.length; node++) order[place[rank[label[node]!]!]!++] = node;
  return order;
}

export const placeText = (merge: Merge, isAddress: boolean, place: number): string =>
  place === 0 || merge === 'function' ? '' : isAddress ? ` 0x${place.toString(16)}` : `:${place}`;

// The labels, each text once.
function labelled(
  graph: FlameGraph,
  merge: Merge,
  name: Int32Array,
  names: readonly string[],
  place: Float64Array,
): Pick<FlameTree, 'label' | 'labels'> {
  if (merge === 'function') return { label: name, labels: names };
  const labels: string[] = [];
  const known = new Map<string, number>();
  const label = Int32Array.from(name, (id, node) => {
    const text = names[id]! + placeText(merge, (graph.nodes.address?.[node] ?? 0) > 0, place[node]!);
    let at = known.get(text);
    if (at === undefined) {
      at = labels.push(text) - 1;
      known.set(text, at);
    }
    return at;
  });
  return { label, labels };
}

const heaviestFirst = (total: Float64Array): Int32Array => Int32Array.from(orderByNumber(total)).reverse();

// `width`: for a diff, the side whose weights are shown.
export function buildTree(
  answer: FlameGraph,
  order: SiblingOrder,
  merge: Merge = 'function',
  rootName = 'all',
  width: Width = 'view',
): FlameTree {
  const diff = isDiff(answer) ? differences(answer, width) : null;
  const graph = isDiff(answer) ? sideOf(answer, width) : answer;
  const nodes = graph.nodes;
  const size = nodes.parent.length;
  const parent = Int32Array.from(nodes.parent);
  const name = Int32Array.from(nodes.name);
  // The root needs its own label: it is not a function, or it is the function that the tree is about.
  const names = [...graph.names, rootName];
  name[0] = names.length - 1;
  const place = placesOf(graph, merge);
  const { label, labels } = labelled(graph, merge, name, names, place);
  const total = Float64Array.from(nodes.total);
  const self = Float64Array.from(nodes.self);
  const depth = new Uint16Array(size);
  const height = new Uint16Array(size);
  const hidden = new Float64Array(size);
  const start = new Float64Array(size);
  const firstChild = new Int32Array(size).fill(-1);
  const nextSibling = new Int32Array(size).fill(-1);

  for (let node = 1; node < size; node++) depth[node] = Math.min(MAX_DEPTH, depth[parent[node]!]! + 1);
  for (let node = size - 1; node > 0; node--) {
    const up = parent[node]!;
    height[up] = Math.max(height[up]!, Math.min(MAX_DEPTH, height[node]! + 1));
  }

  // Linked from the last sibling to the first, so that each list is in order. Answers sort siblings by weight; a diff sorts them
  // by the weight on the side where it is larger.
  const inOrder = order === 'name' ? siblingOrder(label, labels) : diff ? heaviestFirst(total) : null;
  for (let i = size - 1; i >= 0; i--) {
    const node = inOrder ? inOrder[i]! : i;
    if (node === 0) continue;
    const up = parent[node]!;
    nextSibling[node] = firstChild[up]!;
    firstChild[up] = node;
  }

  for (let node = 0; node < size; node++) {
    let at = start[node]!;
    for (let child = firstChild[node]!; child >= 0; child = nextSibling[child]!) {
      start[child] = at;
      at += total[child]!;
    }
    const rest = start[node]! + total[node]! - self[node]! - at;
    hidden[node] = nodes.pruned[node]! > 0 ? Math.max(0, rest) : 0;
  }

  return {
    id: 0,
    arrangement: { order, width },
    size,
    unit: graph.unit,
    names,
    modules: graph.modules,
    files: graph.files,
    parent,
    name,
    module: Int32Array.from(nodes.module),
    kind: Uint8Array.from(nodes.kind),
    file: Int32Array.from(nodes.file),
    line: Int32Array.from(nodes.line),
    self,
    total,
    samples: Float64Array.from(nodes.samples),
    selfSamples: Float64Array.from(nodes.self_samples),
    pruned: Int32Array.from(nodes.pruned),
    hidden,
    labels,
    label,
    place,
    depth,
    height,
    start,
    firstChild,
    nextSibling,
    diff,
  };
}

function* childrenOf(tree: FlameTree, node: number): Generator<number> {
  for (let child = tree.firstChild[node]!; child >= 0; child = tree.nextSibling[child]!) yield child;
}

const candidate = (tree: FlameTree) => (node: number) => ({
  name: tree.names[tree.name[node]!]!,
  kind: tree.kind[node]!,
  module: tree.modules[tree.module[node]!] ?? '',
  place: tree.place[node]!,
  // The server also compares siblings with the same name by the weight of both sides together.
  total: tree.diff ? tree.diff.total[node]! + tree.diff.baseTotal[node]! : tree.total[node]!,
});

// Path entries (path.ts) from the outermost frame to `node`; empty for the root.
export function pathOf(tree: FlameTree, node: number): string[] {
  const path: string[] = [];
  const look = candidate(tree);
  for (let at = node; at > 0; at = tree.parent[at]!) {
    const { name, kind, module, place } = look(at);
    const plain = chooseSibling(name, childrenOf(tree, tree.parent[at]!), look) === at;
    path.push(plain ? name : qualified(name, kind, module, place));
  }
  return path.reverse();
}

// The node at the end of `path`, or the last node on the path that the tree has.
export function nodeAt(tree: FlameTree, path: readonly string[]): { node: number; found: number } {
  let node = 0;
  let found = 0;
  for (const entry of path) {
    const next = chooseSibling(entry, childrenOf(tree, node), candidate(tree));
    if (next < 0) break;
    node = next;
    found++;
  }
  return { node, found };
}

export function largestChild(tree: FlameTree, node: number): number {
  let best = -1;
  for (let child = tree.firstChild[node]!; child >= 0; child = tree.nextSibling[child]!) {
    if (best < 0 || tree.total[child]! > tree.total[best]!) best = child;
  }
  return best;
}
