// The view state and its form in the address: `#flame?event=cycles&tid=12`. Defaults are left out, so a plain address is the
// default view. Pure; view.ts keeps it in step with the browser's history.

import { parseSpan, spanText, type Span } from '../flame/span';
import type { Merge } from '../flame/tree';
import { axisText, parseAxis, type Axis } from '../timeline/axis';
import {
  parseBaseline,
  putBaseline,
  type Baseline,
  type Change,
  type Contrast,
  type Normalise,
  type Width,
} from './baseline';

export const tabs = ['flame', 'functions', 'callers', 'source', 'threads', 'counters', 'modules', 'sessions'] as const;
export type Tab = (typeof tabs)[number];
export type SortKey = 'self' | 'total' | 'name' | 'module';

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

export type Colouring = 'kind' | 'module' | 'heat';
export type Grouping = 'none' | 'module' | 'file';

// Whose root frames a flame graph has.
export const groups = ['none', 'process', 'thread', 'container', 'cpu'] as const;
export type Group = (typeof groups)[number];

export type Lanes = 'total' | 'thread' | 'cpu';

// Where processes run, as filters: an id, a uid, a path; each may be a list with commas.
export const nowhere = { container: '', pod: '', cgroup: '' };
export const places = ['container', 'pod', 'cgroup'] as const;

export interface ViewState {
  container: string;
  pod: string;
  cgroup: string;
  tab: Tab;
  session: string; // empty: follow what is live
  event: string; // empty: the session's first
  pids: readonly number[];
  tids: readonly number[];
  start: number | null; // ms since the session's start
  end: number | null;
  zoom: readonly string[]; // entries of a path (flame/path.ts) from the root
  search: string; // regular expression over frames
  filter: string; // regular expression over the functions table
  sort: SortKey;
  ascending: boolean;
  file: string; // source: as the debug info names it
  line: number; // 0: the hottest
  split: boolean; // machine code beside the source
  codeOf: string; // whose code, and its module (empty: any); empty: that of the line
  codeModule: string;
  address: number | null; // of the marked instruction
  upright: boolean; // flame graph with the root at the bottom
  byWeight: boolean; // siblings by weight instead of by name
  inverted: boolean; // bottom-up: from the innermost frames to their callers
  merge: Merge;
  group: Group;
  collapse: boolean; // a function that calls itself directly is one frame
  hidden: readonly (readonly string[])[]; // subtrees that are taken out, as paths
  colouring: Colouring;
  span: Span | null; // the part of the zoomed frame that is shown; null: all of it
  callersOf: string; // the function of callers and callees, and its module (empty: any)
  callersModule: string;
  callersZoom: readonly string[]; // entries of a path from the function, upwards and downwards
  calleesZoom: readonly string[];
  module: string; // functions of this module alone
  grouping: Grouping; // of the functions table
  modulesLike: string; // regular expression over the modules
  about: string; // the module that is shown in full: its key of store/modules.ts
  axis: Axis; // what the time axis shows
  lanes: Lanes; // samples on it: of all, or of each thread or CPU
  plots: readonly string[]; // lines on it, by their ids
  baseline: Baseline | null; // what is shown is compared with it
  normalise: Normalise;
  width: Width;
  contrast: Contrast;
  change: Change; // functions that changed so
  changeSort: ChangeSort;
}

export const defaultView: ViewState = {
  ...nowhere,
  tab: 'flame',
  session: '',
  event: '',
  pids: [],
  tids: [],
  start: null,
  end: null,
  zoom: [],
  search: '',
  filter: '',
  sort: 'self',
  ascending: false,
  file: '',
  line: 0,
  split: true,
  codeOf: '',
  codeModule: '',
  address: null,
  upright: false,
  byWeight: false,
  inverted: false,
  group: 'none',
  merge: 'function',
  collapse: false,
  hidden: [],
  colouring: 'kind',
  span: null,
  callersOf: '',
  callersModule: '',
  callersZoom: [],
  calleesZoom: [],
  module: '',
  grouping: 'none',
  modulesLike: '',
  about: '',
  axis: null,
  lanes: 'total',
  plots: [],
  baseline: null,
  normalise: 'total',
  width: 'view',
  contrast: 'red-blue',
  change: 'all',
  changeSort: 'self_change',
};

// Stands in no name of a function or counter.
const SEPARATOR = '\u001f';
const PATHS_SEPARATOR = '\u001d';

function numbers(text: string | null): number[] {
  if (!text) return [];
  return text
    .split(',')
    .map(Number)
    .filter((n) => Number.isInteger(n) && n >= 0);
}

function hexadecimal(text: string | null): number | null {
  return text !== null && /^0x[0-9a-f]{1,13}$/.test(text) ? Number(text) : null;
}

function time(text: string | null): number | null {
  const value = text === null || text === '' ? NaN : Number(text);
  return Number.isFinite(value) && value >= 0 ? value : null;
}

