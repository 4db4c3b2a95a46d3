// The HTTP API of the server: one function per endpoint. Nothing else in the UI calls fetch.
import { serverUrl } from './base_url';
import type {
  Agent,
  AgentEventParams,
  AgentEvents,
  BaselineParams,
  Browse,
  Callers,
  CodeParams,
  CommandName,
  Config,
  ConfigPatch,
  Counters,
  Disassembly,
  Diff,
  Dial,
  ErrorBody,
  FlameGraph,
  FunctionDiffs,
  Functions,
  Health,
  HealthFrame,
  Hits,
  HitsParams,
  HitTable,
  Module,
  Modules,
  PairedKey,
  Reply,
  Session,
  SessionChange,
  SessionList,
  ShapeParams,
  Scheduling,
  Source,
  SourceFiles,
  Status,
  ThreadStates,
  ThreadSummary,
  Timeline,
  Upload,
  Warnings,
  Import,
  ViewParams,
} from './types';

// The separator of function names in the `path` parameter.
export const PATH_SEPARATOR = '\u001f';
const PATHS_SEPARATOR = '\u001d';

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly body: ErrorBody,
  ) {
    super(body.message);
    this.name = 'ApiError';
  }
  get code(): string {
    return this.body.code;
  }
}

// A session without samples returns no_data, which is an empty view and not an error.
export const orEmpty = <T>(answer: Promise<T>): Promise<T | null> =>
  answer.catch((error: unknown) => {
    if (error instanceof ApiError && error.code === 'no_data') return null;
    throw error;
  });

type Param = string | number | boolean | null | undefined | readonly number[];

export function query(params: Record<string, Param>): string {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined || value === '') continue;
    if (Array.isArray(value)) {
      if (value.length > 0) out.set(name, value.join(','));
    } else {
      out.set(name, String(value));
    }
  }
  const text = out.toString();
  return text ? `?${text}` : '';
}

// A saved page answers its own requests (saved.ts). It registers that code here, so the worker's bundle does not contain it.
type Answerer = (path: string, init: RequestInit) => Promise<unknown>;
let itself: Answerer | null = null;
export function answerItself(answerer: Answerer): void {
  itself = answerer;
}

export interface Fetched {
  status: number;
  text: string;
}

export async function fetchText(path: string, init: RequestInit = {}): Promise<Fetched> {
  let response: Response;
  try {
    response = await fetch(serverUrl(path), { cache: 'no-store', ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, { code: 'unreachable', message: 'The server does not answer.' });
  }
  return { status: response.status, text: await response.text() };
}

// Another thread sends the requests, because a request and each part of its answer take time on the thread that fetches.
// Null: not available now.
type Elsewhere = (path: string, signal?: AbortSignal) => Promise<Fetched> | null;
let elsewhere: Elsewhere = () => null;
export function fetchElsewhere(place: Elsewhere): void {
  elsewhere = place;
}

async function call<T>(path: string, init: RequestInit = {}): Promise<T> {
  if (itself) return (await itself(path, init)) as T;
  const { status, text } = await ((init.method ? null : elsewhere(path, init.signal ?? undefined)) ??
    fetchText(path, init));
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new ApiError(status, { code: 'internal', message: `The server answered ${status} without JSON.` });
  }
  if (status < 200 || status > 299) {
    const error = (body as { error?: ErrorBody } | null)?.error;
    throw new ApiError(status, error ?? { code: 'internal', message: `The server answered ${status}.` });
  }
  return body as T;
}

