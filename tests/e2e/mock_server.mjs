// A mock server for tests of the page alone: generated profiles of any size, and states that are hard to create with
// a real agent. It implements docs/openapi.yaml. startMock({...}) returns its address and functions that change it.
import { createServer } from 'node:http';
import { hitsAnswer } from './mock_hits.mjs';
import { disassemblyOf, inlinedCalls, manyLines } from './mock_code.mjs';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';

const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};
const SEPARATOR = '\u001f';

// Every run produces the same numbers.
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

// A call tree with about `size` nodes and stacks of up to `depth` frames. Node 0 is the root; parents precede children.
export function makeGraph({ size, depth = 40, seed = 1, session, dataVersion = 1, scale = 1, truncated = false }) {
  const next = random(seed);
  const words = [
    'parse',
    'route',
    'update',
    'visit',
    'render',
    'diffuse',
    'settle',
    'hash',
    'merge',
    'encode',
    'walk',
    'lookup',
  ];
  const names = ['all'];
  for (let i = 1; i < Math.max(20, size / 8); i++)
    names.push(
      `city::${words[i % words.length]}_${words[(i * 7) % words.length]}${i > 140 ? i : ''}(World&, unsigned long)`,
    );
  const modules = ['', 'city-demo', 'libc.so.6', 'libstdc++.so.6', '[kernel]', 'jit.map'];
  const files = ['', '/build/city/traffic.cc', '/build/city/weather.cc', '/build/city/render.cc'];
  const n = {
    parent: [0],
    name: [0],
    module: [0],
    kind: [0],
    file: [0],
    line: [0],
    self: [0],
    total: [0],
    samples: [0],
    self_samples: [0],
    pruned: [0],
  };
  const level = [0];
  while (n.parent.length < size) {
    const recent =
      n.parent.length > 4 && next() < 0.8
        ? Math.floor(n.parent.length * (0.6 + 0.4 * next()))
        : Math.floor(next() * n.parent.length);
    const parent = Math.min(n.parent.length - 1, recent);
    if (level[parent] >= depth) continue;
    const kind = [0, 0, 0, 3, 3, 1, 2, 4][Math.floor(next() * 8)];
    n.parent.push(parent);
    n.name.push(1 + Math.floor(next() * (names.length - 1)));
    n.module.push(kind === 1 ? 4 : kind === 2 ? 5 : 1 + Math.floor(next() * 3));
    n.kind.push(kind);
    n.file.push(kind === 1 ? 0 : 1 + Math.floor(next() * 3));
    n.line.push(1 + Math.floor(next() * 120));
    n.self.push(Math.floor(next() ** 4 * 2e7 * scale));
    n.total.push(0);
    n.samples.push(0);
    n.self_samples.push(0);
    n.pruned.push(0);
    level.push(level[parent] + 1);
  }
  if (truncated) {
    // The first callee of the root stands for missing callers: it has neither a module nor a file.
    const node = n.parent.findIndex((parent, i) => i > 0 && parent === 0);
    names.push(truncated === true ? '[truncated]' : truncated);
    n.name[node] = names.length - 1;
    for (const column of ['module', 'kind', 'file', 'line', 'self']) n[column][node] = 0;
  }
  sumUp(n);
  return {
    session,
    event: 'cycles',
    unit: 'ns',
    data_version: dataVersion,
    total: { samples: n.samples[0], weight: n.total[0] },
    newest_ns: 1e9,
    names,
    modules,
    files,
    nodes: n,
  };
}

function sumUp(n) {
  for (let i = 0; i < n.parent.length; i++) {
    n.self_samples[i] = Math.ceil(n.self[i] / 1e6);
    n.total[i] = n.self[i];
    n.samples[i] = n.self_samples[i];
  }
  for (let i = n.parent.length - 1; i > 0; i--) {
    n.total[n.parent[i]] += n.total[i];
    n.samples[n.parent[i]] += n.samples[i];
  }
}

// Leaves out subtrees below `share` of the root, as the server does. With a path, returns only that subtree, as node 0.
export function prune(graph, share, path = []) {
  const n = graph.nodes;
  let root = 0;
  for (const name of path) {
    let next = -1;
    for (let i = root + 1; i < n.parent.length; i++)
      if (n.parent[i] === root && graph.names[n.name[i]] === name && (next < 0 || n.total[i] > n.total[next])) next = i;
    if (next < 0) return null;
    root = next;
  }
  const keep = new Map([[root, 0]]);
  const out = Object.fromEntries(Object.keys(n).map((column) => [column, []]));
  const copy = (i, parent) => {
    for (const column of Object.keys(n))
      out[column].push(column === 'parent' ? parent : column === 'pruned' ? 0 : n[column][i]);
  };
  copy(root, 0);
  for (let i = root + 1; i < n.parent.length; i++) {
    const parent = keep.get(n.parent[i]);
    if (parent === undefined || i === root) continue;
    if (n.total[i] < share * n.total[root]) out.pruned[parent]++;
    else {
      keep.set(i, out.parent.length);
      copy(i, parent);
    }
  }
  return { ...graph, total: { samples: out.samples[0], weight: out.total[0] }, nodes: out };
}

