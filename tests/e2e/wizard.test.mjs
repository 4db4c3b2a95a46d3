// The guide from the first visit to a flame graph, with a real server and real agents: one that dials and one that is
// dialed. Also changes of a running recording. permissions.test.mjs tests missing permissions.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { frames, launch, openPage, settled, shot, shows } from './browser.mjs';
import { steps } from './pages.mjs';
import { Programs, root, waitFor } from './programs.mjs';

const programs = new Programs();
let browser;
let server;
let opened;
let page;
let workload;
let other;
let recorded = '';

// An address that is not loopback stands for another machine.
const ownAddress = Object.values(networkInterfaces())
  .flat()
  .find((address) => address.family === 'IPv4' && !address.internal).address;
const api = async (path) => (await fetch(new URL(path, server.url))).json();
const both = async (name) => {
  await shot(page, `guide-${name}-dark`);
  await page.evaluate(() => (document.documentElement.dataset.theme = 'light'));
  await shot(page, `guide-${name}-light`);
  await page.evaluate(() => (document.documentElement.dataset.theme = 'dark'));
};
const dialsPath = '**/api/agent/dials';
const at = (step) => page.locator(`.wizard-${step}`).waitFor();
const next = async (step) => {
  await page.locator('#wizard-next:not(:disabled)').click();
  await at(step);
};
const row = (pid) => page.locator(`.process-row[data-pid="${pid}"]`);
const find = async (text) => {
  await page.locator('dialog[open] [data-search]').fill(text);
};
// A port below the kernel's ephemeral range, so no connection of another test takes it before the agent listens.
const freePort = async () => {
  const [end] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'ascii').split(/\s/).map(Number);
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * (end - 10_000));
    const probe = createServer();
    const free = await new Promise((resolve) =>
      probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true)),
    );
    if (!free) continue;
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
};

const step = steps(
  programs,
  () => opened?.problems ?? [],
  () => shot(page, 'guide-failed'),
);

before(async () => {
  browser = await launch();
  server = await programs.server('--browse-root', join(root, 'tests'));
  workload = programs.start('demo-workload', '600.0625');
  other = programs.start('shares-workload', '600');
});
after(async () => {
  await browser?.close();
  await programs.stop();
});

step('a first visit opens the guide, which waits for an agent', async () => {
  opened = await openPage(browser, server.url, { theme: 'dark', firstRun: true });
  page = opened.page;
  await at('connect');
  assert.equal(await page.locator('#wizard-next').isDisabled(), true);
  await shows(page, '.wizard .modal-foot .note', 'Connect an agent first.');
  const line = await page.locator('.wizard .copy-line code').textContent();
  assert.ok(line.includes(String(server.agentPort)), line);
  assert.match(line, / --pair [0-9a-f]{16}-[0-9a-f]{32}$/);
  for (const title of ['What works', 'Start'])
    assert.equal(await page.getByRole('button', { name: title }).last().isDisabled(), true, title);
});

