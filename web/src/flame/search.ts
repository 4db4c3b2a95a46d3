// Searching frames by regular expression.
import type { FlameTree } from './tree';

export interface Pattern {
  test: (text: string) => boolean;
  error: string; // empty, or why the text is no regular expression; it is then searched as it stands
  plain: string | null; // the text to look for, when it is no expression; in small letters when case is ignored
  ignoreCase: boolean;
}

// Small letters match both cases, a capital only itself.
export function compilePattern(text: string): Pattern | null {
  if (!text) return null;
  const ignoreCase = text === text.toLowerCase();
  try {
    const expression = new RegExp(text, ignoreCase ? 'i' : '');
    return {
      test: (name) => expression.test(name),
      error: '',
      plain: escapePattern(text) === text ? text : null,
      ignoreCase,
    };
  } catch (error) {
    return {
      test: (name) => (ignoreCase ? name.toLowerCase() : name).includes(text),
      error:
        error instanceof Error
          ? error.message.replace(/^Invalid regular expression: /, '')
          : 'not a regular expression',
      plain: text,
      ignoreCase,
    };
  }
}

export const escapePattern = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

export interface Matches {
  nodes: Int32Array; // in the order of the picture
  isMatch: Uint8Array; // by node
  weight: number; // of stacks with a match below `root`, each counted once: the sum of the outermost matches
}

export function findMatches(tree: FlameTree, pattern: Pattern, root = 0): Matches {
  const nameMatches = new Uint8Array(tree.names.length);
  tree.names.forEach((name, id) => (nameMatches[id] = pattern.test(name) ? 1 : 0));
  const isMatch = new Uint8Array(tree.size);
  const nodes: number[] = [];
  let weight = 0;
  // Node and, as its complement, "a frame above matched already".
  const stack: number[] = [root];
  let above = false;
  for (let up = root; up > 0; up = tree.parent[up]!) if (up !== root && nameMatches[tree.name[up]!]) above = true;
  const covered = new Uint8Array(tree.size);
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