const sourceText = `// Traffic of the city.
#include <vector>

namespace city {

double visit_quadrant(World& world, double x, double y, double size, int depth) {
    double sum = 0;
    for (std::size_t i = depth; i < world.cars.size(); i += 97)
        sum += distance(world.cars[i], {x, y, 0, 0});
    if (depth == 0) return sum;
    const double half = size / 2;
    return sum + visit_quadrant(world, x + half, y, half, depth - 1) * 0.5;
}

void move_car(World& world, Car& car) {
    car.x = std::fmod(car.x + car.speed * 0.01 + 1, 1.0);
    car.speed += visit_quadrant(world, car.x, car.y, 1, 12) * 1e-9;  /* the deep part */
    log("moved a car");
}

}  // namespace city
`.split('\n');

function moduleRow(self, total, module) {
  const of = (percent) => ({ weight: percent * 4.8e8, samples: Math.round(percent * 482) });
  return {
    module: {
      path: `/usr/bin/${module.name}`,
      kind: 'file',
      build_id: '',
      file: '',
      found: '',
      debug_file: '',
      debug_found: '',
      map_file: '',
      problem: '',
      remedy: '',
      tried: [],
      fetch: null,
      debuginfod: null,
      ...module,
    },
    self: of(self).weight,
    total: of(total).weight,
    self_samples: of(self).samples,
    total_samples: of(total).samples,
    self_percent: self,
    total_percent: total,
  };
}

const SESSION_MS = 42_000;
export const SESSION = '20261120-220000-city-demo-1a2b3c4d';

// How well the stacks of a few processes were unwound.
export function unwindOf(processes) {
  const all = [
    [
      'city-demo',
      'dwarf',
      'Of the code that was sampled 86 % keeps no frame pointer.',
      {
        samples: 41_200,
        whole: 41_080,
        joined: 88,
        truncated: 24,
        stopped: 8,
        frames: 988_800,
        stack_bytes: 41_200 * 5_300,
      },
    ],
    [
      'postgres',
      'fp',
      'All code that was sampled keeps frame pointers.',
      { samples: 5_100, whole: 5_100, frames: 91_800 },
    ],
    [
      'nginx',
      'hybrid',
      'Only libc’s innermost functions keep no frame pointer, 4 % of what was sampled.',
      { samples: 1_900, whole: 1_896, open_end: 4, frames: 24_700, stack_bytes: 1_900 * 2048 },
    ],
    ['sh', 'fp', 'Too few samples to measure.', { samples: 11, open_end: 11, frames: 60 }],
  ].slice(0, processes);
  const none = { samples: 0, whole: 0, joined: 0, truncated: 0, open_end: 0, stopped: 0, frames: 0, stack_bytes: 0 };
  const unwind_processes = all.map(([comm, mode, why, counts], i) => ({
    pid: 4711 + i * 13,
    comm,
    mode,
    why,
    ...none,
    ...counts,
  }));
  const unwind_totals = { processes: processes > 3 ? 17 : processes, ...none };
  for (const process of unwind_processes) for (const key of Object.keys(none)) unwind_totals[key] += process[key];
  return { unwind: 'auto', stack_bytes: 16_384, max_depth: 1024, unwind_totals, unwind_processes };
}

