// The data of each tab, fetched only while the tab is open.
import { computed, signal } from '@preact/signals';
import { api, orEmpty } from '../api/client';
import type { BaselineParams, ShapeParams } from '../api/types';
import { workerClient } from '../flame/worker_client';
import type { CallersHead, FlameHead } from '../flame/messages';
import type { Arrangement, FlameTree } from '../flame/tree';
import { healthVersions, resyncs, versions } from './live';
import { createQuery } from './query';
import { isSaved } from './saved';
import { currentId, currentVersion, filter } from './session';
import { tab, view, zoom } from './view';

// A frozen view keeps its data while new data arrive.
export const frozen = signal(false);
let heldVersion = 0;
const version = () => {
  const live = currentVersion.value;
  if (!frozen.value) heldVersion = live;
  return `${heldVersion}/${resyncs.value}`;
};

export const healthVersion = () =>
  frozen.value ? '' : `${healthVersions.value.get(currentId.value) ?? 0}/${resyncs.value}`;
export { version as dataVersion };

const filterKey = computed(() => JSON.stringify(filter.value));
const scope = () => currentId.value;
const keyFor = (...names: string[]) => (currentId.value && names.includes(tab.value) ? filterKey.value : null);

// What the view is compared with; null without a comparison.
export const baseline = computed<BaselineParams | null>(() => {
  const { baseline: base, normalise } = view.value;
  return base && { session: base.session, start: base.start, end: base.end, pid: base.pids, tid: base.tids, normalise };
});
// Empty without a baseline.
export const baselineKey = computed(() => (baseline.value ? JSON.stringify(baseline.value) : ''));
// Covers both sides, because a baseline may be live too.
const comparedVersion = () => {
  const base = baseline.value;
  const own = version();
  return base && base.session !== currentId.value && !frozen.value
    ? `${own}/${versions.value.get(base.session) ?? 0}`
    : own;
};

// The order of siblings, and the side of a comparison that gives the widths. It also applies to existing trees (trees.ts).
export const arrangement = computed<Arrangement>(() => ({
  order: view.value.byWeight ? 'weight' : 'name',
  width: view.value.width,
}));

export interface FlameData {
  key: string; // of the filter that was requested
  resync: number;
  baseline: string; // as baselineKey
  head: FlameHead;
  tree: FlameTree | null; // with the zoomed subtree in full
  shape: ShapeParams;
}

// True if no newer data are known for either side.
const isCurrent = ({ data_version, against }: FlameHead): boolean =>
  data_version >= currentVersion.peek() &&
  (!against || against.data_version >= (versions.peek().get(against.session) ?? 0));

export const shape = computed<ShapeParams>(() => {
  const { inverted, merge, collapse, hidden, group, baseline } = view.value;
  return { inverted, merge, collapse, hidden, group: baseline ? 'none' : group };
});
const shapeKey = computed(() => JSON.stringify(shape.value));

export const flame = createQuery<FlameData | null>({
  key: () => {
    const key = keyFor('flame');
    return key && `${key}${baselineKey.value}${shapeKey.value}${JSON.stringify(zoom.value)}`;
  },
  version: comparedVersion,
  scope,
  fetch: async (abort, previous) => {
    const key = filterKey.peek() + baselineKey.peek() + shapeKey.peek();
    const against = baselineKey.peek();
    const wanted = shape.peek();
    const resync = resyncs.peek();
    const holds = previous?.key === key && previous.resync === resync && (frozen.peek() || isCurrent(previous.head));
    const made = await workerClient().ask(
      {
        kind: 'flame',
        view: filter.peek(),
        baseline: baseline.peek(),
        shape: wanted,
        path: zoom.peek(),
        arrangement: arrangement.peek(),
        keep: holds ? previous.head.base : 0,
      },
      abort,
    );
    return made && { key, resync, baseline: against, head: made.head, tree: made.trees[0] ?? null, shape: wanted };
  },
  intervalMs: 200,
});

export const functions = createQuery({
  // The tab with callers and callees starts with a list of functions.
  key: () => (baseline.value ? keyFor('callers') : keyFor('functions', 'callers')),
  version,
  scope,
  fetch: (abort) => orEmpty(api.functions(filter.peek(), abort)),
  intervalMs: 500,
  rows: true,
});

// Conditions that make the view misleading.
export const warnings = createQuery({
  key: () => (currentId.value ? filterKey.value : null),
  version,
  scope,
  fetch: (abort) => orEmpty(api.warnings(filter.peek(), abort)),
  intervalMs: 5000,
  deferrable: true,
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
  rows: true,
});

// Data of the chosen function. `answer` is null if no stack of the view contains the function.
export interface CallersData {
  name: string;
  module: string;
  answer: CallersHead | null;
  callers: FlameTree | null;
  callees: FlameTree | null;
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
    const made = await workerClient().ask(
      {
        kind: 'callers',
        view: filter.peek(),
        shape: shape.peek(),
        name,
        module,
        arrangement: { ...arrangement.peek(), width: 'view' },
      },
      abort,
    );
    return {
      name,
      module,
      answer: made?.head ?? null,
      callers: made?.trees[0] ?? null,
      callees: made?.trees[1] ?? null,
    };
  },
  intervalMs: 300,
  rows: true,
});

const THREAD_SLICES = 60; // of a thread's sparkline

export const threads = createQuery({
  key: () => {
    if (!currentId.value || tab.value !== 'threads') return null;
    // Threads are chosen in this table, so it shows all of them.
    return JSON.stringify({ ...filter.value, tid: [] });
  },
  version,
  scope,
  fetch: (abort) => orEmpty(api.threads({ ...filter.peek(), tid: [] }, THREAD_SLICES, abort)),
  intervalMs: 500,
  rows: true,
});

// What the threads table shows: samples or, if the recording contains them, thread states or scheduling.
export type ThreadsShow = 'samples' | 'states' | 'scheduling';
export const threadsShow = signal<ThreadsShow>('samples');
const STATE_SLICES = 150;

const ofAllThreads = (shown: boolean) =>
  shown && currentId.value && tab.value === 'threads' ? JSON.stringify({ ...filter.value, tid: [], event: '' }) : null;

// Also fetched while samples are shown: the answer determines whether the other tables are offered.
export const threadStates = createQuery({
  key: () => ofAllThreads(!isSaved),
  version,
  scope,
  fetch: (abort) => orEmpty(api.threadStates({ ...filter.peek(), tid: [], event: '' }, STATE_SLICES, abort)),
  intervalMs: 1000,
  rows: true,
});

export const scheduling = createQuery({
  key: () => ofAllThreads(threadsShow.value === 'scheduling'),
  version,
  scope,
  fetch: (abort) => orEmpty(api.scheduling({ ...filter.peek(), tid: [], event: '' }, abort)),
  intervalMs: 1000,
  rows: true,
});

// Counters of each thread or CPU exist only from the moment when they were switched on.
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
