// The view state in the URL: fields that are reset together, and URLs of earlier versions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultView, formatHash, parseHash, reset } from '../src/model/view_state';

test('another shape of the flame graph has other paths', () => {
  assert.deepEqual(reset('shape'), { zoom: [], hidden: [], span: null, callersZoom: [], calleesZoom: [] });
});

test('another session resets what belongs to a session, but not how it is shown', () => {
  const fields = Object.keys(reset('session'));
  for (const field of Object.keys(reset('shape'))) assert.ok(fields.includes(field), field);
  const kept = Object.keys(defaultView).filter((field) => !fields.includes(field));
  assert.deepEqual(
    kept.join(' '),
    'tab session search filter sort ascending split upright byWeight inverted group merge collapse colouring grouping ' +
      'modulesLike hitFilter lanes plots baseline normalise width contrast change changeSort',
  );
});

test('URLs of earlier versions are read', () => {
  const view = parseHash('#functions?sort=name&order=asc&per=second&plot=');
  assert.deepEqual([view.ascending, view.inverted, view.normalise, view.plots], [true, false, 'time', []]);
  assert.equal(formatHash(view), '#functions?sort=name&sorted=up&per=second');
});
