// Placeholders for frames that are missing from stacks. They are not functions of the program.
import type { FlameTree } from './tree';

// truncated: the stack is deeper than its recorded part. incomplete: unwinding could not continue. Both are outermost frames.
// skipped: one frame between two others, which a frame-pointer chain skips.
// unsampled: weight without a stack.
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

// Whether some stacks lack their outermost callers. Their placeholders are children of the root, so only these are checked.
export function hasMissingCallers(tree: FlameTree): boolean {
  for (let child = tree.firstChild[0] ?? -1; child >= 0; child = tree.nextSibling[child]!) {
    const missing = missingCallers(tree, child);
    if (missing && missing !== 'unsampled') return true;
  }
  return false;
}
