// The part of a tree that the window shows: the zoomed frame, the span within that frame, and the animation between two spans.
import { wholeSpan, type Span } from '../model/span';
import { emptyTree, nodeAt, type FlameTree } from './tree';

const ANIMATION_MS = 150;

export interface Stretch {
  from: number; // weight at the left edge
  to: number; // weight at the right edge
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

  // The whole zoomed frame.
  whole(): Stretch {
    const from = this.tree.start[this.zoomed]!;
    return { from, to: from + this.tree.total[this.zoomed]! };
  }

  rows(): number {
    return this.tree.depth[this.zoomed]! + this.tree.height[this.zoomed]! + 1;
  }

  // The window follows the zoomed path without a new animation.
  setTree(tree: FlameTree): void {
    this.tree = tree;
    this.zoomed = nodeAt(tree, this.path).node;
    if (!this.animation) this.jump();
  }

  // True: another frame is zoomed now.
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

  // `now`: start time of the animation in ms; null: no animation.
  setSpan(span: Span, now: number | null): void {
    this.span = span;
    this.go(now);
  }

  jump(): void {
    this.animation = null;
    ({ from: this.from, to: this.to } = this.target());
  }

  // Advances the animation. True: the animation has not ended.
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