export async function startMock({
  dist,
  size = 900,
  live = true,
  agent = true,
  notices = true,
  warnings = [],
  pruneShare = 0.0005,
  hz = 4,
  truncated = false,
  unwind = unwindOf(4),
  functions = 0,
  hits = 0,
}) {
  const id = SESSION;
  const started = new Date(Date.now() - 42_000).toISOString();
  const state = {
    version: 1,
    samples: 48_211,
    live,
    agent,
    paused: false,
    failing: '',
    problem: '',
    agentSettings: {}, // from the agent's command line, as in its status
    deleted: new Set(),
    turnedAway: [],
    labels: new Map(),
    pathMap: [],
    pendingNames: 0,
    requests: [],
    metrics: { network: true, disk: false, threads: true },
    durationMs: SESSION_MS,
    hits, // of traced events
    busiest: 0, // index of the process that uses the most CPU time
  };
  const held = new Map(); // by method and path: the promise that the next answers wait for
  const graphs = new Map();
  const graph = () => {
    const key = `${size}/${state.version}`;
    if (!graphs.has(key)) {
      graphs.clear();
      graphs.set(
        key,
        makeGraph({
          size,
          depth: 60,
          seed: 7,
          session: id,
          dataVersion: state.version,
          scale: 1 + state.version / 50,
          truncated,
        }),
      );
    }
    return graphs.get(key);
  };
  const losses = [
    { reason: 'ring_full', count: 118, lost: true, event: 'cycles', first_ms: 1200, last_ms: 5400 },
    { reason: 'throttled', count: 9, lost: true, event: 'cycles' },
    { reason: 'stack_truncated', count: 41, lost: false },
  ];
  const noLabel = { name: '', tags: {}, keep: false };
  const session = (n = 0, ended = !state.live) => ({
    id: n ? `${id}-${n}` : id,
    ...(state.labels.get(n) ?? noLabel),
    state: ended || n ? 'ended' : state.paused ? 'paused' : 'live',
    target: n ? `nginx (${4000 + n})` : 'city-demo (4711)',
    agent: '127.0.0.1:50412',
    host: 'board-7',
    arch: 'x86_64',
    kernel_release: '6.1.0-28-amd64',
    agent_version: '0.1.0',
    started: n ? new Date(Date.now() - n * 86_400_000).toISOString() : started,
    duration_ms: n ? 61_000 * n : state.durationMs,
    start_ns: 1e9,
    samples: n ? 12_000 * n : state.samples,
    lost: n ? 0 : 127,
    unresolved_percent: 2.4,
    pending_names: state.pendingNames,
    events: [
      { name: 'cycles', unit: 'ns', samples: state.samples, weight: 4.8e10, frequency_hz: 999, period: 0 },
      { name: 'page-faults', unit: 'faults', samples: 320, weight: 320, frequency_hz: 0, period: 1 },
    ],
    pids: [4711],
    size_bytes: 1_200_345 * (n + 1),
    batches: 168,
    frequency_hz: 999,
    ...unwind,
    unwind_processes: undefined,
    end_reason: ended || n ? 'stopped' : '',
    data_version: state.version,
  });
  const detail = (n, ended) => ({
    ...session(n, ended),
    unwind_processes: unwind.unwind_processes,
    losses,
    notices: notices
      ? [
          {
            code: 'paranoid',
            text: 'Only user code is sampled: perf_event_paranoid is 2 on this target.',
            remedy: 'sysctl -w kernel.perf_event_paranoid=1',
          },
          {
            code: 'frequency_clamped',
            text: 'The kernel allows 999 Hz at most; 4000 Hz were requested.',
            remedy: 'sysctl -w kernel.perf_event_max_sample_rate=4000',
          },
        ]
      : [],
    modules: modules.map(({ module }) => module),
    retention: { whole_from_ms: 0, rows: 4000, coarse_rows: 0, memory_bytes: 200_000 },
  });
  const modules = [
    moduleRow(61, 100, {
      name: 'city-demo',
      build_id: 'ab12cd34ef56',
      state: 'debug_info',
      quality: 'debug_info',
      file: '/srv/city-demo',
      found: 'given',
      fetch: { state: 'arrived', bytes: 5400000, total_bytes: 5400000, problem: '' },
    }),
    moduleRow(23, 40, {
      name: 'libc.so.6',
      path: '/lib/libc.so.6',
      build_id: 'cd34',
      state: 'stripped',
      quality: 'dynamic_symbols',
      file: '/lib/libc.so.6',
      found: 'target_path',
      problem: 'No debug info',
      remedy: 'apt-get install libc6-dbg',
      tried: ['/lib/libc.so.6', '/usr/lib/debug/.build-id/cd/34.debug'],
      fetch: { state: 'arriving', bytes: 1048576, total_bytes: 4194304, problem: '' },
    }),
    moduleRow(12, 12, {
      name: '[kernel]',
      path: '[kernel]',
      kind: 'kernel',
      build_id: '99aa',
      state: 'symbols',
      quality: 'symbols',
      file: '/proc/kallsyms',
      found: 'this_machine',
    }),
    moduleRow(4, 9, {
      name: 'libcity.so',
      path: '/opt/city/libcity.so',
      build_id: '5566',
      state: 'mismatch',
      quality: 'none',
      problem: 'build-id mismatch: /srv/libcity.so has 7788, the target runs 5566',
      remedy: 'give the unstripped file of exactly the build that runs on the target: --binary FILE',
      tried: ['/srv/libcity.so', '/opt/city/libcity.so'],
    }),
    moduleRow(0, 0, {
      name: 'helper',
      path: '/opt/city/helper',
      state: 'not_found',
      quality: 'none',
      problem: 'no file for /opt/city/helper was found',
      remedy: 'give it with --binary FILE',
      tried: ['/opt/city/helper'],
    }),
  ];
  const uploads = new Map();
  const agentState = () => (!state.live ? 'idle' : state.paused ? 'paused' : 'profiling');
  const agentInfo = () => ({
    id: 'a1',
    address: '127.0.0.1:50412',
    connected: state.agent,
    direction: 'incoming',
    link: 'encrypted',
    key: '0123456789abcdef',
    state: agentState(),
    session: state.live ? id : '',
    target: state.live ? 'city-demo (4711)' : '',
    problem: state.problem,
    hello: {
      type: 'hello',
      platform: { hostname: 'board-7', arch: 'x86_64', kernel: '6.1.0-28-amd64' },
      capabilities: { record_events: ['cycles', 'instructions', 'cache-misses', 'page-faults'] },
    },
    stats: {
      cpu_percent: 1.3,
      rss_bytes: 5_400_000,
      ring_bytes: 1_060_000,
      samples_read: state.samples,
      samples_lost: 127,
      samples_duplicate: 3,
      queue_batches: 0,
      spool_bytes: 0,
    },
    clock_offset_ms: 3,
    latency_ms: 18.2,
  });
  const statusBody = () => ({
    status: 'ok',
    version: '0.1.0',
    agent_connected: state.agent,
    agent_addr: state.agent ? '127.0.0.1:50412' : null,
    agents: state.agent ? 1 : 0,
    live_sessions: state.live ? [id] : [],
    module_fetches: [],
    turned_away: state.turnedAway,
    sessions: state.live ? [{ id, ...unwind }] : [],
    total_samples: state.samples,
    chunk_count: 168,
    lost_samples: 127,
    data_version: state.version,
    uptime_s: 100,
    agent_port: 9999,
    agent_bind: '127.0.0.1',
    http_url: 'http://127.0.0.1:8080/',
    target_command: 'flamewire-agent --server 127.0.0.1',
    insecure: false,
    token_required: false,
    data_dir: '/var/lib/flamewire',
  });
  const failure = (code, message, extra = {}) => ({ error: { code, message, ...extra } });
  const streams = new Set();
  const emit = (name, data) => {
    for (const stream of streams) stream.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  };
  const news = () => ({
    session: id,
    data_version: state.version,
    total_samples: state.samples,
    chunk_count: 168,
    event_types: ['cycles'],
    newest_ns: 1e9,
  });

  function functionsOf(g) {
    const rows = new Map();
    g.nodes.name.forEach((name, i) => {
      if (i === 0) return;
      const row = rows.get(name) ?? {
        name: g.names[name],
        module: g.modules[g.nodes.module[i]],
        kind: ['user', 'kernel', 'jit', 'inlined', 'unknown'][g.nodes.kind[i]],
        file: g.files[g.nodes.file[i]],
        line: g.nodes.line[i],
        self: 0,
        total: 0,
        self_samples: 0,
        total_samples: 0,
      };
      row.self += g.nodes.self[i];
      row.total = Math.max(row.total, g.nodes.total[i]);
      rows.set(name, row);
    });
    const all = g.nodes.total[0];
    return [...rows.values()]
      .map((r) => ({
        ...r,
        self_samples: Math.ceil(r.self / 1e6),
        total_samples: Math.ceil(r.total / 1e6),
        self_percent: (100 * r.self) / all,
        total_percent: (100 * r.total) / all,
      }))
      .sort((a, b) => b.self - a.self);
  }

  // Enough functions to make the table long.
  const manyFunctions = () => {
    const known = functionsOf(graph());
    const next = random(3);
    return Array.from({ length: functions }, (_, i) => {
      const row = known[i % known.length];
      const self = Math.floor(next() ** 6 * 1e9);
      const total = self + Math.floor(next() ** 3 * 1e9);
      return {
        ...row,
        name: `${row.name} [clone ${i}]`,
        self,
        total,
        self_percent: self / 1e9,
        total_percent: total / 1e9,
      };
    }).sort((a, b) => b.self - a.self);
  };

  // The answer of a route: a value, or [status, value].
  function answer(method, path, params, body) {
    const view = { session: id, event: 'cycles', unit: 'ns', data_version: state.version };
    if (state.failing && path.includes(state.failing))
      return [500, failure('internal', 'The disk is full, so the session could not be read.')];
    if (path === '/api/status') return statusBody();
    if (path === '/api/agents') return { agents: state.agent ? [agentInfo()] : [] };
    if (path === '/api/sessions') {
      const list = [0, 1, 2, 3]
        .filter((n) => (n > 0 || state.samples > 0) && !state.deleted.has(n ? `${id}-${n}` : id))
        .map((n) => session(n));
      const wanted = params.get('q') ?? '';
      const kept =
        size > 0
          ? list.filter((s) =>
              `${s.id} ${s.name} ${s.target} ${s.host} ${Object.entries(s.tags).map((tag) => tag.join('='))}`.includes(
                wanted,
              ),
            )
          : [];
      return {
        sessions: kept,
        unreadable: [],
        total: kept.length,
        size_bytes: kept.reduce((sum, s) => sum + s.size_bytes, 0),
        offset: 0,
        limit: 100,
        keep: { count: 20, days: 0, size_bytes: 0 },
      };
    }
    const one = /^\/api\/sessions\/(.+)$/.exec(path);
    if (one) {
      const n = Number(/-(\d)$/.exec(one[1])?.[1] ?? 0);
      if (method === 'DELETE') {
        state.deleted.add(one[1]);
        emit('sessions', {});
        return { ok: true, session_id: one[1] };
      }
      if (method === 'PATCH') {
        const old = state.labels.get(n) ?? noLabel;
        const tags = Object.fromEntries(
          Object.entries({ ...old.tags, ...body.tags }).filter(([, value]) => value !== null),
        );
        state.labels.set(n, { ...old, ...body, tags });
        emit('sessions', {});
        return session(n);
      }
      return state.deleted.has(one[1]) || !one[1].startsWith(id)
        ? [404, failure('not_found', 'There is no such session.')]
        : detail(n);
    }
    if (path === '/api/flamegraph') {
      if (state.samples === 0) return [404, failure('no_data', 'No samples yet.')];
      const zoom = params.get('path');
      return (
        prune(graph(), pruneShare, zoom ? zoom.split(SEPARATOR) : []) ?? [404, failure('no_data', 'No such path.')]
      );
    }
    if (path === '/api/callers') {
      const rows = functionsOf(graph());
      const found = rows.find((row) => row.name === params.get('function'));
      if (!found) return [404, failure('not_found', 'no stack of this view contains it')];
      const of = (weight) => ({ samples: Math.ceil(weight / 1e6), weight });
      const beside = (from) =>
        rows.slice(from, from + 6).map(({ name, module, kind, total, total_samples }) => ({
          name,
          module,
          kind,
          weight: total,
          samples: total_samples,
        }));
      return {
        ...view,
        total: graph().total,
        name: found.name,
        module: found.module,
        kind: found.kind,
        function_self: of(found.self),
        function_total: of(found.total),
        direct_callers: beside(2),
        direct_callees: beside(9),
        callers: graph(),
        callees: graph(),
      };
    }
    if (path === '/api/diff' || path === '/api/diff/functions') {
      // The baseline lacks every fourth function, and every third one has twice the weight.
      const whole = graph().total;
      const before = (name, weight) => (name % 4 === 3 ? 0 : name % 3 === 2 ? weight * 2 : weight);
      const head = {
        ...view,
        total: whole,
        whole,
        duration_ms: 40_000,
        per: whole.weight,
        normalise: 'total',
        base: { session: `${id}-1`, data_version: 1, total: whole, whole, duration_ms: 30_000, per: whole.weight },
      };
      if (path === '/api/diff/functions') {
        const rows = functionsOf(graph()).map(({ self_percent, total_percent, ...row }, i) => ({
          ...row,
          base_self: before(i, row.self),
          base_total: before(i, row.total),
          base_self_samples: before(i, row.self_samples),
          base_total_samples: before(i, row.total_samples),
          self_change: (row.self - before(i, row.self)) / whole.weight,
          total_change: (row.total - before(i, row.total)) / whole.weight,
          presence: i % 4 === 3 ? 'new' : 'both',
        }));
        return { ...head, functions: rows };
      }
      const answered = graph();
      const { nodes } = answered;
      const column = (values) => values.map((weight, node) => before(nodes.name[node], weight));
      return {
        ...answered,
        ...head,
        nodes: {
          ...nodes,
          base_self: column(nodes.self),
          base_total: column(nodes.total),
          base_samples: column(nodes.samples),
          base_self_samples: column(nodes.self_samples),
        },
      };
    }
    if (path === '/api/functions')
      return { ...view, total: graph().total, functions: functions > 0 ? manyFunctions() : functionsOf(graph()) };
    if (path === '/api/timeline') {
      // Samples throughout the session, independent of the requested slices. There are few from 21 s to 23.6 s.
      const end = Math.min(Number(params.get('end') ?? state.durationMs), state.durationMs);
      const from = Number(params.get('start') ?? 0);
      const slice = Number(params.get('bucket') ?? (end - from) / Number(params.get('slices') ?? 200));
      const start = params.get('bucket') ? Math.floor(from / slice) * slice : from;
      const rate = (ms) =>
        (0.6 + 0.5 * Math.sin(ms / 1785) + 0.25 * Math.abs(Math.sin(ms * 7.7))) *
        (ms > 21_000 && ms < 23_600 ? 0.1 : 1);
      const of = (lane, lanes) =>
        Array.from({ length: Math.max(1, Math.ceil((end - start) / slice)) }, (_, i) => {
          const ms = start + (i + 0.5) * slice;
          return Math.round((rate(ms + lane * 3000) * slice * 0.999) / lanes);
        });
      const by = params.get('by') ?? 'total';
      const rows = Array.from({ length: 16 }, (_, i) => ({
        ...(by === 'cpu'
          ? { cpu: i }
          : { tid: 4711 + i, pid: 4711, comm: ['city-1', 'city-2', 'logger', 'city-io'][i % 4] }),
        samples: of(i, i + 1),
        weight: of(i, i + 1),
      }));
      const marks = [
        { kind: 'begin', start_ms: 400, end_ms: 400, count: 1, pid: 4711, name: 'sh' },
        { kind: 'exec', start_ms: 1500, end_ms: 1500, count: 1, pid: 4711, name: 'city-demo' },
        { kind: 'loss', start_ms: 9000, end_ms: 10_200, count: 118, reason: 'ring_full', lost: true, event: 'cycles' },
        { kind: 'reconnect', start_ms: 28_000, end_ms: 31_200, count: 1 },
        { kind: 'exit', start_ms: 40_000, end_ms: 40_000, count: 12, pid: 4712, name: 'logger' },
      ].filter((mark) => mark.end_ms >= start && mark.start_ms < end);
      const samples = of(0, 1);
      return {
        ...view,
        start_ms: start,
        slice_ms: slice,
        session_end_ms: state.durationMs,
        coarse: [
          { start_ms: 0, end_ms: 6000, bucket_ms: 2000, cpu_folded: true, thread_folded: false, dropped: false },
        ],
        samples,
        weight: samples.map((count) => count * 1e6),
        marks,
        ...(by === 'total' ? {} : { rows, rows_left_out: 3 }),
      };
    }
    if (path === '/api/counters') {
      const by = params.get('by') ?? 'total';
      const series = {
        start_ms: [0, 500, 1000, 20_000],
        end_ms: [500, 1000, 1500, 30_000],
        value: [5e8, 9e8, 6e8, 1e10],
      };
      const none = { start_ms: [], end_ms: [], value: [] };
      const counters = [
        { name: 'cycles', unit: 'cycles', status: 'unsupported', derived: [], parts: [], series: none },
        {
          name: 'branch-misses',
          unit: 'misses',
          status: 'counted',
          value: 123456,
          percent_counted: 49.7,
          per_second: 61728,
          derived: [{ value: 2.5, label: '% of all branches' }],
          parts: [],
          series,
        },
        {
          name: 'task-clock',
          unit: 'ns',
          status: 'counted',
          value: 2e9,
          percent_counted: 100,
          per_second: 1.33e9,
          derived: [{ value: 1.333, label: 'CPUs utilized' }],
          parts: [],
          coverage_percent: 98.2,
          series,
        },
      ];
      const groups = by === 'thread' ? [] : [{ first_ms: 3, elapsed_ms: 1500, counters }];
      return { session: SESSION, data_version: view.data_version, by, coarse_until_ms: 700, groups };
    }
    if (path === '/api/metrics/history') {
      const both = (make) => [0, 1].map((i) => ({ type: params.get('type'), mono_ns: 1e9 + i * 2e9, ...make(i) }));
      if (params.get('type') === 'network')
        return both((i) => ({
          interfaces: {
            eth0: {
              rx_bytes: 1e6 + i * 4_194_304,
              tx_bytes: 5e5,
              rx_packets: i * 200,
              tx_packets: 9,
              rx_errors: 0,
              tx_errors: 0,
              rx_drops: 0,
            },
          },
        }));
      if (params.get('type') === 'threads')
        return both((i) => ({
          pid: 4711,
          clk_tck: 100,
          threads: [{ tid: 4711, comm: 'city-1', state: 'R', ticks: 500 + i * 180 }],
        }));
      if (params.get('type') !== 'system') return [];
      return Array.from({ length: 21 }, (_, i) => ({
        type: 'system',
        mono_ns: 1e9 + i * 2e9,
        cpu: { overall_pct: 50 + 45 * Math.sin(i / 3), num_cores: 2 },
      }));
    }
    if (path === '/api/metrics/current')
      return {
        system: {
          type: 'system',
          mono_ns: 1,
          cpu: { overall_pct: 96.5, num_cores: 2 },
          mem: { total_kb: 4_000_000, used_kb: 3_480_000, used_pct: 87 },
          load: { avg_1m: 1.25 },
          uptime_sec: 90_000,
        },
        process: { type: 'process', mono_ns: 1, pid: 4711, comm: 'city', cpu_pct: 180, rss_kb: 20_480, oom_score: 12 },
        processes: [
          { type: 'process', mono_ns: 1, pid: 4711, comm: 'city', cpu_pct: 180, rss_kb: 20_480, oom_score: 12 },
        ],
        agent: { type: 'agent', mono_ns: 1, cpu_pct: 0.6, rss_kb: 4800 },
      };
    if (path === '/api/thread-summary') {
      const threads = Array.from({ length: 9 }, (_, i) => ({
        tid: 4711 + i,
        pid: 4711,
        comm: ['city-1', 'city-2', 'logger', 'city-io'][i % 4],
        cgroup: `/docker/${'c0ffee12'.repeat(8)}`,
        container_id: 'c0ffee12'.repeat(8),
        samples: 20_000 >> i,
        weight: 2e10 / 2 ** i,
        percent: 50 / 2 ** i,
        state: ['running', 'sleeping', 'waiting', 'alive', 'ended'][i % 5],
        cpu_percent: i === 8 ? null : 90 / 2 ** i,
        cpu_from: i === 8 ? 'none' : ['counted', 'share'][i % 2],
        slices: Array.from({ length: Number(params.get('slices') ?? 0) }, (_, n) =>
          Math.round((200 / 2 ** i) * (1 + Math.sin(n / 5 + i))),
        ),
        top_function: 'city::visit_quadrant',
        top_functions: [
          { name: 'city::visit_quadrant', samples: 100, weight: 1e8, percent: 41 },
          { name: 'void city::diffuse<64>(std::vector<double>&)', samples: 70, weight: 7e7, percent: 28 },
          { name: '__sin_fma', samples: 20, weight: 2e7, percent: 9 },
        ],
      }));
      return { ...view, total_samples: 48_211, total_weight: 4.8e10, threads };
    }
    // Two threads: the first alternates between running and waiting, the second sleeps and then waits for a device.
    if (path === '/api/thread-states') {
      const slices = Number(params.get('slices') ?? 0);
      const over = (make) => Array.from({ length: slices }, (_, i) => make(i) * (10_000 / slices));
      const none = over(() => 0);
      return {
        session: id,
        data_version: view.data_version,
        known: true,
        start_ms: 0,
        end_ms: 10_000,
        threads: [
          {
            tid: 4711,
            pid: 4711,
            comm: 'city-1',
            run: 7500,
            runnable: 2500,
            blocked: 0,
            io_wait: 0,
            run_slices: over((i) => (i % 2 ? 0.5 : 1)),
            runnable_slices: over((i) => (i % 2 ? 0.5 : 0)),
            blocked_slices: none,
            io_wait_slices: none,
          },
          {
            tid: 4712,
            pid: 4711,
            comm: 'city-2',
            run: 0,
            runnable: 0,
            blocked: 5000,
            io_wait: 5000,
            run_slices: none,
            runnable_slices: none,
            blocked_slices: over((i) => (i < slices / 2 ? 1 : 0)),
            io_wait_slices: over((i) => (i < slices / 2 ? 0 : 1)),
          },
        ],
      };
    }
    if (path === '/api/scheduling') {
      const lengths = (count, p50) => ({
        count,
        sum: count * p50,
        min: p50 / 2,
        p50,
        p95: 2 * p50,
        p99: 3 * p50,
        max: 4 * p50,
      });
      const all = {
        run: 7500,
        runnable: 2500,
        blocked: 5000,
        io_wait: 5000,
        preempted: 1234,
        slept: 56,
        io_waits: 7,
        latency: lengths(1234, 2),
        slice: lengths(1297, 4),
      };
      return {
        session: id,
        data_version: view.data_version,
        known: true,
        all,
        threads: [
          { tid: 4711, pid: 4711, comm: 'city-1', ...all },
          { tid: 4712, pid: 4711, comm: 'city-2', ...all, latency: { ...lengths(0, 0) } },
        ],
      };
    }
    if (path === '/api/source-files') {
      const files = graph()
        .files.slice(1)
        .map((file, i) => ({ file, self: 1e9, total: 2e9, self_percent: 40 / (i + 1), total_percent: 60 / (i + 1) }));
      return { session: id, event: 'cycles', files };
    }
    if (path === '/api/source') {
      const file = params.get('file');
      if (file.endsWith('weather.cc') && state.pathMap.length === 0) {
        return [
          404,
          failure('not_found', 'None of the places where this file could be has it.', {
            tried: ['/build/city/weather.cc', '/srv/sysroot/build/city/weather.cc', './weather.cc'],
            suggestion: '--path-map /build/city=/home/me/city',
          }),
        ];
      }
      const { data_version: _, ...head } = view;
      if (file.endsWith('many.cc')) return manyLines(head, file, graph().total, 50_000);
      const heat = { 8: 12.5, 9: 31.2, 12: 4.1, 16: 1.3, 17: 0.4 };
      const lines = sourceText.map((source, i) => {
        const percent = heat[i + 1] ?? 0;
        return {
          line: i + 1,
          source,
          samples: Math.round(percent * 480),
          weight: percent * 4.8e8,
          total: percent * 6e8,
          total_samples: Math.round(percent * 600),
          percent,
          total_percent: percent * 1.25,
        };
      });
      return {
        file,
        resolved: `/home/me/city/${file.split('/').at(-1)}`,
        ...head,
        total: graph().total,
        lines,
        inlined: inlinedCalls(graph().total),
        first_line: 1,
        line_count: lines.length,
        hottest: 9,
        note: '',
      };
    }
    if (path === '/api/disasm') return disassemblyOf(view, params, graph().total);
    if (path === '/api/hits' || path === '/api/hits/table')
      return hitsAnswer(path, params, {
        session: params.get('session'),
        dataVersion: state.version,
        durationMs: state.durationMs,
        count: state.hits,
      });
    if (path === '/api/warnings') return { ...view, warnings };
    if (path === '/api/modules' && method === 'GET') return { ...view, total: graph().total, modules };
    if (path === '/api/modules') {
      const { module } = modules.find((row) => row.module.path === body.path);
      const upload = uploads.get(body.upload);
      if ((body.file ?? upload?.toString()).includes('wrong'))
        return [400, failure('validation', 'build-id mismatch: the file has 7788, the target runs 5566')];
      uploads.delete(body.upload);
      Object.assign(module, {
        state: 'debug_info',
        quality: 'debug_info',
        file: body.file ?? '/var/lib/flamewire/given/5566',
        found: body.file ? 'given' : 'uploaded',
        problem: '',
        remedy: '',
      });
      return { module };
    }
    const sent = /^\/api\/uploads\/([\w-]+)$/.exec(path)?.[1];
    if (sent) {
      const here = uploads.get(sent) ?? Buffer.alloc(0);
      if (method === 'DELETE') return { ok: uploads.delete(sent) };
      if (method === 'GET')
        return here.length > 0
          ? { id: sent, offset: here.length, size: here.size, whole: here.length === here.size }
          : [404, failure('not_found', 'there is no upload')];
      if (Number(params.get('offset')) !== here.length)
        return [409, failure('conflict', `go on at offset ${here.length}`)];
      // The second slice is lost on the way.
      state.slices = (state.slices ?? 0) + 1;
      if (state.slices === 2) return [503, failure('internal', 'the server is starting or ending')];
      const next = Object.assign(Buffer.concat([here, body]), { size: Number(params.get('size')) });
      uploads.set(sent, next);
      return { id: sent, offset: next.length, size: next.size, whole: next.length === next.size };
    }
    if (path === '/api/config') {
      if (method === 'PATCH' && body.path_map) state.pathMap = body.path_map;
      return {
        binaries: [],
        maps: [],
        source_dir: '.',
        path_map: state.pathMap,
        sysroot: '',
        toolchain_prefix: '',
        inline: true,
      };
    }
    if (path === '/api/browse') {
      const folder = params.get('path') || '';
      const entries = folder
        ? [
            { name: 'build', kind: 'folder', size_bytes: 0, link: false, outside: false },
            {
              name: 'city-demo',
              kind: 'file',
              size_bytes: 812_344,
              link: false,
              outside: false,
              elf: { arch: 'aarch64', build_id: '0123456789abcdef', symbols: true, debug_info: true },
            },
            { name: 'elsewhere', kind: 'other', size_bytes: 0, link: true, outside: true },
          ]
        : [{ name: '/home/me', kind: 'folder', size_bytes: 0, link: false, outside: false }];
      return { path: folder, parent: '', roots: ['/home/me'], entries, left_out: 0 };
    }
    if (path === '/api/pairing') {
      const keys = [
        {
          id: '0123456789abcdef',
          address: '',
          made: '2026-01-01T00:00:00.000Z',
          used: '2026-01-01T00:01:00.000Z',
          used_from: '192.0.2.7',
          connected: true,
        },
      ];
      return method === 'POST'
        ? {
            id: 'fedcba9876543210',
            code: `fedcba9876543210-${'0f'.repeat(16)}`,
            command: `flamewire-agent --server 127.0.0.1 --pair fedcba9876543210-${'0f'.repeat(16)}`,
          }
        : { keys };
    }
    if (path === '/api/agent/events') {
      if (params.get('describe'))
        return { kernel_functions: true, description: 'sched:sched_process_exit: tracepoint\n  comm: char[16]\n' };
      const names = ['exec', 'exit', 'fork', 'free', 'hang', 'wait'].map((name) => `sched:sched_process_${name}`);
      const events = names.map((name) => ({ name, event: name }));
      events[2] = { name: names[2], problem: 'cannot be probed' };
      return { kernel_functions: true, total: 9, more: true, events };
    }
    if (path === '/api/agent/dials') {
      return {
        dials: [
          {
            host: 'board.local',
            port: 9999,
            state: 'waiting',
            agent: '',
            problem: 'board.local:9999 refuses connections: run flamewire-agent --listen there',
            attempts: 3,
            next_in_ms: 4000,
          },
        ],
      };
    }
    if (path === '/api/stop') {
      state.live = false;
      emit('agent', agentInfo());
      emit('sessions', {});
      return { stopped: true, session: id };
    }
    if (path === '/api/agent/command') {
      const reply = { id: 'c1', ok: true };
      if (`${body.args?.events}`.includes('nosuch:event'))
        return { id: 'c1', ok: false, error: 'events: this kernel has no tracepoint nosuch:event' };
      if (body.cmd === 'list_processes') {
        const names = ['city-demo', 'postgres', 'nginx', 'node', 'systemd', 'sshd', 'dbus-daemon', 'python3'];
        reply.processes = Array.from({ length: 60 }, (_, i) => ({
          pid: 4711 + i * 13,
          ns_pid: i % 5 === 2 ? 7 : 4711 + i * 13,
          user: ['root', 'postgres', 'www-data'][i % 3],
          comm: names[i % names.length],
          cmdline: `/usr/bin/${names[i % names.length]} --config /etc/${names[i % names.length]}.conf`,
          cpu: i === state.busiest ? 197.4 : 40 / (i + 1),
          container: i % 5 === 2 ? '9f86d081884c7d65' : '',
        }));
      } else if (body.cmd === 'reprobe' || body.cmd === 'status') {
        const found = {
          record_events: ['cpu-clock', 'page-faults'],
          unwind_modes: ['auto', 'fp', 'dwarf'],
          perf_events: true,
          max_frequency: 4000,
          findings: [
            { code: 'perf-events', name: '', works: true, text: 'Own processes can be profiled', remedy: '' },
            {
              code: 'kernel-samples',
              name: '',
              works: false,
              text: 'Kernel functions are not sampled: kernel.perf_event_paranoid is 2',
              remedy: 'sysctl -w kernel.perf_event_paranoid=1',
            },
            { code: 'event', name: 'cycles', works: false, text: 'this CPU or kernel has no event cycles', remedy: '' },
          ],
        };
        Object.assign(
          reply,
          body.cmd === 'status'
            ? {
                capabilities: found,
                state: state.live ? 'profiling' : 'idle',
                pid: 4711,
                target: 'pid 4711 (city-demo)',
                frequency: 99,
                unwind: 'auto',
                stack_size: 16384,
                kernel: true,
                events: ['cpu-clock'],
                event_list: '',
                ...state.agentSettings,
              }
            : found,
        );
      } else if (body.cmd === 'verify_pid') {
        Object.assign(reply, { pid: body.args.pid, exists: true, permitted: true, problem: null });
      } else if (body.cmd === 'configure_metrics') {
        Object.assign(state.metrics, body.args);
        Object.assign(reply, state.metrics);
      } else if (body.cmd === 'start') state.live = true;
      else if (body.cmd === 'pause') state.paused = true;
      else if (body.cmd === 'resume') state.paused = false;
      emit('agent', agentInfo());
      emit('sessions', {});
      return reply;
    }
    return [404, failure('not_found', `There is no ${path}.`)];
  }

  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://mock');
    if (url.pathname === '/api/stream') {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
      response.write(`event: status\ndata: ${JSON.stringify(statusBody())}\n\n`);
      if (state.live) response.write(`event: data_version\ndata: ${JSON.stringify(news())}\n\n`);
      streams.add(response);
      request.on('close', () => streams.delete(response));
      return;
    }
    if (url.pathname.startsWith('/api/')) {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const raw = Buffer.concat(chunks);
      const body = url.pathname.startsWith('/api/uploads/') ? raw : raw.length > 0 ? JSON.parse(raw.toString()) : {};
      state.requests.push(`${request.method} ${url.pathname}${url.search}`);
      const result = answer(request.method, decodeURIComponent(url.pathname), url.searchParams, body);
      const hold = held.get(`${request.method} ${url.pathname}`);
      if (hold && hold.times-- > 0) await hold.wait;
      const [code, value] = Array.isArray(result) && typeof result[0] === 'number' ? result : [200, result];
      response.writeHead(code, { 'content-type': 'application/json' });
      response.end(JSON.stringify(value));
      return;
    }
    const name = url.pathname === '/' ? '/index.html' : url.pathname;
    try {
      const bytes = await readFile(join(dist, name));
      response.writeHead(200, {
        'content-type': types[extname(name)] ?? 'text/plain',
        'content-security-policy': "default-src 'self'; style-src 'self' 'unsafe-inline'",
      });
      response.end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  const listen = (port) => new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  await listen(0);
  const port = server.address().port;
  const push = () => {
    state.version++;
    state.samples += 250;
    emit('data_version', news());
  };
  const timer = hz > 0 && setInterval(() => state.live && !state.paused && state.samples > 0 && push(), 1000 / hz);
  const close = async () => {
    for (const stream of streams) stream.destroy();
    server.closeAllConnections?.();
    await new Promise((resolve) => server.close(resolve));
  };
  return {
    url: `http://127.0.0.1:${port}/`,
    id,
    state,
    emit,
    // One batch that covers `ms` more of the recording, with the other events that the real stream sends with it.
    batch: (ms) => {
      state.durationMs += ms;
      push();
      emit('agent', agentInfo());
      emit('metrics', { session: id, health_version: state.version });
      if (state.version % 8 === 0) emit('status', statusBody());
      if (state.version % 40 === 0) emit('loss', { session: id, losses, lost: 127 });
    },
    // Holds back the answers to the next `times` requests ("GET /api/config") until the returned function is called.
    hold: (request, times = 1) => {
      let release;
      held.set(request, { times, wait: new Promise((resolve) => (release = resolve)) });
      return release;
    },
    connectAgent: () => {
      state.agent = true;
      emit('agent', agentInfo());
    },
    streams: () => streams.size,
    disconnect: close,
    reconnect: () => listen(port),
    stop: async () => {
      clearInterval(timer);
      await close();
    },
  };
}
