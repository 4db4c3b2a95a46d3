// Trees merged by line or address, the window on a zoomed frame, colors, and these in the URL.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HEAT_STEPS, heatColour, heatStep, moduleColour } from '../src/flame/colour';
import { graft, nodesAlong } from '../src/model/graft';
import { panned, parseSpan, spanText, wholeSpan, widened } from '../src/model/span';
import { buildTree, nodeAt, pathOf } from '../src/flame/tree';
import { defaultView, formatHash, parseHash } from '../src/model/view_state';
import { graphOf } from './graph';

// main has two frames of f: line 7 (weight 30) and line 9 (weight 50).
function twoLines() {
  const graph = graphOf({ 'main;f': 30, 'main;g': 50 });
  const f = graph.names.indexOf('f');
  graph.nodes.parent.forEach((_, node) => {
    const name = graph.names[graph.nodes.name[node]!];
    graph.nodes.line[node] = name === 'f' ? 7 : name === 'g' ? 9 : 3;
    if (name === 'g') graph.nodes.name[node] = f;
  });
  return graph;
}

test('frames show their places, and paths distinguish them', () => {
  const tree = buildTree(twoLines(), 'name', 'line');
  const shown = Array.from(tree.label, (label) => tree.labels[label]);
  assert.deepEqual(shown.slice(1).sort(), ['f:7', 'f:9', 'main:3']);
  const light = shown.indexOf('f:7');
  const path = pathOf(tree, light);
  assert.deepEqual(path, ['main', 'f\u001e0\u001eprog\u001e7']);
  assert.equal(nodeAt(tree, path).node, light);
  assert.equal(nodesAlong(twoLines(), path, 'line').at(-1), light);
  // Siblings are sorted by their labels.
  assert.ok(tree.start[light]! < tree.start[shown.indexOf('f:9')]!);
  // In a tree by function, the line is not part of the name.
  const plain = buildTree(graphOf({ main: 1 }), 'name');
  assert.equal(plain.labels, plain.names);
});

test('addresses are hexadecimal, and survive a graft', () => {
  const withAddress = (stacks: Record<string, number>) => {
    const graph = graphOf(stacks);
    graph.nodes.address = graph.nodes.parent.map((_, node) => (node === 0 ? 0 : 0x1000 + node));
    return graph;
  };
  const base = withAddress({ 'main;f': 30 });
  const tree = buildTree(base, 'name', 'address');
  assert.deepEqual(
    Array.from(tree.label, (label) => tree.labels[label]),
    ['all', 'main 0x1001', 'f 0x1002'],
  );
  const detail = graphOf({ '': 0, leaf: 30 });
  detail.names[detail.nodes.name[0]!] = 'f';
  detail.nodes.address = [0x1002, 0x2222];
  const grafted = graft(base, ['main', 'f'], detail, 'address');
  assert.deepEqual(grafted.nodes.address, [0, 0x1001, 0x1002, 0x2222]);
});

test('the window narrows around a position, and stays within the frame', () => {
  assert.deepEqual(widened(wholeSpan, 0.5, 0.5), { from: 0.25, to: 0.75 });
  assert.deepEqual(widened(wholeSpan, 0.5, 0), { from: 0, to: 0.5 });
  assert.deepEqual(widened({ from: 0.25, to: 0.75 }, 0.5, 1), { from: 0.5, to: 0.75 });
  assert.equal(widened({ from: 0.25, to: 0.75 }, 4, 0.5), wholeSpan);
  assert.deepEqual(panned({ from: 0.25, to: 0.75 }, 0.25), { from: 0.375, to: 0.875 });
  assert.deepEqual(panned({ from: 0.25, to: 0.75 }, 9), { from: 0.5, to: 1 });
  assert.equal(panned(wholeSpan, -1), wholeSpan);
});

test('a window from the URL is limited to a valid one', () => {
  assert.equal(spanText({ from: 0.25, to: 0.75 }), '0.25-0.75');
  assert.deepEqual(parseSpan('0.25-0.75'), { from: 0.25, to: 0.75 });
  for (const wrong of [null, '', '0.5', '0.7-0.3', '0.5-0.5', '0-2', 'a-b', '-1-1'])
    assert.equal(parseSpan(wrong), null, String(wrong));
});

test('the shape of the view survives the URL', () => {
  const view = {
    ...defaultView,
    tab: 'callers' as const,
    inverted: true,
    merge: 'address' as const,
    collapse: true,
    colouring: 'heat' as const,
    hidden: [['main', 'f & g'], ['idle']],
    span: { from: 0.125, to: 0.5 },
    callersOf: 'std::map<a, b>',
    callersModule: 'prog',
    module: 'libc.so.6',
    grouping: 'file' as const,
    ascending: true,
  };
  assert.deepEqual(parseHash(formatHash(view)), view);
  assert.equal(formatHash(defaultView), '#flame');
  assert.equal(parseHash('#flame?merge=colour&order=sideways&recursion=1&colour=x&group=y').merge, 'function');
});

test('heat is also visible by lightness alone', () => {
  assert.deepEqual(
    [heatStep(0, 100), heatStep(100, 100), heatStep(25, 100), heatStep(5, 0)],
    [0, HEAT_STEPS - 1, 6, 0],
  );
  const lightness = (colour: string) => Number(/ ([\d.]+)%\)$/.exec(colour)![1]);
  for (const theme of ['dark', 'light'] as const)
    for (let step = 1; step < HEAT_STEPS; step++)
      assert.ok(lightness(heatColour(step, theme)) < lightness(heatColour(step - 1, theme)));
  assert.notEqual(moduleColour('libc.so.6', 'dark'), moduleColour('libm.so.6', 'dark'));
});
