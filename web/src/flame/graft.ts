// A flame graph's answer leaves out subtrees that are too small to see. When the person zooms into one, the server sends that
// subtree in full, and it is grafted onto the tree at hand. Pure functions on the answer's columns.
import type { FlameGraph } from '../api/types';

type Nodes = FlameGraph['nodes'];
const columns = [
  'parent', 'name', 'module', 'kind', 'file', 'line', 'self', 'total', 'samples', 'self_samples', 'pruned',
] as const satisfies readonly (keyof Nodes)[];

// The nodes along `path` (function names from the outermost frame), as far as the tree has them. Of siblings with one name the
// first, which is the largest, counts.
export function nodesAlong(graph: FlameGraph, path: readonly string[]): number[] {
  const { parent, name } = graph.nodes;
  const found: number[] = [];
  let at = 0;
  for (const wanted of path) {
    const id = graph.names.indexOf(wanted);
    if (id < 0) break;
    let next = -1;
    // Children stand behind their parent.
    for (let node = at + 1; node < parent.length; node++) {
      if (parent[node] === at && name[node] === id) {
        next = node;
        break;
      }
    }
    if (next < 0) break;
    found.push(next);
    at = next;
  }
  return found;
}

// One byte a node: 1 when it is `root` or below it.
function mark(parent: readonly number[], root: number): Uint8Array {
  const below = new Uint8Array(parent.length);
  below[root] = 1;
  for (let node = root + 1; node < parent.length; node++) below[node] = below[parent[node]!]!;
  return below;
}

export function hasPrunedBelow(graph: FlameGraph, path: readonly string[]): boolean {
  const found = nodesAlong(graph, path);
  if (found.length < path.length) return true;
  const below = mark(graph.nodes.parent, found.at(-1) ?? 0);
  return graph.nodes.pruned.some((count, node) => count > 0 && below[node] === 1);
}

// `base` with the subtree at `path` replaced by `detail`, whose node 0 is the last frame of the path. Frames of the path that
// `base` lacks are added. Ancestors take over the difference of weight, so that a newer subtree still fits into its parents.
export function graft(base: FlameGraph, path: readonly string[], detail: FlameGraph): FlameGraph {
  if (path.length === 0 || detail.nodes.parent.length === 0) return base;
  const found = nodesAlong(base, path);
  const complete = found.length === path.length;
  const anchor = complete ? found.at(-1)! : -1;
  const dropped = anchor >= 0 ? mark(base.nodes.parent, anchor) : new Uint8Array(base.nodes.parent.length);

  const names = [...base.names];
  const modules = [...base.modules];
  const files = [...base.files];
  const intern = (table: string[]) => {
    const index = new Map(table.map((text, i) => [text, i]));
    return (text: string) => {
      let id = index.get(text);
      if (id === undefined) {
        id = table.length;
        table.push(text);
        index.set(text, id);
      }
      return id;
    };
  };
  const nameId = intern(names);
  const moduleId = intern(modules);
  const fileId = intern(files);

  const nodes = Object.fromEntries(columns.map((column) => [column, [] as number[]])) as unknown as Nodes;
  const append = (row: Record<(typeof columns)[number], number>): number => {
    for (const column of columns) nodes[column].push(row[column]);
    return nodes.parent.length - 1;
  };
  const rowOf = (graph: FlameGraph, node: number) =>
    Object.fromEntries(columns.map((column) => [column, graph.nodes[column][node]!])) as Record<(typeof columns)[number], number>;

  // What the base keeps; the zoomed node itself is kept and its subtree is not.
  const moved = new Int32Array(base.nodes.parent.length).fill(-1);
  for (let node = 0; node < moved.length; node++) {
    if (dropped[node] && node !== anchor) continue;
    const row = rowOf(base, node);
    moved[node] = append({ ...row, parent: node === 0 ? row.parent : moved[row.parent]! });
  }

  const lineage = [0, ...found].map((node) => moved[node]!);
  const top = rowOf(detail, 0);
  const known = detail.names[top.name] === path.at(-1);
  const look = (row: typeof top) => ({
    module: moduleId(detail.modules[row.module] ?? ''),
    file: fileId(detail.files[row.file] ?? ''),
    kind: row.kind,
    line: row.line,
  });
  for (let level = found.length; level < path.length; level++) {
    const last = level === path.length - 1;
    const attributes = last && known ? look(top) : { module: moduleId(''), file: fileId(''), kind: 0, line: 0 };
    lineage.push(
      append({
        parent: lineage.at(-1)!, name: nameId(path[level]!), self: 0, total: 0, samples: 0, self_samples: 0, pruned: 0, ...attributes,
      }),
    );
  }

  const zoomed = lineage.at(-1)!;
  // Only what exceeds the weight that the parents already count is new to them.
  const counted = complete ? { total: nodes.total[zoomed]!, samples: nodes.samples[zoomed]! } : { total: top.total, samples: top.samples };
  nodes.self[zoomed] = top.self;
  nodes.self_samples[zoomed] = top.self_samples;
  nodes.pruned[zoomed] = top.pruned;
  lineage.forEach((node, depth) => {
    const added = depth > found.length || node === zoomed;
    nodes.total[node] = added ? top.total : nodes.total[node]! + top.total - counted.total;
    nodes.samples[node] = added ? top.samples : nodes.samples[node]! + top.samples - counted.samples;
  });

  const shifted = new Int32Array(detail.nodes.parent.length);
  shifted[0] = zoomed;
  for (let node = 1; node < shifted.length; node++) {
    const row = rowOf(detail, node);
    shifted[node] = append({
      ...row, ...look(row), parent: shifted[row.parent]!, name: nameId(detail.names[row.name] ?? ''),
    });
  }
  return { ...base, names, modules, files, nodes };
}
