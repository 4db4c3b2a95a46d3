// Computes all shapes of the flame graph from the top-down tree that is merged by line, for a page without a server
// (api/saved.ts). Also computes callers and callees, and the functions table. The server computes these from its rows.
// Pure functions on the answer's columns, without recursion.
import type { Callers, FlameGraph, Functions, FunctionRow, Kind, Neighbour, ShapeParams } from '../api/types';
import { nodesAlong } from './graft';

const kinds: readonly Kind[] = ['user', 'kernel', 'jit', 'inlined', 'unknown'];
const UNKNOWN = 4;
const INLINED = 3;
// The placeholder for callees that were too small to be saved in the file.
export const LEFT_OUT = '[left out]';

interface Frames {
  of: Int32Array; // by node of `base`: its frame
  functionOf: number[]; // by frame: an id for name and module, regardless of kind
  name: number[];
  module: number[];
  kind: number[];
  file: number[];
  line: number[];
  leftOut: number; // the frame that stands for omitted callees
}

// The distinct frames of a tree that is merged by line, or by function.
function framesOf(base: FlameGraph, byLine: boolean): Frames {
  const n = base.nodes;
  const frames: Frames = {
    of: new Int32Array(n.parent.length),
    functionOf: [],
    name: [],
    module: [],
    kind: [],
    file: [],
    line: [],
    leftOut: 0,
  };
  const known = new Map<string, number>();
  const functions = new Map<string, number>();
  const add = (name: number, module: number, kind: number, file: number, line: number): number => {
    const key = `${name},${module},${kind}${byLine ? `,${file},${line}` : ''}`;
    const frame = known.get(key);
    if (frame !== undefined) return frame;
    const id = frames.name.length;
    known.set(key, id);
    const group = `${name},${module}`;
    if (!functions.has(group)) functions.set(group, functions.size);
    frames.functionOf.push(functions.get(group)!);
    frames.name.push(name);
    frames.module.push(module);
    frames.kind.push(kind);
    frames.file.push(file);
    frames.line.push(line);
    return id;
  };
  // Parents and heavy siblings precede others, so a function gets the file and line of a heavy node.
  for (let i = 1; i < n.parent.length; i++)
    frames.of[i] = add(n.name[i]!, n.module[i]!, n.kind[i]!, n.file[i]!, n.line[i]!);
  frames.leftOut = add(base.names.length, base.modules.indexOf(''), UNKNOWN, 0, 0);
  return frames;
}

// By node: the weight and samples in callees that the answer omits.
function leftOutOf(base: FlameGraph): { weight: Float64Array; samples: Float64Array } {
  const n = base.nodes;
  const weight = Float64Array.from(n.total, (total, i) => total - n.self[i]!);
  const samples = Float64Array.from(n.samples, (all, i) => all - n.self_samples[i]!);
  for (let i = 1; i < n.parent.length; i++) {
    weight[n.parent[i]!]! -= n.total[i]!;
    samples[n.parent[i]!]! -= n.samples[i]!;
  }
  for (let i = 0; i < weight.length; i++) {
    weight[i] = n.pruned[i]! > 0 ? Math.max(0, weight[i]!) : 0;
    samples[i] = n.pruned[i]! > 0 ? Math.max(0, samples[i]!) : 0;
  }
  return { weight, samples };
}

class Builder {
  readonly parent = [0];
  readonly frame = [-1];
  readonly self = [0];
  readonly selfSamples = [0];
  readonly hidden = [0]; // weight of omitted callees
  readonly hiddenSamples = [0];
  readonly pruned = [0];
  private readonly children = new Map<number, number>();

  constructor(
    private readonly base: FlameGraph,
    private readonly frames: Frames,
    private readonly collapse: boolean,
    rootFrame = -1,
  ) {
    this.frame[0] = rootFrame;
  }

  step(at: number, frame: number): number {
    const above = this.frame[at]!;
    if (this.collapse && above >= 0 && this.frames.functionOf[above] === this.frames.functionOf[frame]) return at;
    const key = at * (this.frames.name.length + 1) + frame;
    const known = this.children.get(key);
    if (known !== undefined) return known;
    const id = this.parent.length;
    this.children.set(key, id);
    this.parent.push(at);
    this.frame.push(frame);
    for (const column of [this.self, this.selfSamples, this.hidden, this.hiddenSamples, this.pruned]) column.push(0);
    return id;
  }

  add(at: number, weight: number, samples: number): void {
    this.self[at]! += weight;
    this.selfSamples[at]! += samples;
  }

  leaveOut(at: number, weight: number, samples: number, count: number): void {
    this.hidden[at]! += weight;
    this.hiddenSamples[at]! += samples;
    this.pruned[at]! += count;
  }

