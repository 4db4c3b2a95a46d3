// The root that an agent gives to stacks whose outer frames it could not see. It is no function of the program.
import type { FlameTree } from './tree';

const NAME = '[truncated]';

export const isTruncation = (tree: FlameTree, node: number): boolean =>
  node > 0 && tree.names[tree.name[node]!] === NAME && (tree.modules[tree.module[node]!] ?? '') === '';

// Only outermost frames can be one.
export function hasTruncation(tree: FlameTree): boolean {
  for (let child = tree.firstChild[0] ?? -1; child >= 0; child = tree.nextSibling[child]!) if (isTruncation(tree, child)) return true;
  return false;
}
