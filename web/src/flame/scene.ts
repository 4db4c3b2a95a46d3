// What a flame graph's canvas shall show: all that its drawing needs besides the tree and the matches of a search. Plain values, so
// that a scene can be drawn on another thread than the one it was made on. Pure.
import type { Contrast } from '../model/baseline';
import type { Theme } from '../model/theme';
import type { Colouring } from '../model/view_state';
import type { Boxes } from './layout';

export const ROW = 20; // CSS pixels a level

export interface Look {
  theme: Theme;
  colouring: Colouring;
  contrast: Contrast;
  current: number; // the match or frame that is walked to, -1: none
  hovered: number;
  zoomed: number; // frames above it are its ancestors and stand back
}

// How rows lie in the window: the content is higher than it when stacks are deep.
export interface Rows {
  upright: boolean; // the root at the bottom
  content: number; // CSS pixels
  scrolled: number;
}

// The whole of the zoomed frame, in small beside the graph.
export interface Overview {
  from: number; // weight at its edges
  to: number;
  rows: number;
}

export interface Scene extends Look, Rows {
  tree: number; // its id
  from: number; // weight at the left edge
  to: number; // and at the right one
  width: number; // CSS pixels
  height: number;
  ratio: number; // screen pixels a CSS pixel
  overview: Overview | null; // when it is worth its room
}

// What is on the canvas.
export interface Seen {
  tree: number;
  boxes: Boxes;
}

// y of a row in the window.
export const rowTop = ({ upright, content, scrolled }: Rows, depth: number): number =>
  (upright ? content - (depth + 1) * ROW : depth * ROW) - scrolled;

export function depthAt({ upright, content, scrolled }: Rows, y: number): number {
  const inContent = y + scrolled;
  return Math.floor((upright ? content - inContent : inContent) / ROW);
}

export function visibleRows(rows: Rows, height: number): { first: number; last: number } {
  const top = depthAt(rows, 0);
  const bottom = depthAt(rows, height);
  return { first: Math.max(0, Math.min(top, bottom)), last: Math.max(top, bottom) };
}