step('dialing reports why an attempt failed, retries, and connects when an agent listens', async () => {
  const port = await freePort();
  const address = page.locator('.wizard .fix input').first();
  const pair = page.locator('.wizard input[name=pair]');
  // Text that is typed before the answer arrives stays.
  let answer;
  const typed = new Promise((resolve) => (answer = resolve));
  const hold = async (route) => {
    if (route.request().method() === 'POST') await typed;
    await route.continue();
  };
  await page.route(dialsPath, hold);
  await address.fill(`${ownAddress}:${port}`);
  await address.press('Enter');
  await pair.fill('typed meanwhile');
  answer();
  await page.locator('.wizard .dial', { hasText: 'refuses connections' }).waitFor();
  assert.equal(await pair.inputValue(), 'typed meanwhile');
  await page.unroute(dialsPath, hold);
  await both('connect');
  const agent = programs.start('flamewire-agent', '--listen', '--port', port);
  await page.locator('.wizard .dial', { hasText: 'a pairing code is needed' }).waitFor();
  // Enter the code that the agent printed. A mistyped code is reported.
  const code = /[0-9a-f]{16}-[0-9a-f]{32}/.exec(agent.text())[0];
  await address.fill(`${ownAddress}:${port}`);
  await pair.fill(code.slice(0, -1));
  await address.press('Enter');
  await shows(page, '.wizard [role=alert]', /16 digits/);
  // The message stays when the page polls the other dials.
  for (let poll = 0; poll < 2; ++poll)
    await page.waitForResponse((it) => it.request().method() === 'GET' && it.url().endsWith(dialsPath.slice(2)));
  await shows(page, '.wizard [role=alert]', /16 digits/);
  await pair.fill(code);
  await address.press('Enter');
  await page.locator('.wizard .dial-connected').waitFor();
  const { agents } = await api('/api/agents');
  assert.deepEqual(
    agents.map((entry) => entry.link),
    ['encrypted'],
  );
  await page.locator('.wizard-agents input:checked').waitFor();
});

step('the process is found by name, by keyboard alone', async () => {
  await page.locator('#wizard-next:not(:disabled)').focus();
  await page.keyboard.press('Enter');
  await at('process');
  await row(workload.pid).waitFor();
  assert.equal(await page.locator('#wizard-next').isDisabled(), true);
  // The digits of a pid may also be in command lines of other processes.
  await find('demo-workload 600.0625');
  await page.waitForFunction(() => document.querySelectorAll('.process-row[data-pid]').length === 1);
  await page.locator('.processes').focus();
  await page.keyboard.press('ArrowDown');
  await page.locator(`.process-row[data-pid="${workload.pid}"][aria-selected="true"]`).waitFor();
  const cpu = await row(workload.pid).locator('.cpu-text').textContent();
  assert.match(cpu, /^\d+\.\d$/);
  await both('process');
  await page.keyboard.press('Enter');
  await at('check');
});

step('the guide shows what works according to the agent', async () => {
  await page
    .locator('.finding-works', { hasText: `Process ${workload.pid} (demo-workload) can be profiled` })
    .waitFor();
  const { agents } = await api('/api/agents');
  const response = await fetch(new URL('/api/agent/command', server.url), {
    method: 'POST',
    body: JSON.stringify({ cmd: 'status' }),
  });
  const { capabilities } = await response.json();
  assert.equal(agents.length, 1);
  for (const finding of capabilities.findings.filter((one) => one.code !== 'event'))
    await page.locator('.finding', { hasText: finding.text }).first().waitFor();
  await page.click('#reprobe');
  await page.locator('#reprobe:not(:disabled)').waitFor();
  await page.locator('.finding-works', { hasText: 'Events: ' }).waitFor();
  await both('check');
});

step('binaries, sources and sysroot are chosen on the server', async () => {
  await next('files');
  await page.getByTitle('Choose on the server: Source folder').click();
  // The configured folder is outside the folders that may be listed: the picker says so and starts at the roots.
  await page
    .getByRole('button', { name: join(root, 'tests') })
    .first()
    .click();
  await page.locator('.picker-list button', { hasText: 'workloads' }).click();
  await page.locator('.crumbs', { hasText: 'workloads' }).waitFor();
  await both('files');
  await page.getByTitle('Take the folder that is shown').click();
  await page.waitForFunction(
    (wanted) => [...document.querySelectorAll('.settings input')].some((field) => field.value === wanted),
    join(root, 'tests/workloads'),
  );
  await next('options');
  const config = await api('/api/config');
  assert.equal(config.source_dir, join(root, 'tests/workloads'));
});