export function parseHash(hash: string): ViewState {
  const text = hash.replace(/^#/, '');
  const mark = text.indexOf('?');
  const name = mark < 0 ? text : text.slice(0, mark);
  const params = new URLSearchParams(mark < 0 ? '' : text.slice(mark + 1));
  const tab = tabs.find((t) => t === name) ?? defaultView.tab;
  const sort = params.get('sort');
  const lanes = params.get('lanes');
  const merge = params.get('merge');
  const colouring = params.get('colour');
  const grouping = params.get('group');
  const change = params.get('change');
  return {
    tab,
    container: params.get('container') ?? '',
    pod: params.get('pod') ?? '',
    cgroup: params.get('cgroup') ?? '',
    session: params.get('session') ?? '',
    event: params.get('event') ?? '',
    pids: numbers(params.get('pid')),
    tids: numbers(params.get('tid')),
    start: time(params.get('start')),
    end: time(params.get('end')),
    zoom: params.get('zoom')?.split(SEPARATOR) ?? [],
    search: params.get('search') ?? '',
    filter: params.get('filter') ?? '',
    sort: sort === 'total' || sort === 'name' || sort === 'module' ? sort : 'self',
    // Addresses of before say order=asc.
    ascending: params.get('sorted') === 'up' || params.get('order') === 'asc',
    file: params.get('file') ?? '',
    line: numbers(params.get('line'))[0] ?? 0,
    split: params.get('split') !== 'off',
    codeOf: params.get('code') ?? '',
    codeModule: params.get('codein') ?? '',
    address: hexadecimal(params.get('at')),
    upright: params.get('root') === 'bottom',
    byWeight: params.get('siblings') === 'weight',
    inverted: params.get('order') === 'bottom-up',
    group: groups.find((one) => one === params.get('each')) ?? 'none',
    merge: merge === 'line' || merge === 'address' ? merge : 'function',
    collapse: params.get('recursion') === 'collapse',
    hidden:
      params
        .get('hide')
        ?.split(PATHS_SEPARATOR)
        .map((path) => path.split(SEPARATOR)) ?? [],
    colouring: colouring === 'module' || colouring === 'heat' ? colouring : 'kind',
    span: parseSpan(params.get('span')),
    callersOf: params.get('function') ?? '',
    callersModule: params.get('in') ?? '',
    callersZoom: params.get('above')?.split(SEPARATOR) ?? [],
    calleesZoom: params.get('below')?.split(SEPARATOR) ?? [],
    module: params.get('module') ?? '',
    grouping: grouping === 'module' || grouping === 'file' ? grouping : 'none',
    modulesLike: params.get('modules') ?? '',
    about: params.get('about') ?? '',
    axis: parseAxis(params.get('axis')),
    lanes: lanes === 'thread' || lanes === 'cpu' ? lanes : 'total',
    plots: params.get('plot')?.split(SEPARATOR).filter(Boolean) ?? [],
    baseline: parseBaseline(params),
    normalise: params.get('per') === 'second' ? 'time' : 'total',
    width: params.get('width') === 'baseline' ? 'baseline' : 'view',
    contrast: params.get('contrast') === 'orange-purple' ? 'orange-purple' : 'red-blue',
    change: change === 'new' || change === 'gone' || change === 'grew' || change === 'shrank' ? change : 'all',
    changeSort: changeSorts.find((key) => key === params.get('changes')) ?? 'self_change',
  };
}

export function formatHash(view: ViewState): string {
  const params = new URLSearchParams();
  const put = (name: string, value: string) => value && params.set(name, value);
  put('session', view.session);
  put('event', view.event);
  put('pid', view.pids.join(','));
  put('tid', view.tids.join(','));
  for (const place of places) put(place, view[place]);
  put('start', view.start === null ? '' : String(view.start));
  put('end', view.end === null ? '' : String(view.end));
  if (view.zoom.length > 0) params.set('zoom', view.zoom.join(SEPARATOR));
  put('search', view.search);
  put('filter', view.filter);
  put('sort', view.sort === 'self' ? '' : view.sort);
  put('sorted', view.ascending ? 'up' : '');
  put('file', view.file);
  put('line', view.line > 0 ? String(view.line) : '');
  put('split', view.split ? '' : 'off');
  put('code', view.codeOf);
  put('codein', view.codeModule);
  put('at', view.address === null ? '' : `0x${view.address.toString(16)}`);
  put('root', view.upright ? 'bottom' : '');
  put('siblings', view.byWeight ? 'weight' : '');
  put('order', view.inverted ? 'bottom-up' : '');
  put('each', view.group === 'none' ? '' : view.group);
  put('merge', view.merge === 'function' ? '' : view.merge);
  put('recursion', view.collapse ? 'collapse' : '');
  put('hide', view.hidden.map((path) => path.join(SEPARATOR)).join(PATHS_SEPARATOR));
  put('colour', view.colouring === 'kind' ? '' : view.colouring);
  put('span', spanText(view.span));
  put('function', view.callersOf);
  put('in', view.callersModule);
  if (view.callersZoom.length > 0) params.set('above', view.callersZoom.join(SEPARATOR));
  if (view.calleesZoom.length > 0) params.set('below', view.calleesZoom.join(SEPARATOR));
  put('module', view.module);
  put('group', view.grouping === 'none' ? '' : view.grouping);
  put('modules', view.modulesLike);
  put('about', view.about);
  put('axis', axisText(view.axis));
  put('lanes', view.lanes === 'total' ? '' : view.lanes);
  put('plot', view.plots.join(SEPARATOR));
  putBaseline(put, view.baseline);
  put('per', view.normalise === 'time' ? 'second' : '');
  put('width', view.width === 'baseline' ? 'baseline' : '');
  put('contrast', view.contrast === 'red-blue' ? '' : view.contrast);
  put('change', view.change === 'all' ? '' : view.change);
  put('changes', view.changeSort === 'self_change' ? '' : view.changeSort);
  const text = params.toString();
  return `#${view.tab}${text ? `?${text}` : ''}`;
}
