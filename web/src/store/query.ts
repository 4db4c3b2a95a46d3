// A request that is repeated when its data change: at most one in flight, not more often than an interval,
// and none while it is hidden. Old data stay until new data arrive, so a live view does not flicker.
import { effect, signal, type ReadonlySignal, type Signal } from '@preact/signals';
import { ApiError } from '../api/client';
import { defer, withDeferred } from './deferred';
import { rowsReleased } from './pressed';

export interface Query<T> {
  data: ReadonlySignal<T | null>;
  error: ReadonlySignal<ApiError | null>;
  loading: ReadonlySignal<boolean>; // a request for another key than the data's is in flight
  refresh(): void;
}

interface Options<T> {
  // The request, as text. With null (hidden, no session) nothing is fetched and the data stay.
  key: () => string | null;
  // Grows when the answer may have changed.
  version?: () => unknown;
  // Data of another scope (another session) are dropped at once, not kept until the answer arrives.
  scope?: () => string;
  // Called untracked. `previous` is the answer to the same scope, for partial refreshes.
  fetch: (signal: AbortSignal, previous: T | null) => Promise<T>;
  intervalMs?: number;
  // Newer data for the same key are not urgent: they may be applied with other changes (deferred.ts).
  deferrable?: boolean;
  // The data are rows to click: newer data of the same key wait while a row is pressed (pressed.ts).
  rows?: boolean;
}

export const pageVisible: Signal<boolean> = signal(document.visibilityState !== 'hidden');
document.addEventListener('visibilitychange', () => (pageVisible.value = document.visibilityState !== 'hidden'));

const failed = (error: unknown) =>
  error instanceof ApiError ? error : new ApiError(0, { code: 'internal', message: String(error) });

export function createQuery<T>(options: Options<T>): Query<T> {
  const data = signal<T | null>(null);
  const error = signal<ApiError | null>(null);
  const loading = signal(false);
  const force = signal(0);
  let wanted: string | null = null;
  let shown: string | null = null;
  let dataKey: string | null = null; // the key of the data
  let shownVersion: unknown;
  let wantedVersion: unknown;
  let scope = '';
  let flight: AbortController | null = null;
  let flightKey: string | null = null;
  let timer = 0;
  let lastStart = -Infinity;
  let lastCost = 0;
  let newest: T | null = null; // the newest answer, shown or pending

  const show = (answer: T, isRefresh: boolean) => {
    newest = answer;
    if (!isRefresh || !options.deferrable) withDeferred(() => (data.value = answer));
    else
      defer(() => {
        if (newest === answer) data.value = answer;
      });
  };

  const plan = (delay: number) => {
    if (timer || flight) return;
    timer = window.setTimeout(() => {
      timer = 0;
      void run();
    }, delay);
  };

  async function run(): Promise<void> {
    if (wanted === null) return;
    const key = wanted;
    const version = wantedVersion;
    const controller = new AbortController();
    flight = controller;
    flightKey = key;
    lastStart = performance.now();
    try {
      const answer = await options.fetch(controller.signal, data.peek());
      lastCost = performance.now() - lastStart;
      const isRefresh = key === dataKey && data.peek() !== null;
      if (isRefresh && options.rows) await rowsReleased();
      if (controller.signal.aborted) return;
      show(answer, isRefresh);
      dataKey = key;
      error.value = null;
    } catch (reason) {
      if (controller.signal.aborted) return;
      lastCost = performance.now() - lastStart;
      const problem = failed(reason);
      // Do not show the data of another key as the answer to this one.
      if (problem.status >= 400 && key !== dataKey) data.value = newest = null;
      error.value = problem;
    } finally {
      if (flight === controller) flight = null;
    }
    if (controller.signal.aborted) return;
    shown = key;
    shownVersion = version;
    loading.value = false;
    if (wanted !== null && (wanted !== shown || wantedVersion !== shownVersion)) plan(wait());
  }

  // A slow answer (a large profile, a slow link) is refreshed less often.
  const wait = () => Math.max(0, lastStart + Math.max(options.intervalMs ?? 200, lastCost * 1.5) - performance.now());

  effect(() => {
    const key = pageVisible.value ? options.key() : null;
    const version = `${String(options.version?.())}/${force.value}`;
    const nextScope = options.scope?.() ?? '';
    wanted = key;
    wantedVersion = version;
    if (nextScope !== scope) {
      scope = nextScope;
      data.value = newest = null;
      error.value = null;
      shown = null;
    }
    if (key === null) return;
    if (key !== shown) {
      loading.value = true;
      if (flight && flightKey === key) return;
      flight?.abort();
      flight = null;
      clearTimeout(timer);
      timer = 0;
      plan(0);
    } else if (version !== shownVersion) {
      plan(wait());
    }
  });

  return { data, error, loading, refresh: () => void (force.value += 1) };
}
