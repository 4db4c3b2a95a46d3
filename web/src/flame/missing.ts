// What an agent draws in place of frames that it could not see. They are not functions of the program.
import type { FlameTree } from './tree';

// truncated: the stack goes on beyond what was recorded of it. incomplete: no table states how to go on. Both are roots.
// skipped: one frame between two others, which a chain of frame pointers steps over.
// unsampled: weight without any stack.
export type Missing = 'truncated' | 'incomplete' | 'skipped' | 'unsampled';
const names: Record<string, Missing> = Object.assign(Object.create(null), {
  '[truncated]': 'truncated',
  '[incomplete]': 'incomplete',
  '[caller missing]': 'skipped',
  '[not sampled: short-lived threads]': 'unsampled',
});

export const isMissingName = (name: string): boolean => name in names;

export function missingCallers(tree: FlameTree, node: number): Missing | null {
  if (node === 0) return null;
  const missing = names[tree.names[tree.name[node]!]!];
  return missing && (tree.modules[tree.module[node]!] ?? '') === '' ? missing : null;
}

// Whether stacks end too early: only outermost frames say so.
export function hasMissingCallers(tree: FlameTree): boolean {
  for (let child = tree.firstChild[0] ?? -1; child >= 0; child = tree.nextSibling[child]!) {
    const missing = missingCallers(tree, child);
    if (missing && missing !== 'unsampled') return true;
  }
  return false;
}
