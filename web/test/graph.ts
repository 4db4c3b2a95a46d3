// Small call trees for tests, written as paths with self weights: { 'main;work': 3 }.
import type { FlameGraph } from '../src/api/types';

// Frames are separated by `;`. `pruned` adds pruned weight to a frame's total.
export function graphOf(
  stacks: Record<string, number>,
  pruned: Record<string, { weight: number; count: number }> = {},
): FlameGraph {
  interface Frame {
    name: string;
    self: number;
    hidden: number;
    count: number;
    children: Map<string, Frame>;
  }
  const frame = (name: string): Frame => ({ name, self: 0, hidden: 0, count: 0, children: new Map() });
  const root = frame('all');
  const at = (path: string) => {
    let node = root;
    for (const name of path ? path.split(';') : []) {
      if (!node.children.has(name)) node.children.set(name, frame(name));
      node = node.children.get(name)!;
    }
    return node;
  };
  for (const [path, self] of Object.entries(stacks)) at(path).self += self;
  for (const [path, { weight, count }] of Object.entries(pruned)) {
    at(path).hidden = weight;
    at(path).count = count;
  }
  const total = (node: Frame): number =>
    node.self + node.hidden + [...node.children.values()].reduce((sum, child) => sum + total(child), 0);
  const names: string[] = [];
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
  const add = (node: Frame, parent: number) => {
    const id = nodes.parent.length;
    if (!names.includes(node.name)) names.push(node.name);
    nodes.parent.push(parent);
    nodes.name.push(names.indexOf(node.name));
    nodes.module.push(0);
    nodes.kind.push(0);
    nodes.file.push(0);
    nodes.line.push(0);
    nodes.self.push(node.self);
    nodes.total.push(total(node));
    nodes.samples.push(total(node));
    nodes.self_samples.push(node.self);
    nodes.pruned.push(node.count);
    for (const child of [...node.children.values()].sort((a, b) => total(b) - total(a))) add(child, id);
  };
  add(root, 0);
  return {
    session: 's',
    event: 'cycles',
    unit: 'ns',
    data_version: 1,
    total: { samples: total(root), weight: total(root) },
    newest_ns: 0,
    names,
    modules: ['prog'],
    files: [''],
    nodes,
  };
}
