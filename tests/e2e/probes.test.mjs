// A probe on a function, chosen on the page, with the real server, a real agent and a program that calls the function.
import assert from 'node:assert/strict';
import { constants } from 'node:fs';
import { after, before } from 'node:test';
import { frames, inspect, launch, openPage, settled, shot, shows } from './browser.mjs';
import { steps } from './pages.mjs';
import { built, canUseTracefs, Programs, waitFor } from './programs.mjs';

const possible = canUseTracefs('uprobe_events', constants.W_OK, 'the page with probes');

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

before(async () => {
  browser = await launch();
  server = await programs.server();
});
after(async () => {
  await browser?.close();
  await programs.stop();
});

step('a probe is typed among the events, and a refusal is shown', async () => {
  const workload = programs.start('probes-workload', 'busy', 600);
  programs.start('flamewire-agent', '--server', '127.0.0.1', '--port', server.agentPort, '--max-slowdown', 10000);
  opened = await openPage(browser, server.url, { theme: 'dark' });
  page = opened.page;
  await page.getByRole('button', { name: 'Choose a process' }).click();
  await page.fill('dialog [data-search]', 'probes-workload');
  await page.locator(`.process-row[data-pid="${workload.pid}"]`).click();
  await page.click('#options');
  await page.fill('dialog input[name=others]', 'uprobe:no_such_function@probes-workload');
  await page.click('#start');
  await shows(page, 'dialog [role=alert]', /probes-workload has no function no_such_function/);
  const file = built('probes-workload');
  await page.fill(
    'dialog input[name=others]',
    `cpu-clock,uprobe:probed_leaf@"${file}"/number % 2 == 0/number=$arg2:s32/`,
  );
  await page.click('#start');
  await shows(page, 'dialog [role=alert]', /the kernel refuses the filter/);
  await page.fill(
    'dialog input[name=others]',
    `cpu-clock,uprobe:probed_leaf@"${file}"/number > 5/number=$arg2:s32/alias=leaf/`,
  );
  await shot(page, 'probe-options-dark');
  await page.click('#start');
  await page.waitForFunction(() => window.__flamewire.state().sessionState === 'live', null);
});

step('the calls of the function are a flame graph of their own', async () => {
  const { session } = await inspect(page);
  await waitFor(async () => (await api(`/api/sessions/${session}`)).samples > 1000, '1,000 samples', 60);
  const about = await api(`/api/sessions/${session}`);
  assert.deepEqual(
    about.events.map((event) => event.name),
    ['cpu-clock', 'leaf'],
  );
  await page.selectOption('#event-select', { label: 'leaf' });
  await settled(page);
  await waitFor(async () => (await frames(page)).some((frame) => frame.name === 'probed_leaf'), 'the probed function');
  const drawn = await frames(page);
  const width = (name) => drawn.filter((frame) => frame.name === name).reduce((sum, frame) => sum + frame.width, 0);
  // Every hit is in the function, which one function calls.
  assert.ok(Math.abs(width('probed_leaf') - width('probed_inner')) < 2);
  await shot(page, 'probe-flame-dark');
});

step('the settings of the recording show the probe as it was typed', async () => {
  await page.getByRole('button', { name: 'Change', exact: true }).click();
  await page.locator('.settings-dialog').waitFor();
  const typed = await page.inputValue('.settings-dialog input[name=others]');
  assert.match(typed, /^cpu-clock,uprobe:probed_leaf@".*"\/number > 5\/number=\$arg2:s32\/alias=leaf\/$/);
  await shot(page, 'probe-settings-dark');
});
