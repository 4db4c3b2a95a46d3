// Health data of the machine, fetched only while they are shown.
import { signal } from '@preact/signals';
import { api } from '../api/client';
import type { HealthFrame } from '../api/types';
import { healthVersion } from './data';
import { createQuery } from './query';
import { agentOfSession, currentId, session } from './session';
import { tab, view } from './view';

const scope = () => currentId.value;

export const health = createQuery({
  key: () => (currentId.value && tab.value === 'counters' ? currentId.value : null),
  version: healthVersion,
  scope,
  fetch: (abort) => api.health(currentId.peek(), abort),
  intervalMs: 1000,
});

// Whether the panels below the cards are open.
export const openHealthGroups = signal(false);
const looked = () => openHealthGroups.value && currentId.value !== '' && tab.value === 'counters';
// Without a chosen range, rates are of the last few rounds.
const RECENT_MS = 9000;

export interface HealthDetail {
  network: HealthFrame[];
  disk: HealthFrame[];
  threads: HealthFrame[];
}

export const healthDetail = createQuery<HealthDetail>({
  key: () => (looked() ? JSON.stringify([currentId.value, view.value.start, view.value.end]) : null),
  version: healthVersion,
  scope,
  fetch: async (abort) => {
    const { start, end } = view.peek();
    const range = {
      session: currentId.peek(),
      start: start ?? Math.max(0, (session.peek()?.duration_ms ?? 0) - RECENT_MS),
      end,
    };
    const [network, disk, threads] = await Promise.all(
      (['network', 'disk', 'threads'] as const).map((type) => api.healthHistory(range, type, 50, abort)),
    );
    return { network: network!, disk: disk!, threads: threads! };
  },
  intervalMs: 1000,
});

export interface MetricsSettings {
  network: boolean;
  disk: boolean;
  threads: boolean;
}
export const metricsChanges = signal(0);
// What the agent reads, as its reply reports it.
export const metricsSettings = createQuery<MetricsSettings | null>({
  key: () => (looked() ? (agentOfSession.value?.id ?? null) : null),
  version: () => metricsChanges.value,
  scope: () => agentOfSession.value?.id ?? '',
  fetch: async () => {
    const agent = agentOfSession.peek();
    if (!agent) return null;
    const reply = await api.command(agent.id, 'configure_metrics');
    if (!reply.ok) return null;
    return { network: reply['network'] === true, disk: reply['disk'] === true, threads: reply['threads'] === true };
  },
});
