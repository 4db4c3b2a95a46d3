// Hits of traced events: the list, the chosen hit with its stack, and the table of groups.
import { computed, effect, signal } from '@preact/signals';
import { api, orEmpty } from '../api/client';
import type { Hits, TracedEvent, TracedHit, ViewParams } from '../api/types';
import { withWords } from '../text/hits';
import { dataVersion } from './data';
import { createQuery } from './query';
import { isSaved } from './saved';
import { currentId, currentVersion, filter, isLive, session } from './session';
import { setView, tab, view } from './view';

const MOST_HITS = 5000; // of one answer
const MOST_FRAMES = 128;
const TYPING_MS = 250;
// Two parts of the list overlap by this, because several hits can have one time.
const OVERLAP_MS = 0.001;

const scope = () => currentId.value;
const eventNames = computed(() => JSON.stringify((session.value?.events ?? []).map((event) => event.name)));

// Which events of the session are traced. The tab appears when there are any.
const knownOf = signal(''); // the session of which they are known
const known = createQuery<readonly TracedEvent[]>({
  key: () => (session.value && !isSaved ? `${currentId.value}${eventNames.value}` : null),
  // A change of the recording can also trace the events that it had before.
  version: () => (knownOf.value === currentId.value ? '' : `${currentVersion.value}`),
  scope,
  fetch: async (abort) => {
    const id = currentId.peek();
    const answer = await orEmpty(api.hits({ session: id }, { limit: 0, frames: 0 }, abort));
    if (answer?.events.length) knownOf.value = id;
    return answer?.events ?? [];
  },
  intervalMs: 5000,
});
export const hasHits = computed(() => (known.data.value?.length ?? 0) > 0);
export const tracedEvents = computed(() => hits.data.value?.events ?? known.data.value ?? []);

// The filter is sent when typing pauses.
const typed = computed(() => view.value.hitFilter);
const sentFilter = signal(typed.peek());
effect(() => {
  const text = typed.value;
  const timer = setTimeout(() => (sentFilter.value = text), TYPING_MS);
  return () => clearTimeout(timer);
});

// The hits of the page's filters, of all traced events or of one.
const hitsFilter = computed<ViewParams>(() => ({ ...filter.value, event: view.value.hitEvent }));
const wanted = computed(() =>
  currentId.value && tab.value === 'events' ? JSON.stringify([hitsFilter.value, sentFilter.value]) : null,
);
const shownRange = (): ViewParams => {
  const { hitsUntil, end } = view.peek();
  return { ...hitsFilter.peek(), end: hitsUntil !== null && (end === null || hitsUntil < end) ? hitsUntil : end };
};

// While a hit is chosen, or the list is scrolled back, a live list stays as it is.
export const held = signal(view.peek().hit !== null);
let heldVersion = '';
const listVersion = () => {
  const live = dataVersion();
  if (!held.value) heldVersion = live;
  return heldVersion;
};

const listKey = computed(() => (wanted.value && !view.value.hitsBy ? `${wanted.value}${view.value.hitsUntil}` : null));
interface List {
  key: string;
  answer: Hits | null;
}
const fetched = createQuery<List>({
  key: () => listKey.value,
  version: listVersion,
  scope,
  fetch: async (abort) => {
    const key = listKey.peek() ?? '';
    const asked = { filter: sentFilter.peek(), limit: MOST_HITS, frames: 1 };
    return { key, answer: await orEmpty(api.hits(shownRange(), asked, abort)) };
  },
  intervalMs: 1000,
  rows: true,
});
// An answer that arrives after the list was held does not move its rows.
const shown = signal<List | null>(null);
effect(() => {
  const next = fetched.data.value;
  if (!held.value || next?.key !== shown.peek()?.key) shown.value = next;
});
export const hits = {
  data: computed(() => shown.value?.answer ?? null),
  error: fetched.error,
  loading: fetched.loading,
};

export const hitTable = createQuery({
  key: () => {
    const { hitsBy, hitsValue } = view.value;
    return wanted.value && hitsBy ? JSON.stringify([wanted.value, hitsBy, hitsValue]) : null;
  },
  version: dataVersion,
  scope,
  fetch: (abort) => {
    const { hitsBy: by, hitsValue: value } = view.peek();
    return orEmpty(api.hitTable(hitsFilter.peek(), { filter: sentFilter.peek(), by, value }, abort));
  },
  intervalMs: 1000,
  rows: true,
});

// The chosen hit with its whole stack. It is requested by its time, so it need not be in the list.
export const chosenHit = createQuery<TracedHit | null>({
  key: () => {
    const { hit } = view.value;
    return currentId.value && tab.value === 'events' && hit ? `${currentId.value}/${hit.number}@${hit.ms}` : null;
  },
  scope,
  fetch: async (abort) => {
    const chosen = view.peek().hit!;
    const around = {
      session: currentId.peek(),
      start: Math.max(0, chosen.ms - OVERLAP_MS),
      end: chosen.ms + OVERLAP_MS,
    };
    const answer = await orEmpty(api.hits(around, { limit: 100, frames: MOST_FRAMES }, abort));
    return answer?.hits.find((hit) => hit.number === chosen.number) ?? null;
  },
});

export const detailOpen = signal(true);

export function chooseHit(hit: TracedHit | undefined): void {
  if (!hit) return;
  held.value = true;
  setView({ hit: { number: hit.number, ms: hit.time_ms } }, 'replace');
}

// A live list follows new hits while it is scrolled to its end.
export function scrolledHits(atEnd: boolean): void {
  if (isLive.peek() && view.peek().hit === null) held.value = !atEnd;
}
export const followsHits = computed(() => isLive.value && !held.value && view.value.hitsUntil === null);

export function olderHits(): void {
  const first = hits.data.value?.hits[0];
  if (first) setView({ hitsUntil: first.time_ms + OVERLAP_MS, hit: null });
}
export function newestHits(): void {
  held.value = false;
  setView({ hitsUntil: null, hit: null });
}

// Changing what the list contains shows its newest part again.
export function filterHits(change: { hitFilter?: string; hitEvent?: string }, how: 'push' | 'replace' = 'push'): void {
  held.value = false;
  setView({ ...change, hitsUntil: null, hit: null }, how);
}
// Shows the list of the hits that also match `words`.
export function addWords(words: readonly string[]): void {
  held.value = false;
  setView({ hitFilter: withWords(view.value.hitFilter, words), hitsBy: '', hitsUntil: null, hit: null });
}
