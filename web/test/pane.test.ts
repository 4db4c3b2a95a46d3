// The viewport of a tree, its keys and its rows, with values computed by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { framesOf, hitAt, hitIn, nodeIn } from '../src/flame/drawn';
import { actionOf, stepFrom } from '../src/flame/keyboard';
import { BoxType, layOut, newBoxes } from '../src/flame/layout';
import { depthAt, rowTop, visibleRows } from '../src/flame/scene';
import { buildTree, nodeAt, type FlameTree } from '../src/flame/tree';
import { Viewport } from '../src/flame/viewport';
import { graphOf } from './graph';

// By name: idle 0 … 15, main 15 … 100; in it a 15 … 40, b 40 … 90.
const tree = buildTree(graphOf({ main: 10, 'main;b': 20, 'main;b;leaf': 30, 'main;a': 25, idle: 15 }), 'name');
const at = (of: FlameTree, ...path: string[]) => nodeAt(of, path).node;

test('rows are counted from the top or from the bottom', () => {
  const hanging = { upright: false, content: 400, scrolled: 30 };
  const standing = { ...hanging, upright: true };
  assert.deepEqual([rowTop(hanging, 2), rowTop(standing, 2)], [10, 310]);
  for (const rows of [hanging, standing]) assert.equal(depthAt(rows, rowTop(rows, 2) + 1), 2);
  assert.deepEqual(visibleRows(hanging, 100), { first: 1, last: 6 });
  assert.deepEqual(visibleRows(standing, 100), { first: 13, last: 18 });
});

test('the viewport moves to a frame in 150 ms, and follows it immediately in new data', () => {
  const view = new Viewport();
  view.setTree(tree);
  assert.deepEqual([view.from, view.to, view.rows()], [0, 100, 4]);
  assert.equal(view.setZoom(['main', 'b'], 1000), true);
  assert.equal(view.setZoom(['main', 'b'], 1000), false);
  assert.ok(view.step(1075));
  // After half of the time, it is seven eighths of the way to 40 … 90.
  assert.deepEqual([view.from, view.to], [35, 91.25]);
  assert.equal(view.step(1150), false);
  assert.deepEqual([view.from, view.to, view.isMoving], [40, 90, false]);
  view.setSpan({ from: 0.5, to: 1 }, null);
  assert.deepEqual([view.from, view.to], [65, 90]);
  // b is now 200 … 400; its second half stays in the viewport.
  view.setTree(buildTree(graphOf({ 'main;b': 200, 'main;a': 200 }), 'name'));
  assert.deepEqual([view.from, view.to], [300, 400]);
  assert.deepEqual(view.whole(), { from: 200, to: 400 });
});

test('keys walk inward and outward according to the direction of the picture', () => {
  const key = (name: string, more = {}) => ({
    key: name,
    ctrlKey: false,
    metaKey: false,
    altKey: false,
    shiftKey: false,
    ...more,
  });
  assert.deepEqual([actionOf(key('ArrowDown'), false), actionOf(key('ArrowDown'), true)], ['inward', 'outward']);
  assert.deepEqual([actionOf(key('F10'), false), actionOf(key('F10', { shiftKey: true }), false)], [null, 'menu']);
  assert.deepEqual(
    [actionOf(key('s', { ctrlKey: true }), false), actionOf(key('constructor'), false), actionOf(key('Enter'), false)],
    [null, null, 'zoom'],
  );
  const main = at(tree, 'main');
  assert.equal(stepFrom(tree, main, 'inward'), at(tree, 'main', 'b')); // the heaviest
  assert.equal(stepFrom(tree, main, 'outward'), 0);
  assert.equal(stepFrom(tree, main, 'previous'), at(tree, 'idle'));
  assert.equal(stepFrom(tree, at(tree, 'idle'), 'next'), main);
  assert.deepEqual(
    [stepFrom(tree, 0, 'outward'), stepFrom(tree, 0, 'previous'), stepFrom(tree, main, 'next')],
    [-1, -1, -1],
  );
});

test('a click on an older picture means the same frame in newer data', () => {
  const boxes = layOut(tree, { from: 0, to: 100, width: 200, firstRow: 0, lastRow: 9 }, newBoxes());
  const newer = buildTree(graphOf({ fresh: 500, 'main;b;leaf': 10, 'main;b': 40, 'main;a': 1 }), 'name');
  const rows = { upright: false, content: 400, scrolled: 0 };
  // b was drawn at 80 … 180 in the third row; idle, at 0 … 30 of the second, is gone.
  assert.deepEqual(hitAt({ tree, boxes }, rows, newer, 100, 45), {
    node: at(newer, 'main', 'b'),
    type: BoxType.frame,
    x: 100,
    y: 45,
  });
  assert.equal(hitAt({ tree, boxes }, rows, newer, 10, 25), null);
  assert.equal(hitAt({ tree, boxes }, rows, newer, 190, 45), null); // nothing was there
  assert.deepEqual([nodeIn(newer, tree, 0), nodeIn(newer, tree, -1)], [0, -1]);
  const hit = { node: at(tree, 'main', 'b'), type: BoxType.frame, x: 3, y: 4 };
  assert.deepEqual(hitIn(newer, tree, hit), { ...hit, node: at(newer, 'main', 'b') });
  assert.notEqual(hit.node, at(newer, 'main', 'b'));
  assert.equal(hitIn(newer, tree, { ...hit, node: at(tree, 'idle') }), null);
  const drawn = framesOf({ tree, boxes }, rows).find((frame) => frame.name === 'b')!;
  assert.deepEqual([drawn.x, drawn.y, drawn.width, drawn.total], [80, 40, 100, 50]);
});
