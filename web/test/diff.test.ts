// Comparisons, with values computed by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Diff, FunctionDiff } from '../src/api/types';
import { diffPalette, diffStep, DIFF_STEPS, isDiff, presence, roundScale } from '../src/flame/difference';
import { graft } from '../src/model/graft';
import { buildTree, nodeAt, pathOf, type FlameTree } from '../src/flame/tree';
import { defaultView, formatHash, parseHash } from '../src/model/view_state';
import { changesCsv, changeText, countChanges, partText, scaleText, selectChanges } from '../src/text/diff';
import { graphOf } from './graph';

// all 200 against 100: work 100 of 200 against 70 of 100, fresh 100 against nothing, gone nothing against 30.
function sample(normalise: 'total' | 'time' = 'total'): Diff {
  const graph = graphOf({ work: 60, 'work;leaf': 40, fresh: 100, gone: 0 });
  const at = (name: string) => graph.nodes.name.findIndex((id) => graph.names[id] === name);
  const zeros = graph.nodes.parent.map(() => 0);
  const own = [...zeros];
  const total = [...zeros];
  total[0] = 100;
  total[at('work')] = 70;
  own[at('work')] = 50;
  own[at('leaf')] = total[at('leaf')] = 20;
  own[at('gone')] = total[at('gone')] = 30;
  const [per, base] = normalise === 'total' ? [200, 100] : [4, 1];
  return {
    ...graph,
    whole: { samples: 200, weight: 200 },
    duration_ms: 4000,
    per,
    normalise,
    base: {
      session: 'b',
      data_version: 1,
      total: { samples: 100, weight: 100 },
      whole: { samples: 100, weight: 100 },
      duration_ms: 1000,
      per: base,
    },
    nodes: { ...graph.nodes, base_self: own, base_total: total, base_samples: total, base_self_samples: own },
  };
}
const named = (tree: FlameTree, name: string) => tree.name.findIndex((id) => tree.names[id] === name);

test('a tree of two sides contains the change of each frame, as a difference of shares or of rates', () => {
  const tree = buildTree(sample(), 'name');
  const change = (of: FlameTree, name: string) => of.diff!.change[named(of, name)];
  assert.equal(change(tree, 'work'), 0.5 - 0.7);
  assert.equal(change(tree, 'fresh'), 0.5);
  assert.equal(change(tree, 'gone'), -0.3);
  assert.equal(tree.diff!.selfChange[named(tree, 'work')], 60 / 200 - 50 / 100);
  assert.equal(tree.diff!.scale, 0.5);
  assert.equal(tree.diff!.step[named(tree, 'fresh')], DIFF_STEPS);
  assert.equal(presence(tree.diff!, named(tree, 'fresh')), 'new');
  assert.equal(presence(tree.diff!, named(tree, 'gone')), 'gone');
  assert.equal(presence(tree.diff!, named(tree, 'work')), 'both');
  const timed = buildTree(sample('time'), 'name');
  assert.equal(change(timed, 'work'), 100 / 4 - 70);
  assert.equal(change(timed, 'gone'), -30);
  // An empty side has a rate of zero.
  const empty = sample();
  const nothing = buildTree(
    {
      ...empty,
      per: 0,
      nodes: { ...empty.nodes, total: empty.nodes.total.map(() => 0), self: empty.nodes.self.map(() => 0) },
    } as Diff,
    'name',
  );
  assert.equal(change(nothing, 'gone'), -0.3);
  assert.equal(isDiff(graphOf({ a: 1 })), false);
  assert.equal(buildTree(graphOf({ a: 1 }), 'name').diff, null);
});

test('widths and the order by weight can be those of either side', () => {
  const order = (tree: FlameTree) => {
    const names = [];
    for (let child = tree.firstChild[0]!; child >= 0; child = tree.nextSibling[child]!)
      names.push(`${tree.names[tree.name[child]!]} ${tree.total[child]}`);
    return names;
  };
  assert.deepEqual(order(buildTree(sample(), 'weight', 'function', 'all', 'baseline')), [
    'work 70',
    'gone 30',
    'fresh 0',
  ]);
  assert.deepEqual(order(buildTree(sample(), 'name', 'function', 'all', 'baseline')), [
    'fresh 0',
    'gone 30',
    'work 70',
  ]);
  assert.deepEqual(order(buildTree(sample(), 'name')), ['fresh 100', 'gone 0', 'work 100']);
  assert.equal(buildTree(sample(), 'weight', 'function', 'all', 'baseline').total[0], 100);
});

test('paths name the heaviest sibling by the sum of both sides, as on the server', () => {
  const graph = sample();
  // Two siblings with the same name in different modules: 100 + 0 against 0 + 130 in total.
  const fresh = graph.nodes.name.findIndex((id) => graph.names[id] === 'fresh');
  const gone = graph.nodes.name.findIndex((id) => graph.names[id] === 'gone');
  graph.nodes.name[gone] = graph.nodes.name[fresh]!;
  graph.modules.push('other');
  graph.nodes.module[gone] = 1;
  graph.nodes.base_total[gone] = 130;
  for (const width of ['view', 'baseline'] as const) {
    const tree = buildTree(graph, 'name', 'function', 'all', width);
    assert.deepEqual(pathOf(tree, gone), ['fresh']);
    assert.equal(nodeAt(tree, pathOf(tree, fresh)).node, fresh);
    assert.notDeepEqual(pathOf(tree, fresh), ['fresh']);
  }
});

