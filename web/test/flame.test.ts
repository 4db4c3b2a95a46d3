// Trees, layout, search and grafting, with values computed by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { frameColour, kinds, shadeOf } from '../src/flame/colour';
import { graft, hasPrunedBelow, nodesAlong } from '../src/model/graft';
import { entryName } from '../src/model/path';
import { boxAt, BoxType, layOut, newBoxes, type Boxes } from '../src/flame/layout';
import { compilePattern, escapePattern } from '../src/model/pattern';
import { findMatches } from '../src/flame/search';
import { buildTree, largestChild, nodeAt, pathOf, type FlameTree } from '../src/flame/tree';
import { hasMissingCallers, missingCallers } from '../src/flame/missing';
import { graphOf } from './graph';

const sample = () => graphOf({ main: 10, 'main;b': 20, 'main;b;leaf': 30, 'main;a': 25, idle: 15 });
const named = (tree: FlameTree, name: string) => tree.name.findIndex((id) => tree.names[id] === name);

function boxesOf(
  tree: FlameTree,
  from = 0,
  to = tree.total[0]!,
  width = 100,
  firstRow = 0,
  lastRow = 100,
): Record<string, [number, number, number]> {
  const boxes = layOut(tree, { from, to, width, firstRow, lastRow }, newBoxes(1));
  const out: Record<string, [number, number, number]> = {};
  for (let i = 0; i < boxes.count; i++) {
    const kind = boxes.type[i] === BoxType.pruned ? 'pruned ' : boxes.type[i] === BoxType.small ? 'small ' : '';
    out[kind + tree.names[tree.name[boxes.node[i]!]!]] = [boxes.depth[i]!, boxes.x[i]!, boxes.width[i]!];
  }
  return out;
}

test('siblings are sorted by name, with self weight at the end', () => {
  // all 100 = idle 15 + main 85; main = a 25 + b 50 + self 10; b = leaf 30 + self 20.
  assert.deepEqual(boxesOf(buildTree(sample(), 'name')), {
    all: [0, 0, 100],
    idle: [1, 0, 15],
    main: [1, 15, 85],
    a: [2, 15, 25],
    b: [2, 40, 50],
    leaf: [3, 40, 30],
  });
});

test('siblings by weight, the largest first', () => {
  assert.deepEqual(boxesOf(buildTree(sample(), 'weight')), {
    all: [0, 0, 100],
    main: [1, 0, 85],
    b: [2, 0, 50],
    leaf: [3, 0, 30],
    a: [2, 50, 25],
    idle: [1, 85, 15],
  });
});

test('a zoomed window is scaled and cut at its edges', () => {
  const tree = buildTree(sample(), 'name');
  // The window is b: 40..90 of the weight on 200 pixels, so 4 pixels per unit.
  assert.deepEqual(boxesOf(tree, 40, 90, 200), {
    all: [0, 0, 200],
    main: [1, 0, 200],
    b: [2, 0, 200],
    leaf: [3, 0, 120],
  });
});

test('rows out of view are omitted', () => {
  assert.deepEqual(Object.keys(boxesOf(buildTree(sample(), 'name'), 0, 100, 100, 2, 2)).sort(), ['a', 'b']);
});

test('pruned weight comes before the self weight', () => {
  const tree = buildTree(graphOf({ main: 10, 'main;big': 60 }, { main: { weight: 30, count: 7 } }), 'name');
  assert.equal(tree.hidden[named(tree, 'main')], 30);
  assert.deepEqual(boxesOf(tree)['pruned main'], [2, 60, 30]);
});

test('frames under half a pixel are drawn as one', () => {
  const stacks: Record<string, number> = { main: 900 };
  for (let i = 0; i < 100; i++) stacks[`main;f${String(i).padStart(3, '0')}`] = 1;
  const shown = boxesOf(buildTree(graphOf(stacks), 'name'), 0, 1000, 100);
  assert.deepEqual(Object.keys(shown), ['all', 'main', 'small main']);
  assert.deepEqual(shown['small main'], [2, 0, 10]);
});