  // Builds an answer: siblings are sorted by weight and contiguous, and parents precede children.
  graph(): FlameGraph {
    const size = this.parent.length;
    const total = this.self.map((weight, i) => weight + this.hidden[i]!);
    const samples = this.selfSamples.map((count, i) => count + this.hiddenSamples[i]!);
    const children: number[][] = Array.from({ length: size }, () => []);
    for (let i = size - 1; i > 0; i--) {
      total[this.parent[i]!]! += total[i]!;
      samples[this.parent[i]!]! += samples[i]!;
      children[this.parent[i]!]!.push(i);
    }
    const { name, module, kind, file, line } = this.frames;
    const nodes: FlameGraph['nodes'] = {
      parent: [],
      name: [],
      module: [],
      kind: [],
      file: [],
      line: [],
      self: [],
      total: [],
      samples: [],
      self_samples: [],
      pruned: [],
    };
    const order = [0];
    const put = (node: number, parent: number) => {
      const frame = this.frame[node]!;
      nodes.parent.push(parent);
      nodes.name.push(frame < 0 ? this.base.nodes.name[0]! : name[frame]!);
      nodes.module.push(frame < 0 ? 0 : module[frame]!);
      nodes.kind.push(frame < 0 ? this.base.nodes.kind[0]! : kind[frame]!);
      nodes.file.push(frame < 0 ? 0 : file[frame]!);
      nodes.line.push(frame < 0 ? 0 : line[frame]!);
      nodes.self.push(this.self[node]!);
      nodes.total.push(total[node]!);
      nodes.samples.push(samples[node]!);
      nodes.self_samples.push(this.selfSamples[node]!);
      nodes.pruned.push(this.pruned[node]!);
    };
    put(0, 0);
    for (let i = 0; i < order.length; i++) {
      const below = children[order[i]!]!.filter((child) => total[child]! > 0 || samples[child]! > 0).sort(
        (a, b) => total[b]! - total[a]! || a - b,
      );
      for (const child of below) {
        put(child, i);
        order.push(child);
      }
    }
    return {
      ...this.base,
      names: [...this.base.names, LEFT_OUT],
      total: { samples: samples[0]!, weight: total[0]! },
      nodes,
    };
  }
}

function bottomUp(base: FlameGraph, frames: Frames, collapse: boolean): FlameGraph {
  const n = base.nodes;
  const left = leftOutOf(base);
  const builder = new Builder(base, frames, collapse);
  const climb = (from: number, at: number) => {
    let node = at;
    for (let up = from; up > 0; up = n.parent[up]!) node = builder.step(node, frames.of[up]!);
    return node;
  };
  builder.add(0, n.self[0]!, n.self_samples[0]!);
  for (let i = 0; i < n.parent.length; i++) {
    if (i > 0 && (n.self[i]! > 0 || n.self_samples[i]! > 0)) builder.add(climb(i, 0), n.self[i]!, n.self_samples[i]!);
    if (left.weight[i]! > 0) builder.add(climb(i, builder.step(0, frames.leftOut)), left.weight[i]!, left.samples[i]!);
  }
  return builder.graph();
}

function topDown(base: FlameGraph, frames: Frames, collapse: boolean): FlameGraph {
  const n = base.nodes;
  const left = leftOutOf(base);
  const builder = new Builder(base, frames, collapse);
  const cursor = new Int32Array(n.parent.length);
  for (let i = 0; i < n.parent.length; i++) {
    if (i > 0) cursor[i] = builder.step(cursor[n.parent[i]!]!, frames.of[i]!);
    builder.add(cursor[i]!, n.self[i]!, n.self_samples[i]!);
    builder.leaveOut(cursor[i]!, left.weight[i]!, left.samples[i]!, n.pruned[i]!);
  }
  return builder.graph();
}

