// The view state of the page: the only writable copy, mirrored in the address bar.
import { computed, signal } from '@preact/signals';
import { formatHash, parseHash, places, reset, type Tab, type ViewState } from '../model/view_state';

export const view = signal<ViewState>(parseHash(location.hash));

export const tab = computed(() => view.value.tab);
export const zoom = computed(() => view.value.zoom);
export const search = computed(() => view.value.search);

// `push` adds a history entry for the Back button; typing and brushing replace the current entry.
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

// Paths are valid in one shape of the tree only. A new shape is shown from its root, with nothing hidden.
export function setShape(patch: Partial<Pick<ViewState, 'inverted' | 'merge' | 'collapse' | 'group'>>): void {
  setView({ ...reset('shape'), ...patch });
}

// Also shows the code of `name`, if given. Without a file, the code determines the location.
export function openSource(file: string, line: number, name = '', module = ''): void {
  if (file || name) setView({ tab: 'source', file, line, codeOf: name, codeModule: module, address: null });
}

// Another session has other threads and times. All other view state stays.
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