test('a point leads to its box', () => {
  const tree = buildTree(sample(), 'name');
  const boxes: Boxes = layOut(tree, { from: 0, to: 100, width: 100, firstRow: 0, lastRow: 9 }, newBoxes());
  const at = (depth: number, x: number) => {
    const box = boxAt(boxes, depth, x);
    return box < 0 ? null : tree.names[tree.name[boxes.node[box]!]!];
  };
  assert.equal(at(2, 39.9), 'a');
  assert.equal(at(2, 40), 'b');
  assert.equal(at(3, 71), null);
  assert.equal(at(2, 99), null);
});

test('paths lead to nodes and back', () => {
  const tree = buildTree(sample(), 'name');
  const leaf = named(tree, 'leaf');
  assert.deepEqual(pathOf(tree, leaf), ['main', 'b', 'leaf']);
  assert.deepEqual(nodeAt(tree, ['main', 'b', 'leaf']), { node: leaf, found: 3 });
  assert.deepEqual(nodeAt(tree, ['main', 'gone', 'leaf']), { node: named(tree, 'main'), found: 1 });
  assert.equal(largestChild(tree, named(tree, 'main')), named(tree, 'b'));
  assert.deepEqual(pathOf(tree, 0), []);
});

test('siblings with the same name are distinguished', () => {
  const graph = graphOf({ 'main;f': 60, 'main;g': 5, 'main;f;deep': 10 });
  // A lighter f of another kind beside the heavier one.
  const n = graph.nodes;
  n.parent.push(1);
  n.name.push(graph.names.indexOf('f'));
  n.kind.push(3);
  n.total.push(20);
  n.self.push(20);
  for (const column of ['module', 'file', 'line', 'samples', 'self_samples', 'pruned'] as const) n[column].push(0);
  n.total[0]! += 20;
  n.total[1]! += 20;
  const tree = buildTree(graph, 'name');
  const lighter = tree.size - 1;
  const heavier = nodeAt(tree, ['main', 'f']).node;
  assert.equal(tree.total[heavier], 70);
  assert.deepEqual(pathOf(tree, heavier), ['main', 'f']);
  assert.equal(nodeAt(tree, pathOf(tree, lighter)).node, lighter);
  assert.equal(nodesAlong(graph, pathOf(tree, lighter)).at(-1), lighter);
  assert.deepEqual(pathOf(tree, lighter).map(entryName), ['main', 'f']);
});

test('a stack of 5,000 frames works', () => {
  const path = Array.from({ length: 5000 }, (_, i) => `f${i % 50}`);
  const graph = graphOf({});
  const names = [...new Set(path)];
  graph.names = ['all', ...names];
  const n = graph.nodes;
  path.forEach((name, i) => {
    n.parent.push(i);
    n.name.push(1 + names.indexOf(name));
    for (const column of ['module', 'kind', 'file', 'line', 'self', 'self_samples', 'pruned'] as const)
      n[column].push(0);
    n.total.push(8);
    n.samples.push(8);
  });
  n.total[0] = 8;
  n.self[5000] = 8;
  const tree = buildTree(graph, 'name');
  assert.equal(tree.height[0], 5000);
  const boxes = layOut(tree, { from: 0, to: 8, width: 100, firstRow: 4990, lastRow: 5100 }, newBoxes());
  assert.equal(boxes.count, 11);
  assert.equal(findMatches(tree, compilePattern('f49$')!).weight, 8);
});

