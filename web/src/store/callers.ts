// Callers and callees of the chosen function: the two halves as flame graphs.
import { computed, effect, signal, type ReadonlySignal } from '@preact/signals';
import type { FlamePane } from '../flame/pane';
import type { Span } from '../model/span';
import type { FlameTree } from '../flame/tree';
import { arrangement, callers } from './data';
import type { Frames } from './frames';
import { currentId } from './session';
import { sortedTree } from './sorted_tree';
import { setView, view } from './view';

// The answer for what is chosen now; null while that of another function is shown no longer.
export const sandwich = computed(() => {
  const data = callers.data.value;
  const { callersOf, callersModule } = view.value;
  return data && data.name === callersOf && data.module === callersModule ? data : null;
});

function half(
  made: () => FlameTree | null,
  side: 'callersZoom' | 'calleesZoom',
  upright: boolean,
  inverted: boolean,
): Frames {
  const zoom = computed(() => view.value[side]);
  const span = signal<Span | null>(null);
  const fixed = (value: boolean): ReadonlySignal<boolean> => signal(value);
  effect(() => {
    // Another function, or another frame of its half, is shown whole.
    void [
      view.value.callersOf,
      view.value.callersModule,
      view.value.merge,
      view.value.collapse,
      currentId.value,
      zoom.value,
    ];
    span.value = null;
  });
  // Held as long as the answer, whose turn may come again.
  const tree = sortedTree(computed(made), () => ({ order: arrangement.value.order, width: 'view' }));
  return {
    tree: computed(() => (sandwich.value ? tree.value : null)),
    zoom,
    zoomTo: (path) => setView({ [side]: path }),
    span,
    setSpan: (next) => (span.value = next),
    upright: fixed(upright),
    isMatch: signal<Uint8Array | null>(null),
    inverted: fixed(inverted),
    pane: signal<FlamePane | null>(null),
  };
}

// Callers stand on the function, callees hang below it.
export const callersHalf = half(() => callers.data.value?.callers ?? null, 'callersZoom', true, true);
export const calleesHalf = half(() => callers.data.value?.callees ?? null, 'calleesZoom', false, false);
