// The view state and its form in the address: `#flame?event=cycles&tid=12`. Defaults are left out, so a plain address is the
// default view. Pure; view.ts keeps it in step with the browser's history.

import { parseSpan, spanText, type Span } from './span';
import { axisText, parseAxis, type Axis } from './axis';
import { changes, contrasts, normalisations, parseBaseline, putBaseline, widths, type Baseline } from './baseline';
import { choice, flag, hexadecimal, list, numbers, text, time, whole, type Codec } from './codec';

export const tabs = ['flame', 'functions', 'callers', 'source', 'threads', 'counters', 'modules', 'sessions'] as const;
export type Tab = (typeof tabs)[number];

const sortKeys = ['self', 'total', 'name', 'module'] as const;
export type SortKey = (typeof sortKeys)[number];

export const changeSorts = [
  'self_change',
  'total_change',
  'self',
  'base_self',
  'total',
  'base_total',
  'name',
  'module',
] as const;
export type ChangeSort = (typeof changeSorts)[number];

const colourings = ['kind', 'module', 'heat'] as const;
export type Colouring = (typeof colourings)[number];

const groupings = ['none', 'module', 'file'] as const;
export type Grouping = (typeof groupings)[number];

// Whose root frames a flame graph has.
export const groups = ['none', 'process', 'thread', 'container', 'cpu'] as const;
export type Group = (typeof groups)[number];

const allLanes = ['total', 'thread', 'cpu'] as const;
export type Lanes = (typeof allLanes)[number];

// What makes two frames one node of the answer.
const merges = ['function', 'line', 'address'] as const;
export type Merge = (typeof merges)[number];

// Where processes run, as filters: an id, a uid, a path; each may be a list with commas.
export const places = ['container', 'pod', 'cgroup'] as const;

// What makes a field its default again: another session has other threads and times; another shape of the flame graph
// has other paths, and so has another session.
type Scope = 'session' | 'shape';

type Put = (name: string, value: string) => void;

interface Field<T> {
  initial: T;
  resetBy: Scope | undefined;
  read(params: URLSearchParams): T;
  write(value: T, put: Put): void;
}

function field<T>(key: string, codec: Codec<T>, initial: T, resetBy?: Scope): Field<T> {
  return {
    initial,
    resetBy,
    read: (params) => {
      const written = params.get(key);
      return written === null ? initial : (codec.read(written) ?? initial);
    },
    write: (value, put) => {
      const written = value === initial ? null : codec.write(value);
      if (written !== null) put(key, written);
    },
  };
}

// The separators occur in no name of a function or counter.
const path = list('\u001f', text);
const paths = list('\u001d', path);
const id: Codec<string> = { ...text, read: (written) => written || undefined };

const spanCodec: Codec<Span | null> = {
  read: (written) => parseSpan(written) ?? undefined,
  write: (value) => spanText(value) || null,
};
const axisCodec: Codec<Axis> = { read: parseAxis, write: (value) => axisText(value) || null };

// It takes several parameters.
const baseline: Field<Baseline | null> = {
  initial: null,
  resetBy: undefined,
  read: parseBaseline,
  write: (value, put) => putBaseline(put, value),
};

