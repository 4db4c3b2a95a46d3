// The state of the page for tests: the frames on the canvas, and the data behind them.
import { entryName } from './model/path';
import { calleesHalf, callersHalf, sandwich } from './store/callers';
import { flame, functions } from './store/data';
import { hits } from './store/hits';
import { matches, pane, tree, zoomTarget } from './store/flame';
import { streamState } from './store/live';
import { currentId, session } from './store/session';
import { axisSpan, follows, plots, sessionEnd, timeline } from './store/timeline';
import { theme } from './store/theme';
import { view, zoom } from './store/view';

export function exposeForTests(): void {
  const inspector = {
    frames: () => pane.value?.frames() ?? [],
    halves: () => [callersHalf, calleesHalf].map((half) => half.pane.value?.frames() ?? []),
    functions: () => functions.data.value?.functions ?? [],
    hits: () => hits.data.value?.hits ?? [],
    callers: () => {
      const { answer, callers, callees } = sandwich.value ?? {};
      return answer && callers && callees
        ? { ...answer, callers: [...callers.total], callees: [...callees.total] }
        : null;
    },
    minimap: () => !(document.querySelector<HTMLElement>('.minimap')?.hidden ?? true),
    settled: () => {
      const shown = tree.value;
      return shown !== null && !flame.loading.value && pane.value?.currentTree() === shown && pane.value.drawn();
    },
    zoomPath: () => zoom.value.map(entryName),
    matchedShare: () => {
      const shown = tree.value;
      const found = matches.value;
      return shown && found ? found.weight / shown.total[zoomTarget.value.node]! : null;
    },
    // The time axis: its range and its lines.
    timeline: () => ({
      span: axisSpan.value,
      end: sessionEnd.value,
      follows: follows.value,
      samples: timeline.data.value?.samples ?? [],
      start: timeline.data.value?.start_ms ?? 0,
      slice: timeline.data.value?.slice_ms ?? 0,
      rows: timeline.data.value?.rows?.length ?? 0,
      marks: timeline.data.value?.marks ?? [],
      lines: (plots.data.value ?? []).map(({ id, line }) => ({ id, ...line })),
    }),
    state: () => ({
      view: view.value,
      session: currentId.value,
      sessionState: session.value?.state ?? null,
      stream: streamState.value,
      theme: theme.value,
      dataVersion: flame.data.value?.head.data_version ?? 0,
      newestNs: flame.data.value?.head.newest_ns ?? 0,
      nodes: tree.value?.size ?? 0,
      total: tree.value?.total[0] ?? 0,
    }),
  };
  Object.defineProperty(window, '__flamewire', { value: inspector });
}
