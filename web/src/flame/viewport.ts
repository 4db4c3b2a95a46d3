// Which part of a tree is in the window: the zoomed frame, how much of it, and the way there.
import { wholeSpan, type Span } from '../model/span';
import { emptyTree, nodeAt, type FlameTree } from './tree';

const ANIMATION_MS = 150;

export interface Stretch {
  from: number; // weight at the left edge
  to: number; // and at the right one
}

export class Viewport implements Stretch {
  tree: FlameTree = emptyTree;
  zoomed = 0;
  span: Span = wholeSpan;
  from = 0;
  to = 0;
  private path: readonly string[] = [];
  private animation: (Stretch & { started: number }) | null = null;

  get isMoving(): boolean {
    return this.animation !== null;
  }

  // All of the zoomed frame.
  whole(): Stretch {
    const from = this.tree.start[this.zoomed]!;
    return { from, to: from + this.tree.total[this.zoomed]! };
  }

  rows(): number {
    return this.tree.depth[this.zoomed]! + this.tree.height[this.zoomed]! + 1;
  }

  // The window follows the zoomed path without a jump.
  setTree(tree: FlameTree): void {
    this.tree = tree;
    this.zoomed = nodeAt(tree, this.path).node;
    if (!this.animation) this.jump();
  }

  // True when another frame is zoomed now.
  setZoom(path: readonly string[], now: number | null): boolean {
    if (path.length === this.path.length && path.every((name, i) => name === this.path[i])) return false;
    const before = this.zoomed;
    this.path = [...path];
    this.zoomed = nodeAt(this.tree, path).node;
    if (this.zoomed === before) return false;
    this.span = wholeSpan;
    this.go(now);
    return true;
  }

  // `now`: when the way there begins (ms); null: without one.
  setSpan(span: Span, now: number | null): void {
    this.span = span;
    this.go(now);
  }

  jump(): void {
    this.animation = null;
    ({ from: this.from, to: this.to } = this.target());
  }

  // Along the way; true when more of it follows.
  step(now: number): boolean {
    if (!this.animation) return false;
    const progress = Math.min(1, Math.max(0, (now - this.animation.started) / ANIMATION_MS));
    const eased = 1 - (1 - progress) ** 3;
    const goal = this.target();
    this.from = this.animation.from + (goal.from - this.animation.from) * eased;
    this.to = this.animation.to + (goal.to - this.animation.to) * eased;
    if (progress >= 1) this.animation = null;
    return progress < 1;
  }

  private target(): Stretch {
    const { from, to } = this.whole();
    return { from: from + this.span.from * (to - from), to: from + this.span.to * (to - from) };
  }

  private go(now: number | null): void {
    if (now === null) this.jump();
    else this.animation = { from: this.from, to: this.to, started: now };
  }
}