// The order is that of the parameters in the address.
const fields = {
  session: field('session', text, ''), // empty: follow what is live
  event: field('event', text, '', 'session'), // empty: the session's first
  pids: field('pid', numbers, [], 'session'),
  tids: field('tid', numbers, [], 'session'),
  container: field('container', text, '', 'session'),
  pod: field('pod', text, '', 'session'),
  cgroup: field('cgroup', text, '', 'session'),
  start: field('start', time, null, 'session'),
  end: field('end', time, null, 'session'),
  zoom: field('zoom', path, [], 'shape'), // entries of a path (model/path.ts) from the root
  search: field('search', text, ''), // regular expression over frames
  filter: field('filter', text, ''), // regular expression over the functions table
  sort: field('sort', choice(sortKeys), 'self'),
  ascending: {
    ...field('sorted', flag('up'), false),
    // Addresses of before say order=asc.
    read: (params: URLSearchParams) => params.get('sorted') === 'up' || params.get('order') === 'asc',
  },
  file: field('file', text, '', 'session'), // source: as the debug info names it
  line: field('line', whole, 0, 'session'), // 0: the hottest
  split: field('split', flag('off', true), true), // machine code beside the source
  codeOf: field('code', text, '', 'session'), // whose code, and its module (empty: any); empty: that of the line
  codeModule: field('codein', text, '', 'session'),
  address: field('at', hexadecimal, null, 'session'), // of the marked instruction
  upright: field('root', flag('bottom'), false), // flame graph with the root at the bottom
  byWeight: field('siblings', flag('weight'), false), // siblings by weight instead of by name
  inverted: field('order', flag('bottom-up'), false), // from the innermost frames to their callers
  group: field('each', choice(groups), 'none'),
  merge: field('merge', choice(merges), 'function'),
  collapse: field('recursion', flag('collapse'), false), // a function that calls itself directly is one frame
  hidden: field('hide', paths, [], 'shape'), // subtrees that are taken out, as paths
  colouring: field('colour', choice(colourings), 'kind'),
  span: field('span', spanCodec, null, 'shape'), // the part of the zoomed frame that is shown; null: all of it
  callersOf: field('function', text, '', 'session'), // the function of callers and callees, and its module (empty: any)
  callersModule: field('in', text, '', 'session'),
  callersZoom: field('above', path, [], 'shape'), // entries of a path from the function, upwards and downwards
  calleesZoom: field('below', path, [], 'shape'),
  module: field('module', text, '', 'session'), // functions of this module alone
  grouping: field('group', choice(groupings), 'none'), // of the functions table
  modulesLike: field('modules', text, ''), // regular expression over the modules
  about: field('about', text, '', 'session'), // the module that is shown in full: its key of store/modules.ts
  axis: field('axis', axisCodec, null, 'session'), // what the time axis shows
  lanes: field('lanes', choice(allLanes), 'total'), // samples on it: of all, or of each thread or CPU
  plots: field('plot', list('\u001f', id), []), // lines on it, by their ids
  baseline, // what is shown is compared with it
  normalise: field('per', choice(normalisations, { time: 'second' }), 'total'),
  width: field('width', choice(widths), 'view'),
  contrast: field('contrast', choice(contrasts), 'red-blue'),
  change: field('change', choice(changes), 'all'), // functions that changed so
  changeSort: field('changes', choice(changeSorts), 'self_change'),
};

type Fields = typeof fields;
type FieldName = keyof Fields;
type ValueOf<F> = F extends Field<infer T> ? T : never;

export type ViewState = { tab: Tab } & { [Name in FieldName]: ValueOf<Fields[Name]> };

const names = Object.keys(fields) as FieldName[];

// The values of some fields, each by `value`.
function valuesOf(some: readonly FieldName[], value: (one: Field<never>) => unknown): Partial<ViewState> {
  return Object.fromEntries(some.map((name) => [name, value(fields[name] as Field<never>)])) as Partial<ViewState>;
}

export const defaultView = { tab: 'flame', ...valuesOf(names, (one) => one.initial) } as ViewState;

// The defaults of all that `scope` resets.
export function reset(scope: Scope): Partial<ViewState> {
  const reaches = (by: Scope | undefined) => by === scope || (by === 'shape' && scope === 'session');
  return valuesOf(
    names.filter((name) => reaches(fields[name].resetBy)),
    (one) => one.initial,
  );
}

export function parseHash(hash: string): ViewState {
  const written = hash.replace(/^#/, '');
  const mark = written.indexOf('?');
  const name = mark < 0 ? written : written.slice(0, mark);
  const params = new URLSearchParams(mark < 0 ? '' : written.slice(mark + 1));
  const tab = tabs.find((one) => one === name) ?? defaultView.tab;
  return { tab, ...valuesOf(names, (one) => one.read(params)) } as ViewState;
}

export function formatHash(view: ViewState): string {
  const params = new URLSearchParams();
  for (const name of names) (fields[name] as Field<unknown>).write(view[name], (key, value) => params.set(key, value));
  const written = params.toString();
  return `#${view.tab}${written ? `?${written}` : ''}`;
}