function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  return call<T>(path, {
    method,
    headers: body === undefined ? {} : { 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
}

const choice = (v: ViewParams): Record<string, Param> => ({
  session: v.session,
  event: v.event,
  start: v.start,
  end: v.end,
  pid: v.pid,
  tid: v.tid,
  container: v.container,
  pod: v.pod,
  cgroup: v.cgroup,
});

// Show a session as far as it has been read. The event stream reports further data.
const partial = '1';
const view = (v: ViewParams): Record<string, Param> => ({ ...choice(v), partial });

const baseline = (b: BaselineParams): Record<string, Param> => ({
  base_session: b.session,
  base_start: b.start,
  base_end: b.end,
  base_pid: b.pid,
  base_tid: b.tid,
  normalise: b.normalise === 'total' ? '' : b.normalise,
});

const treeShape = (shape: ShapeParams): Record<string, Param> => ({
  order: shape.inverted ? 'bottom-up' : '',
  merge: shape.merge === 'function' ? '' : shape.merge,
  recursion: shape.collapse ? 'collapse' : '',
  hide: shape.hidden.map((path) => path.join(PATH_SEPARATOR)).join(PATHS_SEPARATOR),
});

const grouped = (by = 'none') => (by === 'none' ? '' : by);

// Requests of the worker that computes flame graphs.
export const graphApi = {
  flamegraph: (v: ViewParams, shape: ShapeParams, path: readonly string[], signal?: AbortSignal) =>
    call<FlameGraph>(
      `/api/flamegraph${query({ ...view(v), ...treeShape(shape), group: grouped(shape.group), path: path.join(PATH_SEPARATOR) })}`,
      { signal },
    ),
  diff: (v: ViewParams, b: BaselineParams, shape: ShapeParams, path: readonly string[], signal?: AbortSignal) =>
    call<Diff>(
      `/api/diff${query({ ...view(v), ...baseline(b), ...treeShape(shape), path: path.join(PATH_SEPARATOR) })}`,
      { signal },
    ),
  callers: (v: ViewParams, shape: ShapeParams, name: string, module: string, signal?: AbortSignal) =>
    call<Callers>(
      `/api/callers${query({ ...view(v), ...treeShape({ ...shape, inverted: false, hidden: [] }), function: name, module })}`,
      { signal },
    ),
};

export const api = {
  // Not JSON: the answer redirects to the login form.
  logOut: () => fetchText('/logout', { method: 'POST', redirect: 'manual' }),
  status: (signal?: AbortSignal) => call<Status>('/api/status', { signal }),
  agents: (signal?: AbortSignal) => call<{ agents: Agent[] }>('/api/agents', { signal }),
  sessions: (signal?: AbortSignal, q = '', limit = 200, offset = 0) =>
    call<SessionList>(`/api/sessions${query({ q, limit, offset: offset || null })}`, { signal }),
  session: (id: string, signal?: AbortSignal) =>
    call<Session>(`/api/sessions/${encodeURIComponent(id)}${query({ partial })}`, { signal }),
  changeSession: (id: string, change: SessionChange) =>
    send<Session>('PATCH', `/api/sessions/${encodeURIComponent(id)}`, change),
  deleteSession: (id: string) => send<{ ok: boolean }>('DELETE', `/api/sessions/${encodeURIComponent(id)}`),
  functionDiffs: (v: ViewParams, b: BaselineParams, signal?: AbortSignal) =>
    call<FunctionDiffs>(`/api/diff/functions${query({ ...view(v), ...baseline(b) })}`, { signal }),
  functions: (v: ViewParams, signal?: AbortSignal) => call<Functions>(`/api/functions${query(view(v))}`, { signal }),
  warnings: (v: ViewParams, signal?: AbortSignal) => call<Warnings>(`/api/warnings${query(view(v))}`, { signal }),
  threads: (v: ViewParams, slices: number, signal?: AbortSignal) =>
    call<ThreadSummary>(`/api/thread-summary${query({ ...view(v), slices })}`, { signal }),
  threadStates: (v: ViewParams, slices: number, signal?: AbortSignal) =>
    call<ThreadStates>(`/api/thread-states${query({ ...view(v), slices })}`, { signal }),
  scheduling: (v: ViewParams, signal?: AbortSignal) => call<Scheduling>(`/api/scheduling${query(view(v))}`, { signal }),
  hits: (v: ViewParams, wanted: HitsParams, signal?: AbortSignal) =>
    call<Hits>(`/api/hits${query({ ...view(v), ...wanted })}`, { signal }),
  hitTable: (v: ViewParams, wanted: { filter: string; by: string; value: string }, signal?: AbortSignal) =>
    call<HitTable>(`/api/hits/table${query({ ...view(v), ...wanted })}`, { signal }),
  // Either slices of a given width in ms, or a number of slices.
  timeline: (v: ViewParams, slices: { bucket: number } | { slices: number }, by: string, signal?: AbortSignal) =>
    call<Timeline>(`/api/timeline${query({ ...view(v), ...slices, by })}`, { signal }),
  counters: (v: ViewParams, by: string, signal?: AbortSignal, slices?: number) =>
    call<Counters>(`/api/counters${query({ ...view({ ...v, event: '', pid: [] }), by, slices })}`, { signal }),
  healthHistory: (v: ViewParams, type: string, slices: number, signal?: AbortSignal) =>
    call<HealthFrame[]>(
      `/api/metrics/history${query({ session: v.session, partial, start: v.start, end: v.end, type, slices })}`,
      { signal },
    ),
  health: (session: string, signal?: AbortSignal) =>
    call<Health>(`/api/metrics/current${query({ session, partial })}`, { signal }),
  sourceFiles: (v: ViewParams, signal?: AbortSignal) =>
    call<SourceFiles>(`/api/source-files${query(view(v))}`, { signal }),
  source: (v: ViewParams, file: string, signal?: AbortSignal) =>
    call<Source>(`/api/source${query({ ...view(v), file })}`, { signal }),
  disassembly: (v: ViewParams, wanted: CodeParams, signal?: AbortSignal) =>
    call<Disassembly>(`/api/disasm${query({ ...view(v), ...wanted })}`, { signal }),
  modules: (v: ViewParams, signal?: AbortSignal) => call<Modules>(`/api/modules${query(view(v))}`, { signal }),
  giveModule: (session: string, file: { path: string; build_id: string; file?: string; upload?: string }) =>
    send<{ module: Module }>('POST', `/api/modules${query({ session })}`, file),
  upload: (id: string, signal?: AbortSignal) => call<Upload>(`/api/uploads/${id}`, { signal }),
  sendSlice: (id: string, offset: number, size: number, body: Blob, signal?: AbortSignal) =>
    call<Upload>(`/api/uploads/${id}${query({ offset, size })}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/octet-stream' },
      body,
      signal,
    }),
  imports: (signal?: AbortSignal) => call<{ imports: Import[] }>('/api/imports', { signal }),
  mergeSessions: (sessions: readonly string[]) =>
    send<{ session: string }>('POST', '/api/sessions/merge', { sessions }),
  // `start` and `end` are in ms of the session.
  cutSession: (id: string, start: number, end: number) =>
    send<{ session: string }>('POST', `/api/sessions/${encodeURIComponent(id)}/cut`, { start, end }),
  beginImport: (upload: string, name: string) => send<Import>('POST', '/api/imports', { upload, name }),
  cancelImport: (id: string) => send<Import>('DELETE', `/api/imports/${encodeURIComponent(id)}`),
  dropUpload: (id: string) => send<{ ok: boolean }>('DELETE', `/api/uploads/${id}`),
  config: (signal?: AbortSignal) => call<Config>('/api/config', { signal }),
  patchConfig: (patch: ConfigPatch) => send<Config>('PATCH', '/api/config', patch),
  browse: (path: string, q: string, signal?: AbortSignal) =>
    call<Browse>(`/api/browse${query({ path, q })}`, { signal }),
  dials: (signal?: AbortSignal) => call<{ dials: Dial[] }>('/api/agent/dials', { signal }),
  dial: (host: string, port: number, pair: string) =>
    send<{ dials: Dial[] }>('POST', '/api/agent/dials', { host, port, ...(pair && { pair }) }),
  pairing: () => call<{ keys: PairedKey[] }>('/api/pairing'),
  nextPairing: () => send<{ id: string; code: string; command: string }>('POST', '/api/pairing', {}),
  withdrawKey: (id: string) => send<{ keys: PairedKey[] }>('DELETE', `/api/pairing${query({ id })}`),
  cancelDial: (host: string, port: number) =>
    send<{ dials: Dial[] }>('DELETE', `/api/agent/dials${query({ host, port })}`),
  command: (agent: string, cmd: CommandName, args: Record<string, unknown> = {}, timeout = 30) =>
    send<Reply>('POST', `/api/agent/command${query({ agent })}`, { cmd, args, timeout }),
  agentEvents: (agent: string, params: AgentEventParams, signal?: AbortSignal) =>
    call<AgentEvents>(`/api/agent/events${query({ agent, ...params })}`, { signal }),
  stop: (agent: string) =>
    send<{ stopped: boolean; reason?: string; session?: string }>('POST', `/api/stop${query({ agent })}`),
};

export type SessionFormat = 'collapsed' | 'json' | 'pprof' | 'speedscope' | 'firefox' | 'perfdata';

// URLs that the browser downloads itself.
export const download = {
  svg: (v: ViewParams, group?: string) =>
    serverUrl(`/api/export/flamegraph${query({ ...choice(v), group: grouped(group) })}`),
  session: (id: string, format: SessionFormat, v: ViewParams = {}, group?: string) =>
    serverUrl(
      `/api/export/session/${encodeURIComponent(id)}${query({ ...choice({ ...v, session: undefined }), format, group: grouped(group) })}`,
    ),
  // Always the whole session, without filters.
  archive: (id: string, sources = false) =>
    serverUrl(
      `/api/export/session/${encodeURIComponent(id)}${query({ format: 'flamewire', sources: sources ? '1' : undefined })}`,
    ),
  // `page`: the state of the page, as in its address.
  page: (id: string, v: ViewParams = {}, page = '') =>
    serverUrl(
      `/api/export/session/${encodeURIComponent(id)}${query({ ...choice({ ...v, session: undefined }), format: 'html', page })}`,
    ),
};