// Returns only a subtree, or everything except the subtree. In both, parents precede children.
function part(graph: FlameGraph, node: number, keep: 'inside' | 'outside'): FlameGraph {
  const n = graph.nodes;
  const out = Object.fromEntries(Object.keys(n).map((column) => [column, [] as number[]])) as Required<
    FlameGraph['nodes']
  >;
  const place = new Int32Array(n.parent.length).fill(-1);
  const less = new Map<number, true>();
  for (let up = n.parent[node]!; keep === 'outside'; up = n.parent[up]!) {
    less.set(up, true);
    if (up === 0) break;
  }
  const inside = new Uint8Array(n.parent.length);
  for (let i = 0; i < n.parent.length; i++) {
    inside[i] = i === node || (i > 0 && inside[n.parent[i]!]) ? 1 : 0;
    if ((keep === 'inside') !== (inside[i] === 1)) continue;
    const lighter = less.has(i);
    // Also remove callers whose whole weight is in the subtree.
    if (lighter && i > 0 && n.total[i] === n.total[node] && n.samples[i] === n.samples[node]) continue;
    if (i > 0 && i !== node && place[n.parent[i]!]! < 0) continue;
    place[i] = out.parent.length;
    for (const column of Object.keys(n) as (keyof typeof out)[]) out[column].push(n[column]![i]!);
    const last = out.parent.length - 1;
    out.parent[last] = i === node || i === 0 ? 0 : place[n.parent[i]!]!;
    if (lighter) {
      out.total[last]! -= n.total[node]!;
      out.samples[last]! -= n.samples[node]!;
    }
  }
  return { ...graph, total: { samples: out.samples[0] ?? 0, weight: out.total[0] ?? 0 }, nodes: out };
}

const nothing = (graph: FlameGraph): FlameGraph => {
  const empty = part(graph, 0, 'inside');
  for (const column of Object.keys(empty.nodes) as (keyof FlameGraph['nodes'])[]) empty.nodes[column] = [0];
  return { ...empty, total: { samples: 0, weight: 0 } };
};

// The tree of a shape, or its subtree at `path`. `base` is merged by line and does not contain addresses.
export function reshape(base: FlameGraph, shape: ShapeParams, path: readonly string[]): FlameGraph {
  const frames = framesOf(base, shape.merge !== 'function');
  let graph = shape.inverted ? bottomUp(base, frames, shape.collapse) : topDown(base, frames, shape.collapse);
  const find = (wanted: readonly string[]) => {
    const along = nodesAlong(graph, wanted, shape.merge);
    return along.length === wanted.length ? along.at(-1)! : -1;
  };
  for (const hidden of shape.hidden) {
    const node = hidden.length > 0 ? find(hidden) : -1;
    if (node > 0) graph = part(graph, node, 'outside');
  }
  if (path.length === 0) return graph;
  const node = find(path);
  return node < 0 ? nothing(graph) : part(graph, node, 'inside');
}

interface Sums {
  weight: Float64Array;
  samples: Float64Array;
}
const sums = (size: number): Sums => ({ weight: new Float64Array(size), samples: new Float64Array(size) });

// Visits all nodes except the root, depth first. Calls `enter` before the descendants of a node and `leave` after them.
function walk(base: FlameGraph, enter: (node: number) => void, leave: (node: number) => void): void {
  const { parent } = base.nodes;
  const first = new Int32Array(parent.length);
  const next = new Int32Array(parent.length);
  for (let i = parent.length - 1; i > 0; i--) {
    next[i] = first[parent[i]!]!;
    first[parent[i]!] = i;
  }
  let node = first[0]!;
  while (node !== 0) {
    enter(node);
    if (first[node]) {
      node = first[node]!;
      continue;
    }
    while (node !== 0) {
      leave(node);
      if (next[node]) {
        node = next[node]!;
        break;
      }
      node = parent[node]!;
    }
  }
}

// Counts a function once per stack, even if the stack contains it several times.
class OnceAStack {
  readonly sums: Sums;
  private readonly active: Int32Array;
  constructor(size: number) {
    this.sums = sums(size);
    this.active = new Int32Array(size);
  }
  enter(id: number, weight: number, samples: number): void {
    if (this.active[id]!++ > 0) return;
    this.sums.weight[id]! += weight;
    this.sums.samples[id]! += samples;
  }
  leave(id: number): void {
    this.active[id]!--;
  }
}

// By function: the first of its frames that is not inlined, or else its first frame.
function shownFrames(frames: Frames): number[] {
  const shown: number[] = [];
  frames.functionOf.forEach((id, frame) => {
    const before = shown[id];
    if (before === undefined || (frames.kind[before] === INLINED && frames.kind[frame] !== INLINED)) shown[id] = frame;
  });
  return shown;
}

