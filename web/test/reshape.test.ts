// Trees of other shapes, computed from one that is merged by line. Weights are counted by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FlameGraph, ShapeParams } from '../src/api/types';
import { answerOf, NotSaved, shapeOf, type SavedAnswers } from '../src/api/saved';
import { callersOf, functionsOf, LEFT_OUT, reshape } from '../src/model/reshape';

const plain: ShapeParams = { inverted: false, merge: 'function', collapse: false, hidden: [] };

// "main:1;work:2" -> self weight. The line follows `:`, and `+` before a name marks an inlined frame.
function byLine(stacks: Record<string, number>, pruned: Record<string, number> = {}): FlameGraph {
  const names = ['all'];
  const nodes: FlameGraph['nodes'] = {
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
  const known = new Map<string, number>([['', 0]]);
  const at = (path: string): number => {
    const found = known.get(path);
    if (found !== undefined) return found;
    const cut = path.lastIndexOf(';');
    const parent = at(cut < 0 ? '' : path.slice(0, cut));
    const [text, line] = path.slice(cut + 1).split(':') as [string, string];
    const name = text.replace('+', '');
    if (!names.includes(name)) names.push(name);
    const row = {
      parent,
      name: names.indexOf(name),
      module: 1,
      kind: text.startsWith('+') ? 3 : 0,
      file: 1,
      line: Number(line),
      self: 0,
      total: 0,
      samples: 0,
      self_samples: 0,
      pruned: 0,
    };
    for (const [column, value] of Object.entries(row)) nodes[column as keyof typeof row].push(value);
    known.set(path, nodes.parent.length - 1);
    return nodes.parent.length - 1;
  };
  for (const [path, weight] of Object.entries(stacks)) {
    // Each caller before its callee, so that this does not recurse as deep as the stack.
    for (let end = path.indexOf(';'); end >= 0; end = path.indexOf(';', end + 1)) at(path.slice(0, end));
    const node = at(path);
    nodes.self[node]! += weight * 10;
    nodes.self_samples[node]! += weight;
  }
  const left = nodes.parent.map(() => 0);
  for (const [path, weight] of Object.entries(pruned)) {
    left[at(path)] = weight;
    nodes.pruned[at(path)] = 1;
  }
  for (let i = nodes.parent.length - 1; i >= 0; i--) {
    nodes.total[i]! += nodes.self[i]! + (left[i] ?? 0) * 10;
    nodes.samples[i]! += nodes.self_samples[i]! + (left[i] ?? 0);
    if (i === 0) break;
    nodes.total[nodes.parent[i]!]! += nodes.total[i]!;
    nodes.samples[nodes.parent[i]!]! += nodes.samples[i]!;
  }
  return {
    session: 's',
    event: 'cycles',
    unit: 'ns',
    data_version: 1,
    total: { samples: nodes.samples[0]!, weight: nodes.total[0]! },
    newest_ns: 0,
    names,
    modules: ['', 'app'],
    files: ['', 'a.cc'],
    nodes,
  };
}

// "name self/total" in samples: children are indented, inlined frames have a +, and trees merged by line have lines.
function show(graph: FlameGraph, lines = false): string {
  const n = graph.nodes;
  const out: string[] = [];
  const visit = (node: number, depth: number) => {
    assert.equal(n.self[node], n.self_samples[node]! * 10);
    assert.equal(n.total[node], n.samples[node]! * 10);
    const mark = n.kind[node] === 3 ? '+' : '';
    out.push(
      `${' '.repeat(depth)}${mark}${graph.names[n.name[node]!]}${lines && node > 0 ? `:${n.line[node]}` : ''} ${n.self_samples[node]}/${n.samples[node]}`,
    );
    n.parent.forEach((parent, child) => child > 0 && parent === node && visit(child, depth + 1));
  };
  visit(0, 0);
  n.parent.forEach((parent, node) => assert.ok(node === 0 || parent < node));
  return out.join('\n');
}

const sample = byLine({
  'main:1;work:2': 1,
  'main:1;work:3': 2,
  'main:1;work:2;leaf:9': 4,
  'main:5;leaf:8': 8,
  'main:1;work:2;work:3': 16,
  'main:1;+work:2': 32,
});

test('lines of a function become one frame, its inlined form another', () => {
  assert.equal(
    show(reshape(sample, plain, [])),
    'all 0/63\n main 0/63\n  +work 32/32\n  work 3/23\n   work 16/16\n   leaf 4/4\n  leaf 8/8',
  );
  assert.equal(
    show(reshape(sample, { ...plain, merge: 'line' }, []), true),
    'all 0/63\n main:1 0/55\n  +work:2 32/32\n  work:2 1/21\n   work:3 16/16\n   leaf:9 4/4\n  work:3 2/2\n main:5 0/8\n  leaf:8 8/8',
  );
});

test('direct recursion is one frame when it is collapsed', () => {
  assert.equal(
    show(reshape(sample, { ...plain, collapse: true }, [])),
    'all 0/63\n main 0/63\n  +work 32/32\n  work 19/23\n   leaf 4/4\n  leaf 8/8',
  );
});

test('bottom-up starts with the innermost frames; self weight is that of stacks that start there', () => {
  const three = byLine({ 'main:1;work:2;leaf:9': 4, 'main:5;leaf:8': 8, 'main:1;work:3': 1 });
  assert.equal(
    show(reshape(three, { ...plain, inverted: true }, [])),
    'all 0/13\n leaf 0/12\n  main 8/8\n  work 0/4\n   main 4/4\n work 0/1\n  main 1/1',
  );
});

test('hidden subtrees disappear with their weight, and with callers that become empty', () => {
  const hide = (...hidden: string[][]) =>
    show(reshape(byLine({ 'a:1;b:1': 1, 'a:1;c:1': 2, 'd:1;b:1': 4 }), { ...plain, hidden }, []));
  assert.equal(hide(['a', 'b']), 'all 0/6\n d 0/4\n  b 4/4\n a 0/2\n  c 2/2');
  assert.equal(hide(['d', 'b']), 'all 0/3\n a 0/3\n  c 2/2\n  b 1/1');
  assert.equal(hide(['a'], ['d']), 'all 0/0');
  assert.equal(hide(['nothing'], ['a', 'nothing']), 'all 0/7\n d 0/4\n  b 4/4\n a 0/3\n  c 2/2\n  b 1/1');
});

test('a path leads to its subtree; kind and module select among siblings', () => {
  assert.equal(show(reshape(sample, plain, ['main', 'work\u001e0\u001eapp'])), 'work 3/23\n work 16/16\n leaf 4/4');
  assert.equal(show(reshape(sample, plain, ['main', 'work'])), '+work 32/32');
  assert.equal(reshape(sample, plain, ['main', 'nowhere']).nodes.total[0], 0);
});

test('weight without frames in the file is kept', () => {
  const cut = byLine({ 'main:1': 1, 'main:1;work:2': 2 }, { 'main:1;work:2': 5 });
  const graph = reshape(cut, plain, []);
  assert.equal(show(graph), 'all 0/8\n main 1/8\n  work 2/7');
  assert.deepEqual(graph.nodes.pruned, [0, 0, 1]);
  assert.equal(
    show(reshape(cut, { ...plain, inverted: true }, [])),
    `all 0/8\n ${LEFT_OUT} 0/5\n  work 0/5\n   main 5/5\n work 0/2\n  main 2/2\n main 1/1`,
  );
});

test('functions have self weight, and a total that counts each stack once', () => {
  const rows = functionsOf(sample).functions.map(
    (row) => `${row.name} ${row.kind} ${row.self_samples}/${row.total_samples}`,
  );
  assert.deepEqual(rows, ['work user 51/55', 'leaf user 12/12', 'main user 0/63']);
  assert.equal(functionsOf(sample).functions[0]!.total_percent, (100 * 55) / 63);
});

test('callers and callees count a stack once, by the outermost frame; direct neighbors by any frame', () => {
  const answer = callersOf(sample, plain, 'work', '')!;
  assert.equal(show(answer.callers), 'work 0/55\n main 55/55');
  assert.equal(show(answer.callees), 'work 35/55\n work 16/16\n leaf 4/4');
  assert.deepEqual(answer.function_total, { samples: 55, weight: 550 });
  assert.deepEqual(answer.function_self, { samples: 51, weight: 510 });
  const list = (rows: { name: string; samples: number }[]) => rows.map((row) => `${row.name} ${row.samples}`);
  assert.deepEqual(list(answer.direct_callers), ['main 55', 'work 16']);
  assert.deepEqual(list(answer.direct_callees), ['work 16', 'leaf 4']);
  assert.equal(callersOf(sample, plain, 'work', 'other'), null);
  assert.equal(callersOf(sample, plain, 'nothing', ''), null);
});

test('a deep stack works', () => {
  const deep = byLine({ [Array.from({ length: 2000 }, (_, i) => `f${i % 3}:1`).join(';')]: 1 });
  assert.equal(reshape(deep, plain, []).nodes.parent.length, 2001);
  assert.equal(reshape(deep, { ...plain, inverted: true }, []).nodes.parent.length, 2001);
  assert.equal(callersOf(deep, plain, 'f1', '')!.function_total.samples, 1);
  assert.equal(functionsOf(deep).functions.length, 3);
});

test('a file has answers only for its view, and reports what it lacks', () => {
  const saved = {
    event: 'cycles',
    start: '100',
    end: '',
    pid: '',
    tid: '7',
    session: { id: 's' },
    flamegraph: sample,
    threads: 'threads',
    warnings: 'warnings',
    timeline: 'all',
    timeline_cpu: 'cpus',
  } as unknown as SavedAnswers;
  const ask = (target: string) => {
    const { pathname, searchParams } = new URL(target, 'http://file');
    return answerOf(saved, pathname, searchParams);
  };
  const view = 'session=s&event=cycles&start=100&tid=7';
  assert.equal((ask(`/api/flamegraph?${view}`) as FlameGraph).total.samples, 63);
  assert.equal(
    (ask(`/api/flamegraph?${view}&order=bottom-up`) as FlameGraph).nodes.parent.filter(
      (parent, i) => i > 0 && parent === 0,
    ).length,
    3,
  );
  assert.equal(ask('/api/thread-summary?session=s&start=100.0'), 'threads');
  assert.equal(ask(`/api/warnings?${view}`), 'warnings');
  assert.equal(ask('/api/timeline?by=cpu&start=3'), 'cpus');
  assert.deepEqual(ask('/api/sessions/s'), { id: 's' });
  assert.equal(ask(`/api/callers?${view}&function=nothing`), null);
  for (const [target, words] of [
    ['/api/flamegraph?event=cycles', /stretch of time/],
    ['/api/flamegraph?start=100&tid=8', /threads/],
    [`/api/flamegraph?${view}&end=5`, /stretch of time/],
    ['/api/functions?event=faults&start=100&tid=7', /only cycles/],
    ['/api/warnings?event=cycles&start=100&tid=8', /threads/],
    [`/api/flamegraph?${view}&merge=address`, /addresses/],
    ['/api/source?file=a.cc', /needs the server/],
  ] as const)
    assert.throws(
      () => ask(target),
      (error: unknown) => error instanceof NotSaved && words.test(error.message),
      target,
    );
  assert.deepEqual(
    shapeOf(new URLSearchParams({ order: 'bottom-up', merge: 'line', recursion: 'collapse', hide: 'a\u001fb\u001dc' })),
    { inverted: true, merge: 'line', collapse: true, hidden: [['a', 'b'], ['c']] },
  );
});
