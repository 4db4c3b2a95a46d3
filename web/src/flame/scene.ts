// The content of a flame graph's canvas: everything that drawing needs besides the tree and the search matches. A scene has only
// plain values, so that another thread can draw it. Pure.
import type { Contrast } from '../model/baseline';
import type { Theme } from '../model/theme';
import type { Colouring } from '../model/view_state';
import type { Boxes } from './layout';

export const ROW = 20; // CSS pixels per level

export interface Look {
  theme: Theme;
  colouring: Colouring;
  contrast: Contrast;
  current: number; // the frame at the cursor; -1: none
  hovered: number;
  zoomed: number; // its ancestors are drawn faded
}

// The position of the rows in the window. The content of deep stacks is higher than the window.
export interface Rows {
  upright: boolean; // the root is at the bottom
  content: number; // CSS pixels
  scrolled: number;
}

// The part of the tree that the minimap shows: the whole zoomed frame.
export interface Overview {
  from: number; // weight at the left edge
  to: number;
  rows: number;
}

export interface Scene extends Look, Rows {
  tree: number; // its id
  from: number; // weight at the left edge
  to: number; // weight at the right edge
  width: number; // CSS pixels
  height: number;
  ratio: number; // screen pixels per CSS pixel
  overview: Overview | null; // null: the minimap is hidden
}

// The content of the canvas after a scene was drawn.
export interface Seen {
  tree: number;
  boxes: Boxes;
}

// The y coordinate of a row in the window.
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