export function functionsOf(base: FlameGraph): Functions {
  const n = base.nodes;
  const frames = framesOf(base, false);
  const shown = shownFrames(frames);
  const self = sums(shown.length);
  const total = new OnceAStack(shown.length);
  const id = (node: number) => frames.functionOf[frames.of[node]!]!;
  walk(
    base,
    (node) => {
      self.weight[id(node)]! += n.self[node]!;
      self.samples[id(node)]! += n.self_samples[node]!;
      total.enter(id(node), n.total[node]!, n.samples[node]!);
    },
    (node) => total.leave(id(node)),
  );
  const share = (weight: number) => (n.total[0]! > 0 ? (100 * weight) / n.total[0]! : 0);
  const rows: FunctionRow[] = [];
  shown.forEach((frame, i) => {
    if (total.sums.weight[i] === 0 && total.sums.samples[i] === 0) return;
    rows.push({
      name: base.names[frames.name[frame]!] ?? LEFT_OUT,
      module: base.modules[frames.module[frame]!] ?? '',
      kind: kinds[frames.kind[frame]!]!,
      file: base.files[frames.file[frame]!] ?? '',
      line: frames.line[frame]!,
      self: self.weight[i]!,
      total: total.sums.weight[i]!,
      self_samples: self.samples[i]!,
      total_samples: total.sums.samples[i]!,
      self_percent: share(self.weight[i]!),
      total_percent: share(total.sums.weight[i]!),
    });
  });
  rows.sort((a, b) => b.self - a.self || b.total - a.total);
  const { session, event, unit, data_version } = base;
  return {
    session,
    event,
    unit,
    data_version,
    total: { samples: n.samples[0]!, weight: n.total[0]! },
    functions: rows,
  };
}

// Null: no stack contains the function. Each stack counts once, at its outermost frame of the function.
export function callersOf(base: FlameGraph, shape: ShapeParams, name: string, module: string): Callers | null {
  const n = base.nodes;
  const frames = framesOf(base, shape.merge !== 'function');
  const left = leftOutOf(base);
  const wanted = new Uint8Array(frames.name.length);
  frames.name.forEach((id, frame) => {
    if ((base.names[id] ?? LEFT_OUT) === name && (module === '' || base.modules[frames.module[frame]!] === module))
      wanted[frame] = 1;
  });
  let root = -1;
  for (let i = 1; i < n.parent.length && root < 0; i++) if (wanted[frames.of[i]!]) root = frames.of[i]!;
  if (root < 0) return null;
  const callers = new Builder(base, frames, shape.collapse, root);
  const callees = new Builder(base, frames, shape.collapse, root);
  const cursor = new Int32Array(n.parent.length).fill(-1);
  const self = { weight: 0, samples: 0 };
  for (let i = 1; i < n.parent.length; i++) {
    const outer = cursor[n.parent[i]!]!;
    if (outer >= 0) cursor[i] = callees.step(outer, frames.of[i]!);
    else if (wanted[frames.of[i]!]) {
      cursor[i] = 0;
      let at = 0;
      for (let up = n.parent[i]!; up > 0; up = n.parent[up]!) at = callers.step(at, frames.of[up]!);
      callers.add(at, n.total[i]!, n.samples[i]!);
    } else continue;
    callees.add(cursor[i]!, n.self[i]!, n.self_samples[i]!);
    callees.leaveOut(cursor[i]!, left.weight[i]!, left.samples[i]!, n.pruned[i]!);
    if (!wanted[frames.of[i]!]) continue;
    self.weight += n.self[i]!;
    self.samples += n.self_samples[i]!;
  }
  const shown = shownFrames(frames);
  const above = new OnceAStack(shown.length);
  const under = new OnceAStack(shown.length);
  const sides = (node: number, visit: (side: OnceAStack, id: number) => void) => {
    const outer = n.parent[node]!;
    if (outer === 0) return;
    if (wanted[frames.of[node]!]) visit(above, frames.functionOf[frames.of[outer]!]!);
    if (wanted[frames.of[outer]!]) visit(under, frames.functionOf[frames.of[node]!]!);
  };
  walk(
    base,
    (node) => sides(node, (side, id) => side.enter(id, n.total[node]!, n.samples[node]!)),
    (node) => sides(node, (side, id) => side.leave(id)),
  );
  const list = (side: OnceAStack): Neighbour[] =>
    shown
      .map((frame, id) => ({
        name: base.names[frames.name[frame]!] ?? LEFT_OUT,
        module: base.modules[frames.module[frame]!] ?? '',
        kind: kinds[frames.kind[frame]!]!,
        weight: side.sums.weight[id]!,
        samples: side.sums.samples[id]!,
      }))
      .filter((row) => row.weight > 0 || row.samples > 0)
      .sort((a, b) => b.weight - a.weight);
  const calleeTree = callees.graph();
  const { session, event, unit, data_version } = base;
  return {
    session,
    event,
    unit,
    data_version,
    total: { samples: n.samples[0]!, weight: n.total[0]! },
    name,
    module: base.modules[frames.module[root]!] ?? '',
    kind: kinds[frames.kind[root]!]!,
    function_self: self,
    function_total: calleeTree.total,
    direct_callers: list(above),
    direct_callees: list(under),
    callers: callers.graph(),
    callees: calleeTree,
  };
}
