// Names in boxes, with letters of known widths.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TextFit } from '../src/flame/text_fit';

test('a name fits, is shortened, or is omitted', () => {
  let measured = 0;
  const width = (letter: string) => (letter === 'i' ? 2 : letter === '…' ? 6 : letter === '😀' ? 10 : 5);
  const fitting = new TextFit((text) => {
    measured++;
    return width(text);
  });
  assert.equal(fitting.fit('main', 17), 'main'); // 5 + 5 + 2 + 5
  assert.equal(fitting.fit('main', 16.9), 'ma…'); // 5 + 5 + 6
  assert.equal(fitting.fit('main', 15.9), '');
  assert.equal(fitting.fit('iiii', 8), 'iiii');
  assert.equal(fitting.fit('', 0), '');
  assert.equal(fitting.fit('a😀😀', 21), 'a😀…'); // never half of a character
  assert.equal(fitting.fit('é'.repeat(1e6), 40), 'éééééé…');
  const before = measured;
  for (let i = 0; i < 100; i++) fitting.fit('main'.repeat(i), 300);
  assert.equal(measured, before, 'each letter must be measured only once');
});
