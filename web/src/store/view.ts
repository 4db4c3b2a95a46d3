// What the person looks at: the one writable copy of the view state, mirrored in the address bar.
import { computed, signal } from '@preact/signals';
import { formatHash, parseHash, places, reset, type Tab, type ViewState } from '../model/view_state';

export const view = signal<ViewState>(parseHash(location.hash));

export const tab = computed(() => view.value.tab);
export const zoom = computed(() => view.value.zoom);
export const search = computed(() => view.value.search);

// `push` makes a step for the Back button; typing and brushing replace the current one.
export function setView(patch: Partial<ViewState>, history_: 'push' | 'replace' = 'push'): void {
  const next = { ...view.value, ...patch };
  const hash = formatHash(next);
  if (hash === formatHash(view.value)) return;
  if (history_ === 'push') history.pushState(null, '', hash);
  else history.replaceState(null, '', hash);
  view.value = next;
}

export function openTab(name: Tab): void {
  setView({ tab: name });
}

export function openCallers(name: string, module: string): void {
  setView({ tab: 'callers', callersOf: name, callersModule: module, callersZoom: [], calleesZoom: [] });
}

// Paths are of one shape of the tree; another begins at its root, with nothing hidden.
export function setShape(patch: Partial<Pick<ViewState, 'inverted' | 'merge' | 'collapse' | 'group'>>): void {
  setView({ ...reset('shape'), ...patch });
}

// With the code of `name`, when it is given; without a file the code tells it.
export function openSource(file: string, line: number, name = '', module = ''): void {
  if (file || name) setView({ tab: 'source', file, line, codeOf: name, codeModule: module, address: null });
}

// Another session has other threads and times; what is not about them stays.
export function openSession(id: string, name: Tab = 'flame'): void {
  setView({ ...reset('session'), tab: name, session: id });
}

export const isFiltered = computed(() => {
  const v = view.value;
  return (
    v.pids.length > 0 || v.tids.length > 0 || places.some((place) => v[place]) || v.start !== null || v.end !== null
  );
});

const readAddress = () => {
  const next = parseHash(location.hash);
  if (formatHash(next) !== formatHash(view.value)) view.value = next;
};
addEventListener('popstate', readAddress);
addEventListener('hashchange', readAddress);
