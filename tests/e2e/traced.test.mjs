// The system calls of a real program as single hits on the page, with the real server and a real agent.
import assert from 'node:assert/strict';
import { constants } from 'node:fs';
import { after, before } from 'node:test';
import { inspect, launch, openPage, shot, shows } from './browser.mjs';
import { steps } from './pages.mjs';
import { canUseTracefs, Programs, waitFor } from './programs.mjs';

const possible = canUseTracefs('events/syscalls/sys_enter_write/id', constants.R_OK, 'the page with traced events');

const WRITES = 40;
const BYTES = 4096;
const EVENT = 'syscalls:sys_enter_write';

const programs = new Programs();
let browser;
let server;
let opened;
let page;
const run = steps(
  programs,
  () => opened?.problems ?? [],
  () => shot(page, 'failed'),
);
const step = (name, body) => possible && run(name, body);
const listed = () => page.evaluate(() => window.__flamewire.hits());
// The kernel's format decides whether a value is printed as hexadecimal.
const numberOf = (hit, field) => Number(hit.values.find(({ name }) => name === field).text);

before(async () => {
  browser = await launch();
  server = await programs.server();
});
after(async () => {
  await browser?.close();
  await programs.stop();
});

// dd writes WRITES blocks, and its statistics to another file descriptor.
step('each write of a program is a row with its values', async () => {
  const agent = programs.start(
    'flamewire-agent',
    '--server',
    '127.0.0.1',
    '--port',
    server.agentPort,
    '--ring-pages',
    4096,
    '--unwind',
    'fp',
    '--events',
    `trace:${EVENT}`,
    '--',
    'dd',
    'if=/dev/zero',
    'of=/dev/null',
    `bs=${BYTES}`,
    `count=${WRITES}`,
  );
  await agent.ended;
  const { sessions } = await waitFor(async () => {
    const answer = await (await fetch(new URL('/api/sessions', server.url))).json();
    return answer.sessions[0]?.state === 'ended' && answer;
  }, 'the session to end');
  opened = await openPage(browser, `${server.url}#functions?session=${sessions[0].id}`, { theme: 'dark' });
  page = opened.page;
  await page.click('#tab-events');
  await page.locator('.hit-row[data-hit]').first().waitFor();
  const blocks = (await listed()).filter((hit) => numberOf(hit, 'count') === BYTES);
  assert.equal(blocks.length, WRITES);
  for (const hit of blocks) {
    assert.equal(hit.event, EVENT);
    assert.equal(hit.comm, 'dd');
    assert.equal(numberOf(hit, 'fd'), 1);
  }
  await shot(page, 'traced-list-dark');
});

step('a filter leaves the writes of one file descriptor', async () => {
  const all = (await listed()).length;
  await page.fill('.main [data-search]', `fd=1 count=${BYTES}`);
  await shows(page, '#hit-count', `${WRITES} hits`);
  await page.fill('.main [data-search]', `fd=1 "not dd" count=${BYTES}`);
  await shows(page, '.hits-body .message', 'No hits match the filter');
  await page.fill('.main [data-search]', `fd=1 "dd" count=${BYTES}`);
  await shows(page, '#hit-count', `${WRITES} hits`);
  await page.locator('.hit-row[data-hit]').first().waitFor();
  assert.ok(all > WRITES, 'dd also writes its statistics');
});

step('a hit has its values and its stack', async () => {
  await page.locator('.hit-row[data-hit]').nth(3).click();
  await page.locator('.hit-stack li').first().waitFor();
  assert.match(await page.locator('#hit-values').textContent(), /^fd0x1 buf0x[0-9a-f]+ count0x1000 $/);
  await page.click('#show-moment');
  await page.locator('.strip-moment').waitFor();
  await shot(page, 'traced-detail-dark');
});

step('writes grouped by size have the figures that dd promises', async () => {
  await page.fill('.main [data-search]', 'fd=1');
  await page.selectOption('#hits-by', 'fd');
  await page.selectOption('#hits-value', 'count');
  await page.locator('.bucket').first().waitFor();
  const cells = await page.locator('.group-hits-row:not(.row-head) .cell').allTextContents();
  // Key, hits, sum, average, then the least value to the largest one.
  assert.deepEqual(cells, [
    '0x1',
    `${WRITES}`,
    (WRITES * BYTES).toLocaleString('en-US'),
    ...Array.from({ length: 6 }, () => BYTES.toLocaleString('en-US')),
  ]);
  await shows(page, '.bucket .mono', '[4K, 8K)');
  await shot(page, 'traced-groups-dark');
  await page.locator('.hit-key').click();
  await shows(page, '#hit-count', `${WRITES} hits`);
  const { view } = await inspect(page);
  assert.deepEqual([view.hitFilter, view.hitsBy], ['fd=1 fd=0x1', '']);
});
