// The tree of a view in the current order. Trees that are no longer shown are dropped.
import { computed, effect, signal, type ReadonlySignal } from '@preact/signals';
import { workerClient } from '../flame/worker_client';
import type { Arrangement, FlameTree } from '../flame/tree';

// `made` is the tree of an answer. Another order is built from the same answer, without a request.
export function sortedTree(
  made: ReadonlySignal<FlameTree | null>,
  wanted: () => Arrangement,
): ReadonlySignal<FlameTree | null> {
  const again = signal<{ of: FlameTree; tree: FlameTree } | null>(null);
  const shown = computed(() => (made.value && again.value?.of === made.value ? again.value.tree : made.value));
  let held: readonly FlameTree[] = [];
  let flight: AbortController | null = null;
  effect(() => {
    const of = made.value;
    const now = [of, shown.value].filter((tree) => tree !== null);
    for (const tree of held) if (!now.includes(tree)) workerClient().drop(tree.id);
    held = now;
  });
  effect(() => {
    const of = made.value;
    const { order, width } = wanted();
    flight?.abort();
    flight = null;
    const { arrangement } = shown.value ?? {};
    if (!of || !arrangement || (arrangement.order === order && arrangement.width === width)) return;
    const asked = new AbortController();
    flight = asked;
    workerClient()
      .ask({ kind: 'arrange', tree: of.id, arrangement: { order, width } }, asked.signal)
      .then((answer) => {
        const tree = answer?.trees[0];
        if (tree) again.value = { of, tree };
      })
      .catch((error: unknown) => {
        if (!asked.signal.aborted) throw error;
      });
  });
  return shown;
}
