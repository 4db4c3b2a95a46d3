// Callers and callees of the chosen function: the two halves as flame graphs.
import { computed, effect, signal, type ReadonlySignal } from '@preact/signals';
import type { FlameGraph } from '../api/types';
import type { FlamePane } from '../flame/pane';
import type { Span } from '../flame/span';
import { buildTree, type FlameTree } from '../flame/tree';
import { callers } from './data';
import type { Frames } from './frames';
import { currentId } from './session';
import { setView, view } from './view';

// The answer for what is chosen now; null while that of another function is shown no longer.
export const sandwich = computed(() => {
  const data = callers.data.value;
  const { callersOf, callersModule } = view.value;
  return data && data.name === callersOf && data.module === callersModule ? data : null;
});

function treeOf(graph: FlameGraph): FlameTree {
  const { name, shape } = sandwich.value!;
  return buildTree(graph, view.value.byWeight ? 'weight' : 'name', shape.merge, name);
}

function half(graph: () => FlameGraph | undefined, side: 'callersZoom' | 'calleesZoom', upright: boolean, inverted: boolean): Frames {
  const zoom = computed(() => view.value[side]);
  const span = signal<Span | null>(null);
  const fixed = (value: boolean): ReadonlySignal<boolean> => signal(value);
  effect(() => {
    // Another function, or another frame of its half, is shown whole.
    void [view.value.callersOf, view.value.callersModule, view.value.merge, view.value.collapse, currentId.value, zoom.value];
    span.value = null;
  });
  return {
    tree: computed(() => {
      const answer = graph();
      return answer ? treeOf(answer) : null;
    }),
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
export const callersHalf = half(() => sandwich.value?.answer?.callers, 'callersZoom', true, true);
export const calleesHalf = half(() => sandwich.value?.answer?.callees, 'calleesZoom', false, false);
