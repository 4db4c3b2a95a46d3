// Callers and callees of the chosen function, as two half flame graphs.
import { computed, effect, signal, type ReadonlySignal } from '@preact/signals';
import type { FlamePane } from '../flame/pane';
import type { Span } from '../model/span';
import type { FlameTree } from '../flame/tree';
import { arrangement, callers } from './data';
import type { Frames } from './frames';
import { currentId } from './session';
import { sortedTree } from './sorted_tree';
import { setView, view } from './view';

// The answer for the chosen function; null while the data are those of another function.
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
    // Another function, shape, session or zoomed frame resets the span.
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
  // Keep the tree as long as its answer: the same function may be chosen again.
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

// Callers are drawn above the function, callees below it.
export const callersHalf = half(() => callers.data.value?.callers ?? null, 'callersZoom', true, true);
export const calleesHalf = half(() => callers.data.value?.callees ?? null, 'calleesZoom', false, false);
