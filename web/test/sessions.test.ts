import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepText, pageText, parseTag, sessionTitle } from '../src/text/sessions';

test('a session is called by its name, else by what was recorded', () => {
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

test('the rules of keeping in words', () => {
  assert.equal(keepText({ count: 0, days: 0, size_bytes: 0 }), '');
  assert.equal(keepText({ count: 1, days: 0, size_bytes: 0 }), 'kept: at most 1 session');
  assert.equal(
    keepText({ count: 20, days: 1, size_bytes: 20 * 2 ** 30 }),
    'kept: at most 20 sessions, 1 day, 20.0 GiB',
  );
});

test('where in the list a page stands', () => {
  assert.equal(pageText(0, 100, 2345), '1–100 of 2,345');
  assert.equal(pageText(2300, 45, 2345), '2,301–2,345 of 2,345');
  assert.equal(pageText(0, 0, 0), 'none of 0');
});
