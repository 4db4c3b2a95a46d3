// The answers of a saved page, which has no server: data embedded by src/server/http/html_answer.cc,
// and what can be computed from them. Other requests report what is missing.
import { answerItself, ApiError } from './client';
import { callersOf, functionsOf, reshape } from '../model/reshape';
import type {
  Callers,
  Counters,
  FlameGraph,
  Functions,
  Modules,
  Session,
  ShapeParams,
  ThreadSummary,
  Timeline,
  Warnings,
} from './types';

export interface SavedAnswers {
  version: string;
  made: string;
  page: string; // the state of the page that was saved, as in its address
  event: string; // the view, as in the parameters of the API
  start: string;
  end: string;
  pid: string;
  tid: string;
  container: string;
  pod: string;
  cgroup: string;
  session: Session;
  flamegraph: FlameGraph; // by line
  threads: ThreadSummary;
  modules: Modules;
  warnings: Warnings;
  counters: Counters;
  timeline: Timeline;
  timeline_thread: Timeline;
  timeline_cpu: Timeline;
}

export class NotSaved extends Error {}

const element = () => globalThis.document?.getElementById?.('flamewire-answers') ?? null;
// A page from a server does not contain this element.
export const isSaved = element() !== null;

async function unpack(): Promise<SavedAnswers> {
  const bytes = Uint8Array.from(atob(element()!.textContent!.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  const saved = JSON.parse(await new Response(stream).text()) as SavedAnswers;
  // A session that was live when the page was saved does not continue here.
  saved.session.state = 'ended';
  return saved;
}
let unpacked: Promise<SavedAnswers> | null = null;
export const savedAnswers = (): Promise<SavedAnswers> => (unpacked ??= unpack());

const PATH = '\u001f';
const PATHS = '\u001d';
const paths = (text: string | null, separator: string) => (text ? text.split(separator) : []);

export function shapeOf(params: URLSearchParams): ShapeParams {
  const merge = params.get('merge');
  return {
    inverted: params.get('order') === 'bottom-up',
    merge: merge === 'line' || merge === 'address' ? merge : 'function',
    collapse: params.get('recursion') === 'collapse',
    hidden: paths(params.get('hide'), PATHS).map((path) => paths(path, PATH)),
  };
}

// The file contains one view. A request without an event refers to the event of that view.
function checkView(saved: SavedAnswers, params: URLSearchParams, names: readonly string[]): void {
  const event = params.get('event');
  if (event && event !== saved.event && event !== saved.flamegraph.event)
    throw new NotSaved(`only ${saved.flamegraph.event} was saved`);
  for (const name of names) {
    const wanted = params.get(name) ?? '';
    const has = saved[name as 'start' | 'end' | 'pid' | 'tid' | 'container' | 'pod' | 'cgroup'] ?? '';
    if (wanted === has || (wanted !== '' && has !== '' && Number(wanted) === Number(has))) continue;
    throw new NotSaved(
      name === 'start' || name === 'end'
        ? 'another stretch of time needs the server'
        : 'other threads and processes need the server',
    );
  }
}

const trees = new Map<string, FlameGraph | Callers | Functions | null>();
function once<T extends FlameGraph | Callers | Functions | null>(key: string, make: () => T): T {
  if (!trees.has(key)) {
    // Keep only a few shapes: each can be as large as the embedded data.
    if (trees.size > 12) trees.delete(trees.keys().next().value!);
    trees.set(key, make());
  }
  return trees.get(key) as T;
}

// Returns the answer to a GET, or throws an error that names the missing part. Pure, except for its cache.
export function answerOf(saved: SavedAnswers, path: string, params: URLSearchParams): unknown {
  const process = ['start', 'end', 'pid', 'container', 'pod', 'cgroup'];
  const whole = [...process, 'tid'];
  const shape = shapeOf(params);
  if (shape.merge === 'address' && (path === '/api/flamegraph' || path === '/api/callers'))
    throw new NotSaved('addresses need the server');
  switch (path) {
    case '/api/sessions':
      return {
        sessions: [saved.session],
        unreadable: [],
        total: 1,
        size_bytes: saved.session.size_bytes,
        offset: 0,
        limit: 1,
        keep: { count: 0, days: 0, size_bytes: 0 },
      };
    case '/api/status':
      return { status: 'ok', version: saved.version };
    case '/api/agents':
      return { agents: [] };
    case '/api/flamegraph':
      checkView(saved, params, whole);
      return once(`graph ${params.toString()}`, () =>
        reshape(saved.flamegraph, shape, paths(params.get('path'), PATH)),
      );
    case '/api/functions':
      checkView(saved, params, whole);
      return once('functions', () => functionsOf(saved.flamegraph));
    case '/api/callers': {
      checkView(saved, params, whole);
      return once(`callers ${params.toString()}`, () =>
        callersOf(saved.flamegraph, shape, params.get('function') ?? '', params.get('module') ?? ''),
      );
    }
    case '/api/thread-summary':
      // The request has no thread filter, because threads are chosen in this table.
      checkView(saved, params, process);
      return saved.threads;
    case '/api/modules':
      checkView(saved, params, whole);
      return saved.modules;
    case '/api/warnings':
      checkView(saved, params, whole);
      return saved.warnings;
    case '/api/counters':
      checkView(saved, params, ['start', 'end']);
      if ((params.get('by') ?? 'total') !== 'total') throw new NotSaved('counters by thread or CPU need the server');
      return saved.counters;
    case '/api/timeline':
      return params.get('by') === 'thread'
        ? saved.timeline_thread
        : params.get('by') === 'cpu'
          ? saved.timeline_cpu
          : saved.timeline;
    default:
      if (path === `/api/sessions/${saved.session.id}`) return saved.session;
      throw new NotSaved('this needs the server');
  }
}

async function callSaved(path: string, init: RequestInit): Promise<unknown> {
  const { pathname, searchParams } = new URL(path, 'http://file');
  try {
    if (init.method) throw new NotSaved('this needs the server');
    const answer = answerOf(await savedAnswers(), decodeURIComponent(pathname), searchParams);
    if (answer === null) throw new ApiError(404, { code: 'not_found', message: 'No stack of this view contains it.' });
    return answer;
  } catch (error) {
    if (error instanceof NotSaved)
      throw new ApiError(501, { code: 'not_saved', message: `Not in this file: ${error.message}.` });
    throw error;
  }
}
if (isSaved) answerItself(callSaved);
