// Commands to the server. An error becomes a toast or a returned message; the caller only gets whether it worked.
import { api, ApiError } from '../api/client';
import type {
  Browse,
  CommandName,
  Config,
  ConfigPatch,
  ProcessInfo,
  Reply,
  Session,
  SessionChange,
} from '../api/types';
import { refreshAll } from './data';
import { metricsChanges, type MetricsSettings } from './health';
import { refreshOverview, sessionListVersion } from './live';
import { currentId, follow, followAgent } from './session';
import { sessionTitle } from '../text/sessions';
import { type RecordingDraft, startArgs } from '../text/recording';
import { toast } from './ui';
import { reset } from '../model/view_state';
import { openSession, setView, view } from './view';

const words = (error: unknown) => (error instanceof ApiError ? error.message : String(error));

async function attempt<T>(what: string, work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    toast(`${what}: ${words(error)}`, 'error');
    return null;
  }
}

// After the reload, the page is the login form.
export async function logOut(): Promise<void> {
  if (await attempt('Cannot log out', () => api.logOut())) location.reload();
}

async function command(agent: string, cmd: CommandName, args: Record<string, unknown> = {}): Promise<Reply> {
  const reply = await api.command(agent, cmd, args);
  if (!reply.ok) throw new ApiError(200, { code: 'agent', message: reply.error ?? 'the agent refused' });
  return reply;
}

const processes = (reply: Reply): ProcessInfo[] => {
  const list: unknown = reply['processes'];
  if (!Array.isArray(list)) return [];
  return list.filter(
    (p): p is ProcessInfo => typeof p === 'object' && p !== null && typeof (p as ProcessInfo).pid === 'number',
  );
};

export async function listProcesses(agent: string): Promise<ProcessInfo[]> {
  return processes(await command(agent, 'list_processes'));
}

// Returns why the recording cannot start, or '' on success.
export async function startProfiling(agent: string, draft: RecordingDraft): Promise<string> {
  try {
    await command(agent, 'start', startArgs(draft));
  } catch (error) {
    return words(error);
  }
  // Show the new session as soon as the server lists it.
  followAgent(agent);
  openSession('');
  sessionListVersion.value += 1;
  void refreshOverview();
  return '';
}

// Saves the shown range as a new session.
export async function keepWindow(shown: Session, start: number | null, end: number | null): Promise<void> {
  const made = await attempt('Cannot save the range', () =>
    api.cutSession(shown.id, start ?? 0, end ?? shown.duration_ms + 1),
  );
  if (!made) return;
  sessionListVersion.value += 1;
  toast('The range was saved as a session');
  openSession(made.session);
}

// Returns false on failure, after a toast with the reason.
export async function mergeSessions(sessions: readonly string[]): Promise<boolean> {
  const made = await attempt('Cannot merge the sessions', () => api.mergeSessions(sessions));
  if (!made) return false;
  sessionListVersion.value += 1;
  toast(`${sessions.length} sessions were merged into a new one`);
  openSession(made.session);
  return true;
}

// The settings of the current recording, or of the next one.
export const agentStatus = (agent: string): Promise<Reply> => command(agent, 'status');
export const reprobe = (agent: string): Promise<Reply> => command(agent, 'reprobe');

export interface PidCheck {
  pid: number;
  permitted: boolean;
  problem: string | null; // if not permitted, null means that the process does not exist
}
export async function verifyPid(agent: string, pid: number): Promise<PidCheck> {
  const reply = await command(agent, 'verify_pid', { pid });
  const problem: unknown = reply['problem'];
  return { pid, permitted: reply['permitted'] === true, problem: typeof problem === 'string' ? problem : null };
}

// Changes the running recording. Returns '' on success. On failure, returns the reason, and the old events stay active.
export async function changeRecording(agent: string, args: Record<string, unknown>): Promise<string> {
  try {
    await command(agent, 'configure', args);
  } catch (error) {
    return words(error);
  }
  sessionListVersion.value += 1;
  void refreshOverview();
  return '';
}

// Opens counters of each thread or CPU in addition to the totals; `none` closes them.
export async function countBy(agent: string, by: 'thread' | 'cpu' | 'none'): Promise<void> {
  await attempt('Cannot count by thread or CPU', () => command(agent, 'counters', { by }));
  refreshAll();
}

// Changes which health data the agent reads, from its next round on.
export async function changeMetrics(agent: string, settings: Partial<MetricsSettings>): Promise<void> {
  await attempt('Cannot change what is read', () => command(agent, 'configure_metrics', settings));
  metricsChanges.value += 1;
}

export async function stopProfiling(agent: string): Promise<void> {
  const answer = await attempt('Cannot stop', () => api.stop(agent));
  if (answer && !answer.stopped) toast(answer.reason ?? 'Nothing is being recorded', 'info');
  sessionListVersion.value += 1;
  void refreshOverview();
}

export async function setPaused(agent: string, paused: boolean): Promise<void> {
  await attempt(paused ? 'Cannot pause' : 'Cannot resume', () => command(agent, paused ? 'pause' : 'resume'));
  sessionListVersion.value += 1;
  void refreshOverview();
}

export async function deleteSession(session: Session): Promise<void> {
  const done = await attempt('Cannot delete', () => api.deleteSession(session.id));
  if (!done) return;
  toast(`Deleted ${sessionTitle(session)}`);
  if (currentId.value === session.id) {
    follow('');
    if (view.value.session) setView({ ...reset('session'), session: '' }, 'replace');
  }
  sessionListVersion.value += 1;
}

// Changes the name, tags or pin. Returns whether that worked.
export async function changeSession(session: Session, change: SessionChange): Promise<boolean> {
  const done = await attempt(`Cannot change ${sessionTitle(session)}`, () => api.changeSession(session.id, change));
  sessionListVersion.value += 1;
  return done !== null;
}

// Lists a folder of the server's machine, or returns why it cannot be shown.
export async function browse(path: string, q: string, abort: AbortSignal): Promise<Browse | { problem: string }> {
  try {
    return await api.browse(path, q, abort);
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

export const readConfig = () => attempt('Cannot read the configuration', () => api.config());

export async function changeConfig(patch: ConfigPatch): Promise<Config | null> {
  const config = await attempt('Cannot change the configuration', () => api.patchConfig(patch));
  if (!config) return null;
  for (const note of config.notes ?? []) toast(note);
  refreshAll();
  return config;
}
