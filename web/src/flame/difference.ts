// The difference of two flame graphs: the change of each frame, and its color. Pure.
// The change is weight / per in the view minus weight / per in the baseline. The color follows the square root of
// change / scale, so that a tenth of the largest change differs visibly from none.
import type { Diff, FlameGraph } from '../api/types';
import type { Contrast, Normalise, Width } from '../model/baseline';
import type { Theme } from '../model/theme';

export interface TreeDiff {
  readonly normalise: Normalise;
  readonly width: Width;
  // By node, for both sides, independent of `width`.
  readonly self: Float64Array;
  readonly total: Float64Array;
  readonly samples: Float64Array;
  readonly selfSamples: Float64Array;
  readonly baseSelf: Float64Array;
  readonly baseTotal: Float64Array;
  readonly baseSamples: Float64Array;
  readonly baseSelfSamples: Float64Array;
  readonly change: Float64Array; // of the total weight
  readonly selfChange: Float64Array;
  readonly step: Int8Array; // color step, -DIFF_STEPS … DIFF_STEPS
  readonly scale: number; // the change with the strongest color
}

export const DIFF_STEPS = 8;
// Two recordings of the same workload differ by about this share of the whole. A smaller change never gets the strongest color.
const LEAST_SCALE = 0.01;

export const isDiff = (graph: FlameGraph): graph is Diff => 'base' in graph;

const rate = (weight: number, per: number): number => (per > 0 ? weight / per : 0);

export const changeOf = (weight: number, per: number, baseWeight: number, basePer: number): number =>
  rate(weight, per) - rate(baseWeight, basePer);

// The smallest of 1, 2 or 5 times a power of ten that is at least `value`. Such a legend is readable, and stable with new data.
export function roundScale(value: number): number {
  if (!(value > 0)) return 0;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((scale) => scale >= value * (1 - 1e-9))!;
}

export function diffStep(change: number, scale: number): number {
  if (!(scale > 0) || change === 0) return 0;
  const step = Math.round(Math.sqrt(Math.min(1, Math.abs(change) / scale)) * DIFF_STEPS);
  return change < 0 ? -step : step;
}

// The graph with the weights of the side that determines the widths.
export function sideOf(graph: Diff, width: Width): FlameGraph {
  if (width === 'view') return graph;
  const { nodes } = graph;
  return {
    ...graph,
    nodes: {
      ...nodes,
      self: nodes.base_self,
      total: nodes.base_total,
      samples: nodes.base_samples,
      self_samples: nodes.base_self_samples,
    },
  };
}

export function differences(graph: Diff, width: Width): TreeDiff {
  const { nodes, per, base } = graph;
  const column = (values: readonly number[]) => Float64Array.from(values);
  const changes = (view: readonly number[], before: readonly number[]) =>
    Float64Array.from(view, (weight, node) => changeOf(weight, per, before[node]!, base.per));
  const change = changes(nodes.total, nodes.base_total);
  // The weight of the whole: 1 if normalized by total, a rate if normalized by time.
  const everything = Math.max(rate(graph.whole.weight, per), rate(base.whole.weight, base.per));
  let most = LEAST_SCALE * everything;
  // Skip the root. If normalized by time, it changes with the load, and all other colors would be pale.
  for (let node = 1; node < change.length; node++) most = Math.max(most, Math.abs(change[node]!));
  const scale = roundScale(most);
  return {
    normalise: graph.normalise,
    width,
    self: column(nodes.self),
    total: column(nodes.total),
    samples: column(nodes.samples),
    selfSamples: column(nodes.self_samples),
    baseSelf: column(nodes.base_self),
    baseTotal: column(nodes.base_total),
    baseSamples: column(nodes.base_samples),
    baseSelfSamples: column(nodes.base_self_samples),
    change,
    selfChange: changes(nodes.self, nodes.base_self),
    step: Int8Array.from(change, (value) => diffStep(value, scale)),
    scale,
  };
}

export const presence = (diff: TreeDiff, node: number): 'both' | 'new' | 'gone' =>
  diff.baseSamples[node] === 0 ? 'new' : diff.samples[node] === 0 ? 'gone' : 'both';

// Hue, and lightness of the strongest color. Text on it has a contrast ratio of at least 5.
const hues: Record<Contrast, Record<'grew' | 'shrank', [hue: number, lightness: number]>> = {
  'red-blue': { grew: [4, 64], shrank: [213, 64] },
  // These two remain distinct with red-green and with blue-yellow color blindness.
  'orange-purple': { grew: [32, 56], shrank: [268, 72] },
};

// Larger changes are more saturated and darker. Black text stays readable on the darkest color.
export function diffColour(step: number, theme: Theme, contrast: Contrast): string {
  const at = Math.min(1, Math.abs(step) / DIFF_STEPS);
  const middle = theme === 'dark' ? 78 : 92;
  if (at === 0) return `hsl(40 4% ${middle}%)`;
  const [hue, strongest] = step > 0 ? hues[contrast].grew : hues[contrast].shrank;
  return `hsl(${hue} ${(34 + 46 * at).toFixed(1)}% ${(middle - 2 - (middle - 2 - strongest) * at).toFixed(1)}%)`;
}

export const diffPalette = (theme: Theme, contrast: Contrast): string[] =>
  Array.from({ length: 2 * DIFF_STEPS + 1 }, (_, i) => diffColour(i - DIFF_STEPS, theme, contrast));
