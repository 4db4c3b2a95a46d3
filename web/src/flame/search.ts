// Searching frames by regular expression.
import type { Pattern } from '../model/pattern';
import type { FlameTree } from './tree';

export interface Matches {
  nodes: Int32Array; // depth first, siblings from left to right
  isMatch: Uint8Array; // by node
  weight: number; // of stacks through `root` that contain a match, each counted once: the sum of the outermost matches
}

export function findMatches(tree: FlameTree, pattern: Pattern, root = 0): Matches {
  const nameMatches = new Uint8Array(tree.names.length);
  tree.names.forEach((name, id) => (nameMatches[id] = pattern.test(name) ? 1 : 0));
  const isMatch = new Uint8Array(tree.size);
  const nodes: number[] = [];
  let weight = 0;
  const stack: number[] = [root];
  let above = false;
  for (let up = root; up > 0; up = tree.parent[up]!) if (up !== root && nameMatches[tree.name[up]!]) above = true;
  const covered = new Uint8Array(tree.size); // by node: 1 if a frame above it matches
  if (above) covered[root] = 1;
  const children: number[] = [];
  while (stack.length > 0) {
    const node = stack.pop()!;
    const hit = node > 0 && nameMatches[tree.name[node]!] === 1;
    if (hit) {
      isMatch[node] = 1;
      nodes.push(node);
      if (!covered[node]) weight += tree.total[node]!;
    }
    const inside = hit || covered[node] === 1 ? 1 : 0;
    children.length = 0;
    for (let child = tree.firstChild[node]!; child >= 0; child = tree.nextSibling[child]!) {
      covered[child] = inside;
      children.push(child);
    }
    for (let i = children.length - 1; i >= 0; i--) stack.push(children[i]!);
  }
  if (above) weight = tree.total[root]!;
  return { nodes: Int32Array.from(nodes), isMatch, weight };
}