test('the matched share counts each stack once', () => {
  const tree = buildTree(
    graphOf({ 'main;rec;rec;rec': 30, 'main;rec;leaf': 10, 'main;other': 40, 'rec;x': 20 }),
    'name',
  );
  const found = findMatches(tree, compilePattern('^rec$')!);
  assert.equal(found.weight, 60); // 40 below main, 20 at the root, although rec repeats
  assert.equal(found.nodes.length, 4);
  // Below main only its own matches count; below a matching frame everything counts.
  assert.equal(findMatches(tree, compilePattern('^rec$')!, nodeAt(tree, ['main']).node).weight, 40);
  assert.equal(findMatches(tree, compilePattern('^leaf$')!, nodeAt(tree, ['main']).node).weight, 10);
  assert.equal(findMatches(tree, compilePattern('^rec$')!, nodeAt(tree, ['main', 'rec', 'leaf']).node).weight, 10);
});

test('matches are in the order of the picture', () => {
  const tree = buildTree(graphOf({ 'z;hit1': 5, 'a;hit3': 1, 'm;hit2': 9 }), 'name');
  const found = findMatches(tree, compilePattern('hit')!);
  assert.deepEqual(
    [...found.nodes].map((node) => tree.names[tree.name[node]!]),
    ['hit3', 'hit2', 'hit1'],
  );
});

test('patterns: lowercase letters match both cases, invalid patterns are plain text', () => {
  assert.ok(compilePattern('visit')!.test('VisitQuadrant'));
  assert.ok(!compilePattern('Visit')!.test('visit_quadrant'));
  const broken = compilePattern('vector<int>(')!;
  assert.notEqual(broken.error, '');
  assert.ok(broken.test('f(std::vector<int>(3))'));
  assert.ok(!broken.test('vector<int>'));
  assert.equal(compilePattern(''), null);
  const name = 'operator()(int[3], a*b)$';
  assert.ok(new RegExp(`^${escapePattern(name)}$`).test(name));
});

test('pruned parts below a path are found', () => {
  const graph = graphOf({ 'main;a': 50, 'main;b': 30 }, { 'main;b': { weight: 5, count: 2 } });
  assert.ok(hasPrunedBelow(graph, []));
  assert.ok(hasPrunedBelow(graph, ['main', 'b']));
  assert.ok(!hasPrunedBelow(graph, ['main', 'a']));
  assert.ok(hasPrunedBelow(graph, ['main', 'missing']));
  assert.equal(nodesAlong(graph, ['main', 'b']).length, 2);
});

test('a fetched subtree replaces the pruned part, and newer weight propagates to ancestors', () => {
  const base = graphOf({ main: 5, 'main;a': 50, 'main;b': 30 }, { 'main;b': { weight: 15, count: 2 } });
  const detail = graphOf({ '': 32, small1: 10, small2: 8 }); // 50 now, 45 before
  detail.names[0] = 'b';
  const tree = buildTree(graft(base, ['main', 'b'], detail), 'name');
  const total = (...path: string[]) => {
    const at = nodeAt(tree, path);
    return at.found === path.length ? tree.total[at.node] : null;
  };
  assert.equal(total('main', 'b'), 50);
  assert.equal(total('main', 'b', 'small1'), 10);
  assert.equal(total('main', 'b', 'small2'), 8);
  assert.equal(total('main'), 105);
  assert.equal(total(), 105);
  assert.equal(total('main', 'a'), 50);
  assert.equal(tree.hidden[nodeAt(tree, ['main', 'b']).node], 0);
});

test('a path that was pruned entirely is added', () => {
  const base = graphOf({ 'main;a': 90 }, { main: { weight: 10, count: 3 } });
  const detail = graphOf({ '': 1, deep: 2 });
  detail.names[0] = 'c2';
  const tree = buildTree(graft(base, ['main', 'c1', 'c2'], detail), 'name');
  assert.equal(tree.total[nodeAt(tree, ['main', 'c1']).node], 3);
  assert.equal(tree.total[nodeAt(tree, ['main', 'c1', 'c2', 'deep']).node], 2);
  assert.equal(tree.total[nodeAt(tree, ['main']).node], 100);
  assert.equal(tree.hidden[nodeAt(tree, ['main']).node], 7);
});

