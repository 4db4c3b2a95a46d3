// Data and actions of a flame graph: the large one, or one of the halves with callers and callees.
import type { ReadonlySignal, Signal } from '@preact/signals';
import type { FlamePane } from '../flame/pane';
import type { Span } from '../model/span';
import type { FlameTree } from '../flame/tree';
import { copy } from './ui';
import { openCallers, openSource } from './view';

export interface Frames {
  tree: ReadonlySignal<FlameTree | null>;
  zoom: ReadonlySignal<readonly string[]>;
  zoomTo: (path: readonly string[]) => void;
  span: ReadonlySignal<Span | null>;
  setSpan: (span: Span) => void;
  upright: ReadonlySignal<boolean>;
  isMatch: ReadonlySignal<Uint8Array | null>;
  // True if a node's callers are below it in the tree, not above.
  inverted: ReadonlySignal<boolean>;
  pane: Signal<FlamePane | null>;
  hide?: (path: readonly string[]) => void;
}

export const nameOf = (tree: FlameTree, node: number): string => tree.names[tree.name[node]!]!;
export const moduleOf = (tree: FlameTree, node: number): string => tree.modules[tree.module[node]!] ?? '';
export const fileOf = (tree: FlameTree, node: number): string => tree.files[tree.file[node]!] ?? '';

// The nodes from below the root to `node`.
export function lineage(tree: FlameTree, node: number): number[] {
  const nodes: number[] = [];
  for (let at = node; at > 0; at = tree.parent[at]!) nodes.push(at);
  return nodes.reverse();
}

// One frame per line, outermost first.
export function stackText(tree: FlameTree, node: number, inverted: boolean): string {
  const names = lineage(tree, node).map((at) => tree.labels[tree.label[at]!]!);
  return (inverted ? names.reverse() : names).join('\n');
}

export const showSourceOf = (tree: FlameTree, node: number): void =>
  openSource(fileOf(tree, node), tree.line[node]!, nameOf(tree, node), moduleOf(tree, node));
export const showCallersOf = (tree: FlameTree, node: number): void =>
  openCallers(nameOf(tree, node), moduleOf(tree, node));
export const copyName = (tree: FlameTree, node: number): void => void copy(nameOf(tree, node), 'Name copied');
export const copyStack = (frames: Frames, tree: FlameTree, node: number): void =>
  void copy(stackText(tree, node, frames.inverted.peek()), 'Stack copied, the outermost frame first');
