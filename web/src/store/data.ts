// What each tab shows, fetched only while that tab is looked at.
import { computed, signal } from '@preact/signals';
import { api, ApiError, PATH_SEPARATOR } from '../api/client';
import type { BaselineParams, Callers, FlameGraph, ShapeParams } from '../api/types';
import { isDiff } from '../flame/difference';
import { graft, hasPrunedBelow } from '../flame/graft';
import { healthVersions, resyncs, versions } from './live';
import { createQuery } from './query';
import { currentId, currentVersion, filter } from './session';
import { tab, view, zoom } from './view';

// A frozen view stays as it is while data stream in.
export const frozen = signal(false);
let heldVersion = 0;
const version = () => {
  const live = currentVersion.value;
  if (!frozen.value) heldVersion = live;
  return `${heldVersion}/${resyncs.value}`;
};

export const healthVersion = () => (frozen.value ? '' : `${healthVersions.value.get(currentId.value) ?? 0}/${resyncs.value}`);
export { version as dataVersion };

const filterKey = computed(() => JSON.stringify(filter.value));
const scope = () => currentId.value;
const keyFor = (...names: string[]) => (currentId.value && names.includes(tab.value) ? filterKey.value : null);
// A session without samples yet answers no_data: that is an empty view, not an error.
export const orEmpty = <T>(answer: Promise<T>): Promise<T | null> =>
  answer.catch((error: unknown) => {
    if (error instanceof ApiError && error.code === 'no_data') return null;
    throw error;
  });

// What the view is compared with; null: with nothing.
export const baseline = computed<BaselineParams | null>(() => {
  const { baseline: base, normalise } = view.value;
  return base && { session: base.session, start: base.start, end: base.end, pid: base.pids, tid: base.tids, normalise };
});
// Empty without one.
export const baselineKey = computed(() => (baseline.value ? JSON.stringify(baseline.value) : ''));
// Of both sides: a baseline may be live too.
const comparedVersion = () => {
  const base = baseline.value;
  const own = version();
  return base && base.session !== currentId.value && !frozen.value ? `${own}/${versions.value.get(base.session) ?? 0}` : own;
};

// The server takes addresses of up to 1 MiB; some thousand frames with long names are more.
const MOST_PATH = 1_000_000;
const isTooLong = (path: readonly string[]) => path.length > 100 && encodeURIComponent(path.join(PATH_SEPARATOR)).length > MOST_PATH;

export interface FlameData {
  key: string; // of the filter that `base` answers
  resync: number;
  baseline: string; // as baselineKey
  base: FlameGraph;
  shown: FlameGraph; // base with the zoomed subtree in full
  shape: ShapeParams;
}

// Nothing newer is known, of either side.
const isCurrent = (graph: FlameGraph): boolean =>
  graph.data_version >= currentVersion.peek() &&
  (!isDiff(graph) || graph.base.data_version >= (versions.peek().get(graph.base.session) ?? 0));

export const shape = computed<ShapeParams>(() => {
  const { inverted, merge, collapse, hidden } = view.value;
  return { inverted, merge, collapse, hidden };
});
const shapeKey = computed(() => JSON.stringify(shape.value));

export const flame = createQuery<FlameData | null>({
  key: () => {
    const key = keyFor('flame');
    return key && `${key}${baselineKey.value}${shapeKey.value}${JSON.stringify(zoom.value)}`;
  },
  version: comparedVersion,
  scope,
  // A zoom fetches only the subtree, and only when the tree at hand lacks parts of it.
  fetch: async (abort, previous) => {
    const params = filter.peek();
    const key = filterKey.peek() + baselineKey.peek() + shapeKey.peek();
    const other = baseline.peek();
    const against = baselineKey.peek();
    const wanted = shape.peek();
    const { merge } = wanted;
    const path = zoom.peek();
    const resync = resyncs.peek();
    const ask = (at: readonly string[]): Promise<FlameGraph> =>
      other ? api.diff(params, other, wanted, at, abort) : api.flamegraph(params, wanted, at, abort);
    const fresh =
      previous?.key === key && previous.resync === resync && (frozen.peek() || isCurrent(previous.base));
    const base = fresh ? previous.base : await orEmpty(ask([]));
    if (!base) return null;
    if (path.length === 0 || isTooLong(path) || !hasPrunedBelow(base, path, merge)) return { key, resync, baseline: against, base, shown: base, shape: wanted };
    const detail = await orEmpty(ask(path)).catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    });
    return { key, resync, baseline: against, base, shown: detail ? graft(base, path, detail, merge) : base, shape: wanted };
  },
  intervalMs: 200,
});

export const functions = createQuery({
  // Callers and callees begin with the choice of a function.
  key: () => (baseline.value ? keyFor('callers') : keyFor('functions', 'callers')),
  version,
  scope,
  fetch: (abort) => orEmpty(api.functions(filter.peek(), abort)),
  intervalMs: 500,
});

export const functionDiffs = createQuery({
  key: () => {
    const key = keyFor('functions');
    return key && baselineKey.value ? key + baselineKey.value : null;
  },
  version: comparedVersion,
  scope: () => `${currentId.value}${baselineKey.value}`,
  fetch: (abort) => orEmpty(api.functionDiffs(filter.peek(), baseline.peek()!, abort)),
  intervalMs: 500,
});

// Of the chosen function; null when no stack of the view contains it.
export interface CallersData {
  name: string;
  module: string;
  shape: ShapeParams;
  answer: Callers | null;
}

export const callers = createQuery<CallersData>({
  key: () => {
    const key = keyFor('callers');
    const { callersOf, callersModule, merge, collapse } = view.value;
    return key && callersOf ? JSON.stringify([key, callersOf, callersModule, merge, collapse]) : null;
  },
  version,
  scope,
  fetch: async (abort) => {
    const { callersOf: name, callersModule: module } = view.peek();
    const wanted = shape.peek();
    const answer = await api.callers(filter.peek(), wanted, name, module, abort).catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    });
    return { name, module, shape: wanted, answer };
  },
  intervalMs: 300,
});

const THREAD_SLICES = 60; // of the small picture of a thread

export const threads = createQuery({
  key: () => {
    if (!currentId.value || tab.value !== 'threads') return null;
    // The table chooses threads, so it shows them all, whatever is chosen.
    return JSON.stringify({ ...filter.value, tid: [] });
  },
  version,
  scope,
  fetch: (abort) => orEmpty(api.threads({ ...filter.peek(), tid: [] }, THREAD_SLICES, abort)),
  intervalMs: 500,
});

// Counters of each thread or CPU exist from when the agent was asked for them.
export type CountersBy = 'total' | 'thread' | 'cpu';
export const countersBy = signal<CountersBy>('total');

export const counters = createQuery({
  key: () => {
    const key = keyFor('counters');
    return key && `${key}${countersBy.value}`;
  },
  version,
  scope: () => `${currentId.value}/${countersBy.value}`,
  fetch: (abort) => api.counters(filter.peek(), countersBy.peek(), abort),
  intervalMs: 500,
});

export function refreshAll(): void {
  resyncs.value += 1;
}