test('kinds differ in colour, names in shade', () => {
  for (const theme of ['dark', 'light'] as const)
    assert.equal(new Set(kinds.map((kind) => frameColour(kind, 3, theme))).size, kinds.length);
  const shades = new Set(Array.from({ length: 200 }, (_, i) => shadeOf(`function_${i}`)));
  assert.equal(shades.size, 7);
  assert.equal(shadeOf('main'), shadeOf('main'));
});

test('a frame for a skipped caller is neither a function nor a root', () => {
  const graph = graphOf({ 'main;[caller missing];leaf': 5 });
  graph.modules.push('');
  graph.nodes.module = graph.nodes.name.map((name) => (graph.names[name]!.startsWith('[') ? 1 : 0));
  const tree = buildTree(graph, 'name');
  assert.equal(missingCallers(tree, named(tree, '[caller missing]')), 'skipped');
  assert.ok(!hasMissingCallers(tree));
});

test('weight without a sample is not a function, and does not mean missing callers', () => {
  const graph = graphOf({ '[not sampled: short-lived threads]': 5, main: 2 });
  graph.modules.push('');
  graph.nodes.module = graph.nodes.name.map((name) => (graph.names[name]!.startsWith('[') ? 1 : 0));
  const tree = buildTree(graph, 'name');
  assert.equal(missingCallers(tree, named(tree, '[not sampled: short-lived threads]')), 'unsampled');
  assert.ok(!hasMissingCallers(tree));
});

test('the root of truncated stacks is not a function, and only if it has no module', () => {
  const graph = graphOf({ '[truncated];inner': 5, '[incomplete];leaf': 2, 'main;[truncated]': 3 });
  const without = buildTree(graph, 'name');
  assert.ok(!hasMissingCallers(without), 'a function of a module can have any name');
  graph.modules.push('');
  graph.nodes.module = graph.nodes.name.map((name) => (graph.names[name]!.startsWith('[') ? 1 : 0));
  const tree = buildTree(graph, 'name');
  assert.ok(hasMissingCallers(tree));
  assert.equal(missingCallers(tree, named(tree, '[truncated]')), 'truncated');
  assert.equal(missingCallers(tree, named(tree, '[incomplete]')), 'incomplete');
  assert.equal(missingCallers(tree, named(tree, 'inner')), null);
  assert.equal(missingCallers(tree, 0), null);
  assert.ok(!hasMissingCallers(buildTree(graphOf({ main: 1 }), 'name')));
});

test('the whole path through a stack of 4,096 frames is found', () => {
  const path = Array.from({ length: 4096 }, (_, i) => `recurse_${i % 3}`);
  const nodes = path.length + 1;
  const list = (make: (i: number) => number) => Array.from({ length: nodes }, (_, i) => make(i));
  const graph = {
    ...graphOf({ main: 1 }),
    names: ['all', 'recurse_0', 'recurse_1', 'recurse_2'],
    nodes: {
      parent: list((i) => Math.max(0, i - 1)),
      name: list((i) => (i === 0 ? 0 : 1 + ((i - 1) % 3))),
      module: list(() => 0),
      kind: list(() => 0),
      file: list(() => 0),
      line: list(() => 0),
      self: list((i) => (i === nodes - 1 ? 7 : 0)),
      total: list(() => 7),
      samples: list(() => 7),
      self_samples: list((i) => (i === nodes - 1 ? 7 : 0)),
      pruned: list(() => 0),
    },
  };
  assert.equal(nodesAlong(graph, path).length, 4096);
  const tree = buildTree(graph, 'name');
  assert.equal(tree.height[0], 4096);
  assert.deepEqual(pathOf(tree, 4096), path);
  assert.deepEqual(nodeAt(tree, path), { node: 4096, found: 4096 });
  const boxes = layOut(tree, { from: 0, to: 7, width: 100, firstRow: 4090, lastRow: 4100 }, newBoxes());
  assert.equal(boxes.count, 7);
  assert.equal(boxes.depth[6], 4096);
});
