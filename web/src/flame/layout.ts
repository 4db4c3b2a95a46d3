// Computes the boxes of a flame tree that a window shows. It visits only frames that are at least a fraction of a pixel wide, so
// the cost depends on the picture and not on the size of the tree.
import type { FlameTree } from './tree';

export const BoxType = { frame: 0, small: 1, pruned: 2 } as const;

// Boxes in columns. x and width are CSS pixels of the window; frames are clipped at its edges.
export interface Boxes {
  count: number;
  node: Int32Array; // the parent, for `small` and `pruned`
  depth: Uint16Array;
  x: Float32Array;
  width: Float32Array;
  type: Uint8Array;
}

export function newBoxes(capacity = 1024): Boxes {
  return {
    count: 0,
    node: new Int32Array(capacity),
    depth: new Uint16Array(capacity),
    x: new Float32Array(capacity),
    width: new Float32Array(capacity),
    type: new Uint8Array(capacity),
  };
}

function grow(boxes: Boxes): void {
  const capacity = boxes.node.length * 2;
  const bigger = newBoxes(capacity);
  for (const column of ['node', 'depth', 'x', 'width', 'type'] as const) bigger[column].set(boxes[column]);
  Object.assign(boxes, { ...bigger, count: boxes.count });
}

function put(boxes: Boxes, type: number, node: number, depth: number, x: number, width: number): void {
  if (boxes.count === boxes.node.length) grow(boxes);
  const i = boxes.count++;
  boxes.type[i] = type;
  boxes.node[i] = node;
  boxes.depth[i] = depth;
  boxes.x[i] = x;
  boxes.width[i] = width;
}

export interface Window_ {
  from: number; // weight at the left edge
  to: number; // weight at the right edge
  width: number; // CSS pixels
  firstRow: number; // rows outside of firstRow … lastRow get no boxes
  lastRow: number;
}

const SMALLEST_PX = 0.5;
// Adjacent siblings that are too narrow to draw become one faint box if together they are at least this wide.
const SMALL_RUN_PX = 1;

// Fills `boxes` and returns it. Rows are depths.
export function layOut(tree: FlameTree, view: Window_, boxes: Boxes): Boxes {
  boxes.count = 0;
  const span = view.to - view.from;
  if (tree.size === 0 || !(span > 0) || !(view.width > 0)) return boxes;
  const scale = view.width / span;
  const clip = (type: number, node: number, depth: number, from: number, to: number) => {
    if (depth < view.firstRow || depth > view.lastRow) return;
    const left = Math.max(0, (from - view.from) * scale);
    const right = Math.min(view.width, (to - view.from) * scale);
    if (right > left) put(boxes, type, node, depth, left, right - left);
  };

  const stack = [0];
  while (stack.length > 0) {
    const node = stack.pop()!;
    const depth = tree.depth[node]!;
    const from = tree.start[node]!;
    clip(BoxType.frame, node, depth, from, from + tree.total[node]!);
    if (depth >= view.lastRow) continue;
    let runFrom = 0;
    let runTo = -1;
    const endRun = () => {
      if (runTo >= 0 && (runTo - runFrom) * scale >= SMALL_RUN_PX) clip(BoxType.small, node, depth + 1, runFrom, runTo);
      runTo = -1;
    };
    for (let child = tree.firstChild[node]!; child >= 0; child = tree.nextSibling[child]!) {
      const start = tree.start[child]!;
      const end = start + tree.total[child]!;
      if (start >= view.to) break; // siblings are in the order of their starts
      if (end <= view.from) continue;
      if ((end - start) * scale < SMALLEST_PX) {
        if (runTo < 0) runFrom = start;
        runTo = end;
        continue;
      }
      endRun();
      stack.push(child);
    }
    endRun();
    const hidden = tree.hidden[node]!;
    if (hidden * scale >= SMALLEST_PX) {
      const end = from + tree.total[node]! - tree.self[node]!;
      clip(BoxType.pruned, node, depth + 1, end - hidden, end);
    }
  }
  return boxes;
}

// The box at a point; -1: none. Boxes of a row do not overlap.
export function boxAt(boxes: Boxes, depth: number, x: number): number {
  for (let i = 0; i < boxes.count; i++) {
    if (boxes.depth[i] === depth && x >= boxes.x[i]! && x < boxes.x[i]! + boxes.width[i]!) return i;
  }
  return -1;
}
