// The view state and its form in the address: `#flame?event=cycles&tid=12`. The address omits defaults, so an address without
// parameters is the default view. Pure; view.ts synchronizes the view state with the browser's history.

import { parseSpan, spanText, type Span } from './span';
import { axisText, parseAxis, type Axis } from './axis';
import { changes, contrasts, normalisations, parseBaseline, putBaseline, widths, type Baseline } from './baseline';
import { choice, flag, hexadecimal, list, moment, numbers, text, time, whole, type Codec } from './codec';

export const tabs = [
  'flame',
  'functions',
  'callers',
  'source',
  'threads',
  'counters',
  'modules',
  'sessions',
  'events',
] as const;
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

// The meaning of the frames directly below the root, for example processes. 'none': functions.
export const groups = ['none', 'process', 'thread', 'container', 'cpu'] as const;
export type Group = (typeof groups)[number];

const allLanes = ['total', 'thread', 'cpu'] as const;
export type Lanes = (typeof allLanes)[number];

// The property that two frames must share to be merged into one node.
const merges = ['function', 'line', 'address'] as const;
export type Merge = (typeof merges)[number];

// Filters by where processes run: a container id, a pod uid or a cgroup path. Each can be a list, separated by commas.
export const places = ['container', 'pod', 'cgroup'] as const;

// The change that resets a field to its default. Another session has other threads and times. Another shape of the flame graph
// has other paths, and so does another session.
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

// Names of functions and counters do not contain the separators.
const path = list('\u001f', text);
const paths = list('\u001d', path);
const id: Codec<string> = { ...text, read: (written) => written || undefined };

const spanCodec: Codec<Span | null> = {
  read: (written) => parseSpan(written) ?? undefined,
  write: (value) => spanText(value) || null,
};
const axisCodec: Codec<Axis> = { read: parseAxis, write: (value) => axisText(value) || null };

// A baseline uses several parameters.
const baseline: Field<Baseline | null> = {
  initial: null,
  resetBy: undefined,
  read: parseBaseline,
  write: (value, put) => putBaseline(put, value),
};

// The parameters in the address have the order of these fields.
const fields = {
  session: field('session', text, ''), // empty: follow the live session
  event: field('event', text, '', 'session'), // empty: the session's first
  pids: field('pid', numbers, [], 'session'),
  tids: field('tid', numbers, [], 'session'),
  container: field('container', text, '', 'session'),
  pod: field('pod', text, '', 'session'),
  cgroup: field('cgroup', text, '', 'session'),
  start: field('start', time, null, 'session'),
  end: field('end', time, null, 'session'),
  zoom: field('zoom', path, [], 'shape'), // path (model/path.ts) from the root to the zoomed frame
  search: field('search', text, ''), // regular expression for frames
  filter: field('filter', text, ''), // regular expression for the functions table
  sort: field('sort', choice(sortKeys), 'self'),
  ascending: {
    ...field('sorted', flag('up'), false),
    // Older addresses contain order=asc.
    read: (params: URLSearchParams) => params.get('sorted') === 'up' || params.get('order') === 'asc',
  },
  file: field('file', text, '', 'session'), // source file, with the path in the debug info
  line: field('line', whole, 0, 'session'), // 0: the hottest line
  split: field('split', flag('off', true), true), // show machine code beside the source
  codeOf: field('code', text, '', 'session'), // function whose machine code is shown; empty: that of the line
  codeModule: field('codein', text, '', 'session'), // the module of that function; empty: any
  address: field('at', hexadecimal, null, 'session'), // address of the marked instruction
  upright: field('root', flag('bottom'), false), // show the root of the flame graph at the bottom
  byWeight: field('siblings', flag('weight'), false), // sort siblings by weight instead of by name
  inverted: field('order', flag('bottom-up'), false), // from innermost frames to their callers
  group: field('each', choice(groups), 'none'),
  merge: field('merge', choice(merges), 'function'),
  collapse: field('recursion', flag('collapse'), false), // merge direct recursion of a function into one frame
  hidden: field('hide', paths, [], 'shape'), // paths of hidden subtrees
  colouring: field('colour', choice(colourings), 'kind'),
  span: field('span', spanCodec, null, 'shape'), // the visible part of the zoomed frame; null: the whole frame
  callersOf: field('function', text, '', 'session'), // function whose callers and callees are shown
  callersModule: field('in', text, '', 'session'), // the module of that function; empty: any
  callersZoom: field('above', path, [], 'shape'), // path from the function to a caller
  calleesZoom: field('below', path, [], 'shape'), // path from the function to a callee
  module: field('module', text, '', 'session'), // show only functions of this module
  grouping: field('group', choice(groupings), 'none'), // of the functions table
  modulesLike: field('modules', text, ''), // regular expression for the modules
  about: field('about', text, '', 'session'), // key (store/modules.ts) of the module whose details are shown
  hitEvent: field('traced', text, '', 'session'), // traced event whose hits are shown; empty: all
  hitFilter: field('hits', text, ''), // words, as the server's parameter `filter`
  hitsBy: field('by', text, '', 'session'), // key of the table of hits; empty: the list
  hitsValue: field('value', text, '', 'session'), // field whose figures that table has
  hitsUntil: field('until', time, null, 'session'), // end of an older part of the list; null: the newest hits
  hit: field('hit', moment, null, 'session'), // the chosen hit
  axis: field('axis', axisCodec, null, 'session'), // time range that the time axis shows
  lanes: field('lanes', choice(allLanes), 'total'), // samples on the time axis: of all threads, or per thread or CPU
  plots: field('plot', list('\u001f', id), []), // ids of the lines on the time axis
  baseline, // null: no comparison
  normalise: field('per', choice(normalisations, { time: 'second' }), 'total'),
  width: field('width', choice(widths), 'view'),
  contrast: field('contrast', choice(contrasts), 'red-blue'),
  change: field('change', choice(changes), 'all'), // show only functions with this change
  changeSort: field('changes', choice(changeSorts), 'self_change'),
};

type Fields = typeof fields;
type FieldName = keyof Fields;
type ValueOf<F> = F extends Field<infer T> ? T : never;

export type ViewState = { tab: Tab } & { [Name in FieldName]: ValueOf<Fields[Name]> };

const names = Object.keys(fields) as FieldName[];

// Maps the given fields to values that the function `value` returns.
function valuesOf(some: readonly FieldName[], value: (one: Field<never>) => unknown): Partial<ViewState> {
  return Object.fromEntries(some.map((name) => [name, value(fields[name] as Field<never>)])) as Partial<ViewState>;
}

export const defaultView = { tab: 'flame', ...valuesOf(names, (one) => one.initial) } as ViewState;

// The defaults of all fields that `scope` resets.
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
