import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepText, pageText, parseTag, sessionTitle } from '../src/text/sessions';

test('the title of a session is its name, or else its target', () => {
  assert.equal(sessionTitle({ id: 'i', name: 'before', target: 'nginx' }), 'before');
  assert.equal(sessionTitle({ id: 'i', name: '', target: 'nginx' }), 'nginx');
  assert.equal(sessionTitle({ id: 'i', name: '', target: '' }), 'i');
});

test('a tag is one word, an equals sign and anything', () => {
  assert.deepEqual(parseTag('build=17'), ['build', '17']);
  assert.deepEqual(parseTag(' url = http://x/?a=b '), ['url', 'http://x/?a=b']);
  assert.deepEqual(parseTag('empty='), ['empty', '']);
  for (const text of ['', 'word', '=v', 'two words=v']) assert.equal(parseTag(text), null, text);
});

test('the retention rules as text', () => {
  assert.equal(keepText({ count: 0, days: 0, size_bytes: 0 }), '');
  assert.equal(keepText({ count: 1, days: 0, size_bytes: 0 }), 'kept: at most 1 session');
  assert.equal(
    keepText({ count: 20, days: 1, size_bytes: 20 * 2 ** 30 }),
    'kept: at most 20 sessions, 1 day, 20.0 GiB',
  );
});

test('the position of a page in the list', () => {
  assert.equal(pageText(0, 100, 2345), '1–100 of 2,345');
  assert.equal(pageText(2300, 45, 2345), '2,301–2,345 of 2,345');
  assert.equal(pageText(0, 0, 0), 'none of 0');
});
