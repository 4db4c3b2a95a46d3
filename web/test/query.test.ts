// Queries repeat when data change: one request at a time, none while the page is hidden, and the newest state wins.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signal } from '@preact/signals';

// The parts of a browser that query.ts needs.
const page = Object.assign(new EventTarget(), { visibilityState: 'visible' });
Object.assign(globalThis, { document: page, window: globalThis });
const { createQuery } = await import('../src/store/query');
const { ApiError } = await import('../src/api/client');

interface Pending {
  signal: AbortSignal;
  answer: (value: string) => void;
  fail: (error: Error) => void;
}

function setUp() {
  const key = signal<string | null>('a');
  const version = signal(1);
  const scope = signal('s');
  const asked: Pending[] = [];
  const query = createQuery<string>({
    key: () => key.value,
    version: () => version.value,
    scope: () => scope.value,
    intervalMs: 0,
    rows: true,
    fetch: (abort) => new Promise((answer, fail) => asked.push({ signal: abort, answer, fail })),
  });
  return { key, version, scope, asked, query };
}

// Runs timers and promises, to check that nothing happens.
const turn = () => new Promise((resolve) => setTimeout(resolve, 30));
// Waits for a condition. The query itself waits for 1.5 times the duration of a request.
const until = async (condition: () => boolean) => {
  while (!condition()) await turn();
};

test('changes during a request lead to one more, for the newest version', async () => {
  const { version, asked, query } = setUp();
  await until(() => asked.length === 1);
  for (let i = 2; i < 20; i++) version.value = i;
  await turn();
  assert.equal(asked.length, 1, 'more than one request at a time');
  asked[0]!.answer('one');
  await until(() => asked.length === 2);
  assert.equal(query.data.value, 'one');
  asked[1]!.answer('two');
  await turn();
  assert.equal(query.data.value, 'two');
  await turn();
  assert.equal(asked.length, 2, 'a request without a change');
});

test('another key cancels the pending request and keeps the old data until the answer', async () => {
  const { key, version, asked, query } = setUp();
  await until(() => asked.length === 1);
  asked[0]!.answer('of a');
  await turn();
  key.value = 'b';
  assert.ok(query.loading.value);
  await until(() => asked.length === 2);
  version.value = 2; // new data for the same key do not restart the request
  await turn();
  assert.ok(!asked[1]!.signal.aborted);
  key.value = 'c';
  await until(() => asked.length === 3);
  assert.ok(asked[1]!.signal.aborted);
  assert.equal(query.data.value, 'of a');
  asked[1]!.answer('of b, too late');
  asked[2]!.answer('of c');
  await turn();
  assert.equal(query.data.value, 'of c');
  assert.ok(!query.loading.value);
});

test('rows stay while one is pressed; an answer for another key is shown immediately', async () => {
  const { key, version, asked, query } = setUp();
  await until(() => asked.length === 1);
  asked[0]!.answer('one');
  await turn();
  version.value = 2;
  await until(() => asked.length === 2);
  Object.assign(page, { closest: (rows: string) => (rows.includes('tbody') ? page : null) });
  page.dispatchEvent(Object.assign(new Event('pointerdown'), { button: 0 }));
  asked[1]!.answer('two');
  await turn();
  assert.equal(query.data.value, 'one');
  page.dispatchEvent(new Event('pointerup'));
  await Promise.resolve();
  assert.equal(query.data.value, 'one', 'the click must be handled first');
  await until(() => query.data.value === 'two');

  page.dispatchEvent(Object.assign(new Event('pointerdown'), { button: 0 }));
  key.value = 'b';
  await until(() => asked.length === 3);
  asked[2]!.answer('of b');
  await until(() => query.data.value === 'of b');
  page.dispatchEvent(new Event('pointercancel'));
});

test('there are no requests while the page is hidden or there is no key', async () => {
  const { key, version, asked } = setUp();
  await until(() => asked.length === 1);
  asked[0]!.answer('seen');
  await turn();
  page.visibilityState = 'hidden';
  page.dispatchEvent(new Event('visibilitychange'));
  version.value = 7;
  await turn();
  assert.equal(asked.length, 1);
  page.visibilityState = 'visible';
  page.dispatchEvent(new Event('visibilitychange'));
  await until(() => asked.length === 2);
  asked[1]!.answer('seen again');
  key.value = null;
  version.value = 8;
  await turn();
  assert.equal(asked.length, 2);
});

test('another scope clears the data immediately, an error keeps them', async () => {
  const { scope, key, version, asked, query } = setUp();
  await until(() => asked.length === 1);
  asked[0]!.answer('old');
  await turn();
  version.value = 2;
  await until(() => asked.length === 2);
  asked[1]!.fail(new Error('broken'));
  await turn();
  assert.equal(query.data.value, 'old');
  assert.match(query.error.value!.message, /broken/);
  scope.value = 't';
  key.value = 'other';
  assert.equal(query.data.value, null);
  assert.equal(query.error.value, null);
});

test('an answer does not stay for another key that was refused', async () => {
  const { key, asked, query } = setUp();
  await until(() => asked.length === 1);
  asked[0]!.answer('of the first');
  await turn();
  key.value = 'second';
  await until(() => asked.length === 2);
  asked[1]!.fail(new ApiError(501, { code: 'not_saved', message: 'not here' }));
  await turn();
  assert.equal(query.data.value, null);
  assert.equal(query.error.value!.code, 'not_saved');
});

test('deferrable data are shown together with other data, or after a moment', async () => {
  const version = signal(1);
  const scope = signal('s');
  const asked: Pending[] = [];
  const ask = (abort: AbortSignal) =>
    new Promise<string>((answer, fail) => asked.push({ signal: abort, answer, fail }));
  const calm = createQuery<string>({
    key: () => 'a',
    version: () => version.value,
    scope: () => scope.value,
    intervalMs: 0,
    deferrable: true,
    fetch: ask,
  });
  await until(() => asked.length === 1);
  asked[0]!.answer('first');
  await until(() => calm.data.value === 'first'); // immediately, because there were no data
  version.value = 2;
  await until(() => asked.length === 2);
  asked[1]!.answer('second');
  await turn();
  assert.equal(calm.data.value, 'first');
  const other = createQuery<string>({ key: () => 'b', intervalMs: 0, fetch: ask });
  await until(() => asked.length === 3);
  asked[2]!.answer('other');
  await until(() => other.data.value === 'other');
  assert.equal(calm.data.value, 'second');
  version.value = 3;
  await until(() => asked.length === 4);
  asked[3]!.answer('third');
  await until(() => calm.data.value === 'third'); // without other data
  // Deferred data are not shown in another scope.
  version.value = 4;
  await until(() => asked.length === 5);
  asked[4]!.answer('fourth');
  await turn();
  scope.value = 't';
  await until(() => calm.data.value === null);
  for (let i = 0; i < 10; i++) await turn();
  assert.equal(calm.data.value, null);
});
