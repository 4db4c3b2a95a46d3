// A flame graph's answer omits subtrees that are too small to see. If the user zooms into one, the server sends the complete
// subtree, and graft() inserts it into the current tree. Pure functions on the answer's columns.
import type { FlameGraph } from '../api/types';
import { chooseSibling, entryName, placesOf } from './path';
import type { Merge } from './view_state';

type Nodes = FlameGraph['nodes'];
const columns = [
  'parent',
  'name',
  'module',
  'kind',
  'file',
  'line',
  'self',
  'total',
  'samples',
  'self_samples',
  'pruned',
] as const satisfies readonly (keyof Nodes)[];
// Additional columns of a diff.
const baseColumns = ['base_self', 'base_total', 'base_samples', 'base_self_samples'] as const;
type AllNodes = Nodes & Partial<Record<(typeof baseColumns)[number], number[]>>;

// The nodes along `path` (path.ts), up to the first one that the tree lacks.
export function nodesAlong(graph: FlameGraph, path: readonly string[], merge: Merge = 'function'): number[] {
  const { parent, name, kind, module, total, base_total } = graph.nodes as AllNodes;
  const place = placesOf(graph, merge);
  const look = (node: number) => ({
    name: graph.names[name[node]!]!,
    kind: kind[node]!,
    module: graph.modules[module[node]!] ?? '',
    place: place[node]!,
    total: total[node]! + (base_total?.[node] ?? 0),
  });
  const found: number[] = [];
  // Build all lists of children once, because a path may contain thousands of frames.
  const firstChild = new Int32Array(parent.length).fill(-1);
  const nextSibling = new Int32Array(parent.length).fill(-1);
  for (let node = parent.length - 1; node > 0; node--) {
    nextSibling[node] = firstChild[parent[node]!]!;
    firstChild[parent[node]!] = node;
  }
  let at = 0;
  for (const entry of path) {
    const siblings: number[] = [];
    for (let node = firstChild[at] ?? -1; node >= 0; node = nextSibling[node]!) siblings.push(node);
    at = chooseSibling(entry, siblings, look);
    if (at < 0) break;
    found.push(at);
  }
  return found;
}

// By node: 1 for `root` and its descendants, otherwise 0.
function mark(parent: readonly number[], root: number): Uint8Array {
  const below = new Uint8Array(parent.length);
  below[root] = 1;
  for (let node = root + 1; node < parent.length; node++) below[node] = below[parent[node]!]!;
  return below;
}

export function hasPrunedBelow(graph: FlameGraph, path: readonly string[], merge: Merge = 'function'): boolean {
  const found = nodesAlong(graph, path, merge);
  if (found.length < path.length) return true;
  const below = mark(graph.nodes.parent, found.at(-1) ?? 0);
  return graph.nodes.pruned.some((count, node) => count > 0 && below[node] === 1);
}

// Adds the strings of `other` that `table` lacks. Returns the index in `table` of each string of `other`.
function addTo(table: string[], other: readonly string[]): Int32Array {
  const index = new Map(table.map((text, i) => [text, i]));
  return Int32Array.from(other, (text) => {
    let id = index.get(text);
    if (id === undefined) {
      id = table.push(text) - 1;
      index.set(text, id);
    }
    return id;
  });
}

