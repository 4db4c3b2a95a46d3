// The session that is shown: the one in the address, else the live one that this tab follows.
import { computed, effect, signal } from '@preact/signals';
import { api } from '../api/client';
import type { EventInfo, Session, ViewParams } from '../api/types';
import { agents, connectedAgents, resyncs, sessionListVersion, versions } from './live';
import { createQuery } from './query';
import { view } from './view';

export const sessionList = createQuery({
  key: () => 'sessions',
  version: () => `${sessionListVersion.value}`,
  fetch: (abort) => api.sessions(abort),
  intervalMs: 300,
});

export const sessions = computed<readonly Session[]>(() => sessionList.data.value?.sessions ?? []);
export const liveSessions = computed(() => sessions.value.filter((session) => session.state !== 'ended'));

// The page of the session list that is shown. The server searches all sessions.
export const SESSIONS_A_PAGE = 100;
const searched = signal('');
const pageFrom = signal(0);
export const sessionSearch = computed(() => searched.value);
export function searchSessions(text: string): void {
  searched.value = text;
  pageFrom.value = 0;
}
export const showSessionsFrom = (offset: number): void => void (pageFrom.value = Math.max(0, offset));
export const foundSessions = createQuery({
  key: () => (view.value.tab === 'sessions' ? JSON.stringify([searched.value.trim(), pageFrom.value]) : null),
  version: () => `${sessionListVersion.value}`,
  fetch: (abort) => api.sessions(abort, searched.peek().trim(), SESSIONS_A_PAGE, pageFrom.peek()),
  intervalMs: 300,
  rows: true,
});

// A session followed live stays in view when it ends, also after a reload.
const FOLLOWED = 'flamewire-followed';
const followed = signal(sessionStorage.getItem(FOLLOWED) ?? '');
effect(() => {
  const list = sessionList.data.value;
  if (view.value.session || !list) return;
  const current = list.sessions.find((session) => session.id === followed.value);
  if (current && current.state !== 'ended') return;
  const next = liveSessions.value[0]?.id ?? current?.id ?? '';
  followed.value = next;
  sessionStorage.setItem(FOLLOWED, next);
});

export function follow(id: string): void {
  followed.value = id;
  sessionStorage.setItem(FOLLOWED, id);
}

// The agent whose next session must be shown, because the user has just started it.
const awaited = signal<{ agent: string; previous: string } | null>(null);
export function followAgent(id: string): void {
  awaited.value = { agent: id, previous: agents.peek().find((agent) => agent.id === id)?.session ?? '' };
}
effect(() => {
  const waiting = awaited.value;
  if (!waiting) return;
  const session = agents.value.find((agent) => agent.id === waiting.agent)?.session ?? '';
  if (!session || session === waiting.previous) return;
  awaited.value = null;
  follow(session);
});

export const currentId = computed(() => view.value.session || followed.value);
export const currentVersion = computed(() => versions.value.get(currentId.value) ?? 0);

const detail = createQuery<Session>({
  key: () => currentId.value || null,
  version: () => `${currentVersion.value}/${sessionListVersion.value}/${resyncs.value}`,
  scope: () => currentId.value,
  fetch: (abort) => api.session(currentId.peek(), abort),
  intervalMs: 1000,
  deferrable: true,
});

// The full description of the shown session, or the shorter one of the list until it arrives.
export const session = computed<Session | null>(
  () => detail.data.value ?? sessions.value.find((entry) => entry.id === currentId.value) ?? null,
);
export const sessionError = detail.error;

// The server does not delete a session that was requested in the last ten minutes.
const LOOKING_MS = 4 * 60_000;
export function keepLooking(): void {
  setInterval(() => currentId.peek() && void api.session(currentId.peek()).catch(() => undefined), LOOKING_MS);
}

export const isLive = computed(() => {
  const shown = session.value;
  return shown !== null && shown.state !== 'ended';
});

export const agentOfSession = computed(
  () => connectedAgents.value.find((agent) => agent.session !== '' && agent.session === currentId.value) ?? null,
);

// The event that the address names, or else the first one of the session.
export const event = computed<EventInfo | null>(() => {
  const events = session.value?.events ?? [];
  const wanted = view.value.event;
  return (wanted ? events.find((e) => e.name === wanted) : undefined) ?? events[0] ?? null;
});

export const filter = computed<ViewParams>(() => {
  const v = view.value;
  return {
    session: currentId.value,
    event: v.event,
    pid: v.pids,
    tid: v.tids,
    start: v.start,
    end: v.end,
    container: v.container,
    pod: v.pod,
    cgroup: v.cgroup,
  };
});
