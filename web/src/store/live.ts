// State of the server and its agents, updated by the event stream.
import { computed, signal } from '@preact/signals';
import { api } from '../api/client';
import { isSaved } from '../api/saved';
import { Stream, type StreamState } from '../api/stream';
import type { Agent, Loss, Session, Status, StreamEvents } from '../api/types';
import { Rate } from '../text/rate';
import { defer } from './deferred';

export const streamState = signal<StreamState>('connecting');
export const status = signal<Status | null>(null);
export const agents = signal<readonly Agent[]>([]);
// By session: the newest data version, and the losses that arrived with it.
export const versions = signal<ReadonlyMap<string, number>>(new Map());
export const losses = signal<ReadonlyMap<string, readonly Loss[]>>(new Map());
// Displayed numbers, updated once per second even if events are more frequent.
export const rates = signal<ReadonlyMap<string, number>>(new Map());
export const liveSamples = signal<ReadonlyMap<string, number>>(new Map());
// By session: grows with every health frame.
export const healthVersions = signal<ReadonlyMap<string, number>>(new Map());
// By session: the share of its file that has been read, while it is being read.
export const readings = signal<ReadonlyMap<string, number>>(new Map());
// `resyncs` grows when events may have been missed, `sessionListVersion` when the list of sessions changed.
export const resyncs = signal(0);
export const sessionListVersion = signal(0);

export const connectedAgents = computed(() => agents.value.filter((agent) => agent.connected));

const meters = new Map<string, Rate>();
const totals = new Map<string, number>();
const NUMBERS_MS = 1000;
let numbersShown = -Infinity;
const withEntry = <V>(map: ReadonlyMap<string, V>, key: string, value: V) => new Map(map).set(key, value);

const isSame = (map: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>) =>
  map.size === other.size && [...map].every(([key, value]) => other.get(key) === value);

// Without new events, the rate falls to zero.
function showNumbers(now: number): void {
  numbersShown = now;
  const newRates = new Map([...meters].map(([session, meter]) => [session, meter.perSecond(now)]));
  defer(() => {
    if (!isSame(newRates, rates.value)) rates.value = newRates;
    if (!isSame(totals, liveSamples.value)) liveSamples.value = new Map(totals);
  });
}

function showReading(session: string, progress: Session['reading']): void {
  if (!progress && !readings.peek().has(session)) return;
  const all = new Map(readings.peek());
  if (progress) all.set(session, progress.read_bytes / progress.total_bytes);
  else all.delete(session);
  readings.value = all;
}

const sorted = (list: readonly Agent[]) => [...list].sort((a, b) => a.id.localeCompare(b.id));

// Numbers of the latest events with the status and with each agent.
let events = 0;
let statusEvent = 0;
const agentEvents = new Map<string, number>();

function showStatus(fresh: Status): void {
  statusEvent = ++events;
  status.value = fresh;
}

function upsertAgent(agent: Agent): void {
  agentEvents.set(agent.id, ++events);
  agents.value = sorted([...agents.value.filter((a) => a.id !== agent.id), agent]);
}

let overviews = 0;
export async function refreshOverview(): Promise<void> {
  const overview = ++overviews;
  const asked = events;
  try {
    const [newStatus, list] = await Promise.all([api.status(), api.agents()]);
    if (overview !== overviews) return;
    // Events that arrived after the request may be newer than the answer.
    if (statusEvent <= asked) status.value = newStatus;
    const newer = agents.value.filter((agent) => (agentEvents.get(agent.id) ?? 0) > asked);
    agents.value = sorted([...list.agents.filter((agent) => !newer.some((one) => one.id === agent.id)), ...newer]);
  } catch {
    // The stream's state shows that the server is unreachable. This function is called again when the server returns.
  }
}

export function startStream(): void {
  if (isSaved) {
    streamState.value = 'open';
    return;
  }
  const stream = new Stream('/api/stream', {
    state: (state) => (streamState.value = state),
    resync: () => {
      resyncs.value += 1;
      sessionListVersion.value += 1;
      void refreshOverview();
    },
    event: (name, data) => {
      switch (name) {
        case 'status':
          showStatus(data as Status);
          break;
        case 'agent':
          upsertAgent(data as Agent);
          break;
        case 'sessions':
          sessionListVersion.value += 1;
          break;
        case 'loss': {
          const loss = data as { session: string; losses: Loss[] };
          losses.value = withEntry(losses.value, loss.session, loss.losses);
          break;
        }
        case 'metrics': {
          const news = data as { session: string; health_version: number };
          healthVersions.value = withEntry(healthVersions.value, news.session, news.health_version);
          break;
        }
        case 'data_version': {
          const news = data as StreamEvents['data_version'];
          showReading(news.session, news.reading);
          const now = performance.now();
          const meter = meters.get(news.session) ?? new Rate(3000);
          meters.set(news.session, meter);
          meter.add(now, news.total_samples);
          totals.set(news.session, news.total_samples);
          if (now - numbersShown >= NUMBERS_MS) showNumbers(now);
          versions.value = withEntry(versions.value, news.session, news.data_version);
          break;
        }
      }
    },
  });
  stream.start();
  // Needed after the last event too.
  setInterval(() => {
    const now = performance.now();
    if (now - numbersShown >= 1.5 * NUMBERS_MS) showNumbers(now);
  }, NUMBERS_MS);
}