// Replaces the subtree at `path` in `base` with `detail`, whose node 0 is the last frame of the path. Adds the frames of the path
// that `base` lacks. Adds the difference of weight to the ancestors, so that a newer subtree still fits into its parents.
export function graft(
  base: FlameGraph,
  path: readonly string[],
  detail: FlameGraph,
  merge: Merge = 'function',
): FlameGraph {
  const added: AllNodes = detail.nodes;
  const from: AllNodes = base.nodes;
  const weights = baseColumns.filter((column) => column in from && column in added);
  if (path.length === 0 || added.parent.length === 0) return base;
  const found = nodesAlong(base, path, merge);
  const complete = found.length === path.length;
  const anchor = complete ? found.at(-1)! : -1;
  const below = anchor >= 0 ? mark(base.nodes.parent, anchor) : null;

  const names = [...base.names];
  const modules = [...base.modules];
  const files = [...base.files];
  const nameIds = addTo(names, detail.names);
  const chainIds = addTo(names, path.map(entryName));
  const moduleIds = addTo(modules, detail.modules);
  const fileIds = addTo(files, detail.files);
  const noModule = addTo(modules, [''])[0]!;
  const noFile = addTo(files, [''])[0]!;

  // Keep all nodes of `base` except those below the zoomed frame.
  const size = base.nodes.parent.length;
  const kept: number[] = [];
  const moved = new Int32Array(size);
  for (let node = 0; node < size; node++) {
    if (below?.[node] && node !== anchor) continue;
    moved[node] = kept.length;
    kept.push(node);
  }
  const nodes = Object.fromEntries(
    columns.map((column) => [column, kept.map((node) => base.nodes[column][node]!)]),
  ) as unknown as AllNodes;
  for (const column of weights) nodes[column] = kept.map((node) => from[column]![node]!);
  const { address } = base.nodes;
  if (address) nodes.address = kept.map((node) => address[node]!);
  nodes.parent = nodes.parent.map((parent) => moved[parent]!);

  // The path to the zoomed frame, including the frames that `base` lacks.
  const lineage = [0, ...found].map((node) => moved[node]!);
  for (let level = found.length; level < path.length; level++) {
    const known = level === path.length - 1 && detail.names[added.name[0]!] === entryName(path.at(-1)!);
    nodes.parent.push(lineage.at(-1)!);
    lineage.push(nodes.parent.length - 1);
    nodes.name.push(chainIds[level]!);
    nodes.module.push(known ? moduleIds[added.module[0]!]! : noModule);
    nodes.file.push(known ? fileIds[added.file[0]!]! : noFile);
    nodes.kind.push(known ? added.kind[0]! : 0);
    nodes.line.push(known ? added.line[0]! : 0);
    nodes.address?.push((known ? added.address?.[0] : 0) ?? 0);
    for (const column of ['self', 'total', 'samples', 'self_samples', 'pruned', ...weights] as const)
      nodes[column]!.push(0);
  }

  // Weights along the path. The ancestors already include the weight of the zoomed frame in `base`.
  const zoomed = lineage.at(-1)!;
  const isSum = (column: string) => column === 'base_total' || column === 'base_samples';
  const sums = weights.filter(isSum);
  for (const column of ['total', 'samples', ...sums] as const) {
    const into = nodes[column]!;
    const now = added[column]![0]!;
    const growth = complete ? now - into[zoomed]! : 0;
    lineage.forEach((node, depth) => {
      into[node] = node === zoomed || depth > found.length ? now : into[node]! + growth;
    });
  }
  const own = weights.filter((column) => !isSum(column));
  for (const column of ['self', 'self_samples', 'pruned', ...own] as const) nodes[column]![zoomed] = added[column]![0]!;

  // The subtree. Its node 0 is the zoomed frame, so append only the other nodes.
  const offset = nodes.parent.length - 1;
  for (let node = 1; node < added.parent.length; node++) {
    const parent = added.parent[node]!;
    nodes.parent.push(parent === 0 ? zoomed : offset + parent);
    nodes.name.push(nameIds[added.name[node]!]!);
    nodes.module.push(moduleIds[added.module[node]!]!);
    nodes.file.push(fileIds[added.file[node]!]!);
    nodes.address?.push(added.address?.[node] ?? 0);
  }
  for (const column of ['kind', 'line', 'self', 'total', 'samples', 'self_samples', 'pruned', ...weights] as const) {
    for (let node = 1; node < added.parent.length; node++) nodes[column]!.push(added[column]![node]!);
  }
  return { ...base, names, modules, files, nodes };
}
