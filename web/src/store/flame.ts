// Derived state of the flame graph: the laid-out tree, the matches of the search, and the pane that draws it.
import { computed, signal } from '@preact/signals';
import type { FlamePane } from '../flame/pane';
import { compilePattern } from '../model/pattern';
import { findMatches } from '../flame/search';
import { nodeAt } from '../flame/tree';
import { arrangement, flame } from './data';
import type { Frames } from './frames';
import { sortedTree } from './sorted_tree';
import { search, setView, view, zoom } from './view';

export const tree = sortedTree(
  computed(() => flame.data.value?.tree ?? null),
  () => arrangement.value,
);

export const zoomTarget = computed(() => {
  const shown = tree.value;
  return shown ? nodeAt(shown, zoom.value) : { node: 0, found: 0 };
});

export const pattern = computed(() => compilePattern(search.value));

export const matches = computed(() => {
  const shown = tree.value;
  const wanted = pattern.value;
  return shown && wanted ? findMatches(shown, wanted, zoomTarget.value.node) : null;
});

const isWithin = (path: readonly string[], outer: readonly string[]) => outer.every((entry, i) => path[i] === entry);

export const pane = signal<FlamePane | null>(null);

export function zoomTo(path: readonly string[]): void {
  setView({ zoom: path, span: null });
}

// The large flame graph.
export const mainFrames: Frames = {
  tree,
  zoom,
  zoomTo,
  span: computed(() => view.value.span),
  setSpan: (span) => setView({ span: span.from === 0 && span.to === 1 ? null : span }),
  upright: computed(() => view.value.upright),
  isMatch: computed(() => matches.value?.isMatch ?? null),
  inverted: computed(() => flame.data.value?.shape.inverted ?? false),
  pane,
  // The zoomed frame may be inside the hidden one.
  hide: (path) =>
    setView({
      hidden: [...view.value.hidden, path],
      zoom: isWithin(zoom.value, path) ? path.slice(0, -1) : zoom.value,
      span: null,
    }),
};

export function zoomOut(): void {
  if (zoom.value.length > 0) setView({ zoom: zoom.value.slice(0, -1), span: null });
}

// Steps through the matches. The position is kept as a number, so it survives new data.
const walked = signal(-1);
export const walkedMatch = computed(() =>
  matches.value && walked.value >= 0 ? walked.value % matches.value.nodes.length : -1,
);

export function walk(step: 1 | -1): void {
  const found = matches.value;
  if (!found || found.nodes.length === 0) return;
  const count = found.nodes.length;
  walked.value = walked.value < 0 ? (step > 0 ? 0 : count - 1) : (walked.value + step + count) % count;
  pane.value?.reveal(found.nodes[walked.value]!);
}

export function setSearch(text: string): void {
  walked.value = -1;
  setView({ search: text }, 'replace');
}
