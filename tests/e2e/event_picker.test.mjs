// Events that are found on the page instead of typed: with the real server, a real agent and a program that calls malloc.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { constants } from 'node:fs';
import { after, before } from 'node:test';
import { frames, inspect, launch, openPage, settled, shot, shows } from './browser.mjs';
import { steps } from './pages.mjs';
import { built, canUseTracefs, Programs, waitFor } from './programs.mjs';

const possible = canUseTracefs('uprobe_events', constants.W_OK, 'finding events');

const programs = new Programs();
let browser;
let server;
let opened;
let page;
const api = async (path) => (await fetch(new URL(path, server.url))).json();
const run = steps(
  programs,
  () => opened?.problems ?? [],
  () => shot(page, 'failed'),
);
const step = (name, body) => possible && run(name, body);
const rows = () => page.locator('#event-list [role=option]');
const names = () => page.locator('#event-list [role=option] .mono').allTextContents();
const others = () => page.inputValue('dialog input[name=others]');
const search = (kind) => page.getByRole('combobox', { name: `Search ${kind}` });
const choose = (kind) => page.locator('.event-picker').getByRole('button', { name: kind, exact: true }).click();
const first = (name) => waitFor(async () => (await names())[0] === name, name);

before(async () => {
  browser = await launch();
  server = await programs.server();
});
after(async () => {
  await browser?.close();
  await programs.stop();
});

step('tracepoints are found by parts of their names, with their fields', async () => {
  const allocating = programs.start(
    '/usr/bin/python3',
    '-c',
    'import time\nwhile True:\n    bytearray(4096)\n    time.sleep(0.001)',
  );
  programs.start('flamewire-agent', '--server', '127.0.0.1', '--port', server.agentPort, '--max-slowdown', 10000);
  opened = await openPage(browser, server.url, { theme: 'dark' });
  page = opened.page;
  await page.getByRole('button', { name: 'Choose a process' }).click();
  await page.locator(`.process-row[data-pid="${allocating.pid}"]`).click();
  await page.click('#options');
  await page.click('#find-events');
  await search('Tracepoints').fill('sched switch');
  await first('sched:sched_switch');
  await shows(page, '.event-details', /prev_comm\s*char\[16\]/);
  await search('Tracepoints').press('Enter');
  assert.equal(await others(), 'sched:sched_switch');
  await shot(page, 'events-tracepoints-dark');
  await search('Tracepoints').press('Enter');
  assert.equal(await others(), '');
  assert.equal(await page.getByRole('button', { name: 'Kernel functions' }).count(), 0);
});

step('USDT probes are those of readelf', async () => {
  await search('Tracepoints').fill('');
  await choose('USDT probes');
  await shows(page, '#event-list', /Choose a program or library first/);
  const program = built('probes-workload');
  await page.fill('input[name=event-file]', program);
  const notes = spawnSync('readelf', ['--notes', program], { encoding: 'utf8' }).stdout;
  // That one is not in code, so it cannot be a probe.
  const bad = 'probed:in_data';
  const known = [...notes.matchAll(/Provider: (\S+)\n\s+Name: (\S+)/g)].map(
    ([, provider, name]) => `${provider}:${name}`,
  );
  assert.ok(known.length > 0);
  const wanted = [...new Set(known)]
    .filter((name) => name !== bad)
    .sort()
    .join();
  await waitFor(async () => (await names()).sort().join() === wanted, wanted);
  await rows().filter({ hasText: 'probed:plain' }).click();
  assert.equal(await others(), `usdt:probed:plain@"${program}"`);
  await shows(page, '.event-details', /offset 0x[0-9a-f]+ of .*arg1\s*s32/s);
  await rows().filter({ hasText: 'probed:plain' }).click();
});

step('a function is found in a library of the process, with its cost', async () => {
  await choose('Functions');
  const offered = () => page.locator('#event-files option').evaluateAll((all) => all.map((one) => one.value));
  await waitFor(async () => (await offered()).some((path) => path.includes('/libc.so')), 'the files of the process');
  await page.fill('input[name=event-file]', 'no-such-file');
  await shows(page, '.event-picker [role=alert]', /no recorded process uses a file named no-such-file/);
  await page.fill('input[name=event-file]', 'libc');
  await search('Functions').fill('malloc');
  await first('malloc');
  await shows(page, '.event-details', /offset 0x[0-9a-f]+ of .*libc\.so\.6, about [0-9.]+ µs per hit/);
  await search('Functions').press('ArrowDown');
  await search('Functions').press('ArrowUp');
  await search('Functions').press('Enter');
  await waitFor(async () => (await rows().first().getAttribute('aria-selected')) === 'true', 'the choice');
  assert.match(await others(), /^uprobe:malloc@"\S+libc\.so\.6"$/);
  await shot(page, 'events-functions-dark');
  await page.evaluate(() => (document.documentElement.dataset.theme = 'light'));
  await shot(page, 'events-functions-light');
  await page.evaluate(() => (document.documentElement.dataset.theme = 'dark'));
});

step('it is recorded', async () => {
  await page.click('#start');
  await page.waitForFunction(() => window.__flamewire.state().sessionState === 'live', null);
  const { session } = await inspect(page);
  await waitFor(async () => (await api(`/api/sessions/${session}`)).samples > 100, 'calls of malloc', 60);
  await settled(page);
  await waitFor(async () => (await frames(page)).some((frame) => /malloc/.test(frame.name)), 'malloc in the graph');
  await shot(page, 'events-flame-dark');
});
