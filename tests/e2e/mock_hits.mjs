// Hits of traced events for the mock server: any number of them, with the server's parameters.
const events = [
  {
    name: 'syscalls:sys_enter_write',
    unit: 'events',
    fields: [
      { name: 'fd', kind: 'unsigned' },
      { name: 'buf', kind: 'address' },
      { name: 'count', kind: 'unsigned' },
    ],
  },
  { name: 'syscalls:sys_exit_write', unit: 'events', fields: [{ name: 'ret', kind: 'signed' }] },
  { name: 'city:loaded', unit: 'events', fields: [{ name: 'file', kind: 'text' }] },
];
const threads = [
  { comm: 'city-demo', pid: 4711, tid: 4711 },
  { comm: 'worker <b>1</b>', pid: 4711, tid: 4712 },
];
const functions = [
  '__x64_sys_write',
  'do_syscall_64',
  'entry_SYSCALL_64_after_hwframe',
  '__GI___libc_write',
  'city::save(World&)',
  'main',
];

// One hit. Every run produces the same values; the thinned ones stand for 17 events.
function hitOf(number, spacingMs) {
  const event = events[number % 40 === 39 ? 2 : number % 2];
  const size = 64 << (number * 7) % 9;
  const texts = {
    fd: `${3 + (number % 3)}`,
    buf: `0x7f${(0x10000000 + number * 64).toString(16)}`,
    count: `${size}`,
    ret: number % 11 === 0 ? '-11 (EAGAIN)' : `${size}`,
    file: `/etc/city "${number % 7}" <i>.conf`,
  };
  return {
    number,
    time_ms: 500 + number * spacingMs + ((number * 13) % 7) / 1000,
    event: event.name,
    ...threads[number % 3 === 0 ? 1 : 0],
    cpu: number % 4,
    weight: 1,
    values: event.fields.map(({ name }) => ({ name, text: texts[name] })),
    stack: functions.map((name, i) => ({ name, module: i < 3 ? '[kernel]' : i < 4 ? 'libc.so.6' : 'city-demo' })),
  };
}

const valueOf = (hit, name) =>
  name === 'function'
    ? hit.stack[0].name
    : (hit.values.find((value) => value.name === name)?.text ?? (hit[name] === undefined ? undefined : `${hit[name]}`));

function matches(hit, word) {
  const [, name, op, text] = /^(\w+)(!=|<=|>=|[=<>~])(.*)$/.exec(word) ?? [];
  if (!name) return JSON.stringify(hit).includes(word);
  const value = valueOf(hit, name);
  if (value === undefined) return false;
  if (op === '~') return value.includes(text);
  const [a, b] = Number.isNaN(Number(text)) ? [value, text] : [parseFloat(value), Number(text)];
  return { '=': a === b, '!=': a !== b, '<': a < b, '<=': a <= b, '>': a > b, '>=': a >= b }[op];
}

function chosen(all, params) {
  const words = (params.get('filter') ?? '').match(/(?:[^\s"]|"[^"]*")+/g) ?? [];
  const has = (name, value) => !params.get(name) || params.get(name).split(',').includes(`${value}`);
  return all.filter(
    (hit) =>
      has('event', hit.event) &&
      has('tid', hit.tid) &&
      has('pid', hit.pid) &&
      hit.time_ms >= Number(params.get('start') || 0) &&
      hit.time_ms < Number(params.get('end') || Infinity) &&
      words.every((word) => matches(hit, word.replaceAll('"', ''))),
  );
}

function figures(list) {
  const sorted = list.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  const sum = list.reduce((all, one) => all + one, 0);
  return { sum, avg: sum / list.length, min: at(0), p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}

function tableOf(list, by, value) {
  const groups = new Map();
  const buckets = new Map();
  let without = 0;
  for (const hit of list) {
    const key = valueOf(hit, by);
    const number = value && valueOf(hit, value);
    if (key === undefined || number === undefined) {
      without++;
      continue;
    }
    const group = groups.get(key) ?? { key, hits: 0, weight: 0, values: [] };
    groups.set(key, group);
    group.hits++;
    group.weight += hit.weight;
    if (!value) continue;
    const found = parseFloat(number);
    group.values.push(found);
    const low = found === 0 ? 0 : 2 ** Math.floor(Math.log2(Math.abs(found)));
    const [from, to] = found < 0 ? [-2 * low, -low] : [low, 2 * low];
    buckets.set(from, { low: from, high: to, hits: (buckets.get(from)?.hits ?? 0) + 1 });
  }
  return {
    by,
    value,
    groups: [...groups.values()]
      .map(({ values, ...group }) => ({ ...group, ...(value && figures(values)) }))
      .sort((a, b) => b.weight - a.weight),
    other_groups: 0,
    other_hits: 0,
    without_key: without,
    distribution: [...buckets.values()].sort((a, b) => a.low - b.low),
  };
}

// The answer to a request for hits of a session that lasts `durationMs`, of `count` hits.
export function hitsAnswer(path, params, { session, dataVersion, durationMs, count }) {
  const view = { session, data_version: dataVersion };
  const spacing = (durationMs - 1000) / Math.max(1, count);
  const all = Array.from({ length: count }, (_, number) => hitOf(number, spacing));
  if (/\w![^=]/.test(params.get('filter') ?? ''))
    return [400, { error: { code: 'invalid', message: 'filter: a word has no comparison; write NAME!=VALUE' } }];
  const found = chosen(all, params);
  if (path.endsWith('/table')) return { ...view, ...tableOf(found, params.get('by'), params.get('value') ?? '') };
  const frames = Number(params.get('frames') ?? 1);
  const limit = Number(params.get('limit') ?? 200);
  return {
    ...view,
    kept: count,
    removed: count > 0 ? 1200 : 0,
    dropped: count > 0 ? 3 : 0,
    matching: found.length,
    events: count > 0 ? events : [],
    hits: limit > 0 ? found.slice(-limit).map((hit) => ({ ...hit, stack: hit.stack.slice(0, frames) })) : [],
  };
}
