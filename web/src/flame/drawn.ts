// The content of a canvas: a tree, and the boxes that were drawn for it. Pure.
import { kinds } from './colour';
import { boxAt, BoxType, type Boxes } from './layout';
import { depthAt, ROW, rowTop, type Rows } from './scene';
import { nodeAt, pathOf, type FlameTree } from './tree';

export interface Drawn {
  tree: FlameTree;
  boxes: Boxes;
}

// The box under the pointer or the keyboard cursor. x, y: CSS pixels in the window of the pane.
export interface Hit {
  node: number;
  type: number;
  x: number;
  y: number;
}

export interface DrawnFrame {
  name: string;
  label: string; // the full text; the drawn text may be shorter
  module: string;
  kind: string;
  depth: number;
  x: number;
  y: number;
  width: number;
  height: number;
  self: number;
  total: number;
  step: number | null; // color step of the change, in a diff
}

// The same frame of tree `of` in `tree`; -1: none.
export function nodeIn(tree: FlameTree, of: FlameTree, node: number): number {
  if (tree === of || node <= 0) return node;
  const path = pathOf(of, node);
  const at = nodeAt(tree, path);
  return at.found === path.length ? at.node : -1;
}

// The same hit of tree `of` in `tree`; null: `tree` lacks the frame.
export function hitIn(tree: FlameTree, of: FlameTree, hit: Hit): Hit | null {
  const node = nodeIn(tree, of, hit.node);
  return node < 0 ? null : { ...hit, node };
}

// The frame of `tree` at a point. The canvas may still show the previous tree.
export function hitAt({ tree: of, boxes }: Drawn, rows: Rows, tree: FlameTree, x: number, y: number): Hit | null {
  const box = boxAt(boxes, depthAt(rows, y), x);
  const node = box < 0 ? -1 : nodeIn(tree, of, boxes.node[box]!);
  return node < 0 ? null : { node, type: boxes.type[box]!, x, y };
}

// The drawn frames, in CSS pixels of the canvas.
export function framesOf({ tree, boxes }: Drawn, rows: Rows): DrawnFrame[] {
  const out: DrawnFrame[] = [];
  for (let i = 0; i < boxes.count; i++) {
    if (boxes.type[i] !== BoxType.frame) continue;
    const node = boxes.node[i]!;
    out.push({
      name: tree.names[tree.name[node]!]!,
      label: tree.labels[tree.label[node]!]!,
      module: tree.modules[tree.module[node]!] ?? '',
      kind: kinds[tree.kind[node]!] ?? 'unknown',
      depth: boxes.depth[i]!,
      x: boxes.x[i]!,
      y: rowTop(rows, boxes.depth[i]!),
      width: boxes.width[i]!,
      height: ROW - 1,
      self: tree.self[node]!,
      total: tree.total[node]!,
      step: tree.diff?.step[node] ?? null,
    });
  }
  return out;
}
