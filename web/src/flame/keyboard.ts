// Keyboard actions of a flame graph. Pure.
import { largestChild, type FlameTree } from './tree';

export type Step = 'inward' | 'outward' | 'next' | 'previous';
export type KeyAction = Step | 'zoom' | 'source' | 'callers' | 'menu' | 'closer' | 'farther' | 'whole' | 'home';

const actions: Record<string, KeyAction> = {
  ArrowRight: 'next',
  ArrowLeft: 'previous',
  ' ': 'zoom',
  Enter: 'zoom',
  s: 'source',
  c: 'callers',
  ContextMenu: 'menu',
  '+': 'closer',
  '=': 'closer',
  '-': 'farther',
  Escape: 'whole',
  Home: 'home',
};

type Key = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'>;

// In an upright graph, the callees of a frame are above it. Null: the key has no action.
export function actionOf(event: Key, upright: boolean): KeyAction | null {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (event.key === 'F10') return event.shiftKey ? 'menu' : null;
  if (event.key === 'ArrowUp') return upright ? 'inward' : 'outward';
  if (event.key === 'ArrowDown') return upright ? 'outward' : 'inward';
  return Object.hasOwn(actions, event.key) ? actions[event.key]! : null;
}

function previousSibling(tree: FlameTree, node: number): number {
  if (node === 0) return -1;
  let previous = -1;
  for (let child = tree.firstChild[tree.parent[node]!]!; child >= 0 && child !== node; child = tree.nextSibling[child]!)
    previous = child;
  return previous;
}

// The frame one step from `node`; -1: none.
export function stepFrom(tree: FlameTree, node: number, step: Step): number {
  switch (step) {
    case 'inward':
      return largestChild(tree, node);
    case 'outward':
      return node > 0 ? tree.parent[node]! : -1;
    case 'next':
      return tree.nextSibling[node]!;
    case 'previous':
      return previousSibling(tree, node);
  }
}