test('a subtree that is fetched on zoom contains both sides', () => {
  const base = sample();
  const detail = sample();
  const work = base.nodes.name.findIndex((id) => base.names[id] === 'work');
  // work in full: 110 now (60 own, 50 in other), 80 before (50 own, 30 in other).
  const part = graphOf({ '': 60, other: 50 });
  part.names[part.nodes.name[0]!] = 'work';
  const found = graft(base, ['work'], {
    ...detail,
    ...part,
    nodes: {
      ...part.nodes,
      base_self: [50, 30],
      base_total: [80, 30],
      base_samples: [80, 30],
      base_self_samples: [50, 30],
    },
  } as Diff) as Diff;
  const tree = buildTree(found, 'name');
  const other = named(tree, 'other');
  assert.deepEqual([tree.diff!.total[other], tree.diff!.baseTotal[other]], [50, 30]);
  assert.deepEqual([tree.diff!.total[work], tree.diff!.baseTotal[work], tree.diff!.baseSelf[work]], [110, 80, 50]);
  // Ancestors take over the newer values.
  assert.deepEqual([tree.total[0], tree.diff!.baseTotal[0]], [210, 110]);
});

test('the scale of colours is a round number, and the sign decides the hue', () => {
  assert.deepEqual([0.5, 0.51, 0.021, 0.0199, 1, 0].map(roundScale), [0.5, 1, 0.05, 0.02, 1, 0]);
  assert.equal(diffStep(0.5, 0.5), DIFF_STEPS);
  assert.equal(diffStep(-0.5, 0.5), -DIFF_STEPS);
  assert.equal(diffStep(-0.125, 0.5), -DIFF_STEPS / 2);
  assert.equal(diffStep(0, 0.5), 0);
  assert.equal(diffStep(1, 0), 0);
  for (const theme of ['dark', 'light'] as const)
    for (const contrast of ['red-blue', 'orange-purple'] as const) {
      const colours = diffPalette(theme, contrast);
      assert.equal(new Set(colours).size, 2 * DIFF_STEPS + 1);
      assert.notEqual(colours[0], colours.at(-1));
    }
});

test('changes as text', () => {
  assert.equal(changeText(0.1234, 'total', 'ns'), '+12.3 pp');
  assert.equal(changeText(-0.0123, 'total', 'ns'), '−1.23 pp');
  assert.equal(changeText(0.00001, 'total', 'ns'), '+<0.01 pp');
  assert.equal(changeText(0, 'total', 'ns'), '0');
  assert.equal(changeText(-2_000_000, 'time', 'ns'), '−2.00 ms/s');
  assert.equal(scaleText(0.05, 'total', 'ns'), '5 pp');
  assert.equal(scaleText(5e6, 'time', 'cycles'), '5.00 M cycles/s');
  const none = { session: 's', pids: [], tids: [], start: null, end: null };
  assert.equal(partText(none, String), '');
  assert.equal(
    partText({ ...none, tids: [7], start: 1000, end: null }, (tid) => `w${tid}`),
    'thread w7, 1.00 s – end',
  );
  assert.equal(partText({ ...none, tids: [7, 8], pids: [3] }, String), '2 threads, pid 3');
});

const row = (name: string, self: number, base: number, presence: FunctionDiff['presence'] = 'both'): FunctionDiff => ({
  name,
  module: 'm',
  kind: 'user',
  file: '',
  line: 0,
  self,
  total: self,
  self_samples: self,
  total_samples: self,
  base_self: base,
  base_total: base,
  base_self_samples: base,
  base_total_samples: base,
  self_change: self - base,
  total_change: self - base,
  presence,
});

test('functions sorted by their change, and filtered by its direction', () => {
  const rows = [row('a', 5, 4), row('b', 0, 9, 'gone'), row('c', 3, 0, 'new'), row('d', 2, 2)];
  const names = (
    key: Parameters<typeof selectChanges>[1],
    ascending: boolean,
    change: 'all' | 'new' | 'gone' | 'grew' | 'shrank' = 'all',
  ) =>
    selectChanges(rows, key, ascending, { change, pattern: null, module: '' })
      .map((one) => one.name)
      .join('');
  assert.equal(names('self_change', false), 'bcad');
  assert.equal(names('self', true), 'bdca');
  assert.equal(names('name', true), 'abcd');
  assert.equal(names('self_change', false, 'grew'), 'ca');
  assert.equal(names('self_change', false, 'shrank'), 'b');
  assert.equal(names('self_change', false, 'new'), 'c');
  assert.equal(names('self_change', false, 'gone'), 'b');
  assert.deepEqual(countChanges(rows), { all: 4, new: 1, gone: 1, grew: 2, shrank: 1 });
  assert.equal(selectChanges(rows, 'name', true, { change: 'all', pattern: null, module: 'other' }).length, 0);
  const text = changesCsv(rows.slice(1, 2), 'ns', 'total').trim().split('\n');
  assert.equal(text.length, 2);
  assert.match(text[1]!, /^b,m,user,gone,-9\.00000,0,9,/);
});

test('the URL contains the baseline', () => {
  const view = {
    ...defaultView,
    baseline: { session: 'old-1', pids: [3], tids: [7, 8], start: 0, end: 1500.5 },
    normalise: 'time' as const,
    width: 'baseline' as const,
    contrast: 'orange-purple' as const,
    change: 'gone' as const,
    changeSort: 'total_change' as const,
  };
  assert.deepEqual(parseHash(formatHash(view)), view);
  assert.deepEqual(parseHash('#flame?base=x').baseline, { session: 'x', pids: [], tids: [], start: null, end: null });
  assert.equal(parseHash('#flame?base_tid=3').baseline, null);
  assert.deepEqual(parseHash('#flame?base=x&base_tid=a,-1,4&base_start=-3&base_end=z').baseline, {
    session: 'x',
    pids: [],
    tids: [4],
    start: null,
    end: null,
  });
});