step('options, start, and a flame graph', async () => {
  await page.locator('input[name=frequency]').fill('199');
  await page.getByRole('checkbox', { name: 'cpu-clock' }).check();
  await both('options');
  await next('start');
  await page.locator('.wizard-summary', { hasText: '199 Hz' }).waitFor();
  await both('start');
  await page.click('#wizard-start');
  await page.locator('.wizard').waitFor({ state: 'detached' });
  await page.locator('.header .badge-live').waitFor();
  await waitFor(
    async () => (await frames(page).catch(() => [])).some((frame) => frame.name.startsWith('city::')),
    'frames of the workload',
    60,
  );
  recorded = (await api('/api/sessions')).sessions[0].id;
  await shot(page, 'guide-flame');
});

step('rate and process are changed during a session', async () => {
  await page.click('#change');
  await page.locator('.change-dialog input[name=frequency]').waitFor();
  assert.equal(await page.locator('#apply-change').isDisabled(), true);
  await page.locator('input[name=frequency]').fill('499');
  await page.locator('select[name=unwind]').selectOption('fp');
  await both('change');
  await page.click('#apply-change');
  await page.locator('.change-dialog').waitFor({ state: 'detached' });
  const marks = async () =>
    (await api(`/api/timeline?session=${recorded}&slices=200`)).marks.filter((mark) => mark.kind === 'change');
  const [first] = await waitFor(async () => ((await marks()).length > 0 ? marks() : null), 'the mark', 30);
  assert.match(first.name, /199 Hz became 499 Hz; stacks auto became fp/);

  await page.click('#change');
  await page.locator('#other-process').click();
  await find(String(other.pid));
  await row(other.pid).click();
  await page.getByTitle('Back to rate, events and stacks').click();
  await page.locator('.target-row', { hasText: String(other.pid) }).waitFor();
  // A refusal of the agent is shown in the dialog, and the recording continues.
  await page.locator('input[name=others]').fill('nosuch:event');
  await page.click('#apply-change');
  await shows(page, '.change-dialog [role=alert]', /^Nothing was changed: events: .*nosuch:event/);
  await page.locator('input[name=others]').fill('');
  await page.click('#apply-change');
  await waitFor(
    async () => (await api(`/api/functions?session=${recorded}&pid=${other.pid}`)).total.samples > 20,
    'samples of the other process',
    60,
  );
  const { sessions } = await api('/api/sessions');
  assert.deepEqual(
    sessions.map((session) => session.id),
    [recorded],
  );
  await shot(page, 'guide-changed');
});

step('a second process is added, and off-CPU time', async () => {
  await page.click('#change');
  await page.locator('#other-process').click();
  await find('workload 600');
  await row(workload.pid).locator('input').click();
  await page.getByTitle('Back to rate, events and stacks').click();
  await page
    .locator('.target-row', { hasText: `shares-workload (${other.pid}), demo-workload (${workload.pid})` })
    .waitFor();
  await page.getByRole('checkbox', { name: 'off-cpu' }).check();
  await both('change-several');
  await page.click('#apply-change');
  await page.locator('.change-dialog').waitFor({ state: 'detached' });
  const { pids, events } = await (
    await fetch(new URL('/api/agent/command', server.url), { method: 'POST', body: JSON.stringify({ cmd: 'status' }) })
  ).json();
  assert.deepEqual(pids, [other.pid, workload.pid]);
  assert.ok(events.includes('off-cpu') && events.includes('cpu-clock'), events.join());
});

step('the guide does not reopen on its own, opens from the header, and remembers the options', async () => {
  await page.click('#stop');
  await page.locator('.header .badge-ended').waitFor();
  await page.reload();
  await settled(page);
  assert.equal(await page.locator('.wizard').count(), 0);
  await page.click('#guide');
  await at('connect');
  await next('process');
  await row(workload.pid).waitFor();
  await find(String(workload.pid));
  await row(workload.pid).click();
  await next('check');
  await next('files');
  await next('options');
  assert.equal(await page.locator('input[name=frequency]').inputValue(), '199');
  await page.click('#wizard-skip');
  await page.locator('.wizard').waitFor({ state: 'detached' });
});
