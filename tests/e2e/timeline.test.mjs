// The time axis on a real recording of a program that parses, computes and sleeps for two seconds each and says when
// (tests/workloads/phases.cc): windows that are dragged on it show the right function and nothing else, live and in replay, and the
// counters fall where the program sleeps.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { frames, inspect, launch, openPage, settled } from './browser.mjs';
import { Programs, built, waitFor } from './programs.mjs';

const shots = process.env.FLAMEWIRE_SCREENSHOTS ?? '';
const PHASE_MS = 2000;
const ROUNDS = 2;
// A drag ends on a pixel, and samples have the time of their 10 ms.
const EDGE_MS = 150;

const programs = new Programs();
let browser;
let page;
let problems;
let server;
let recorded = '';
let startNs = 0n;
let phases = []; // {name, start, end} in ms since the session's start

before(async () => {
  browser = await launch();
  server = await programs.server();
});
after(async () => {
  await browser?.close();
  await programs.stop();
});

const axis = () => page.evaluate(() => window.__flamewire.timeline());
const api = async (path) => (await fetch(new URL(path, server.url))).json();

// Chooses the inner part of a phase by dragging.
async function drag(phase) {
  const box = await page.locator('#time-strip').boundingBox();
  const { span } = await axis();
  const x = (ms) => box.x + ((ms - span.from) / (span.to - span.from)) * box.width;
  await page.mouse.move(x(phase.start + EDGE_MS), box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(x(phase.end - EDGE_MS), box.y + box.height / 2, { steps: 4 });
  await page.mouse.up();
  await waitFor(async () => {
    const { start, end } = (await inspect(page)).view;
    return start !== null && Math.abs(start - phase.start - EDGE_MS) < 50 && Math.abs(end - phase.end + EDGE_MS) < 50;
  }, `the range of ${phase.name} at ${phase.start}`);
}

// Share of the flame graph's width in which a stack goes through the function.
async function purity(name) {
  const list = await frames(page);
  const all = list.find((frame) => frame.depth === 0);
  return (
    list.filter((frame) => frame.name.startsWith(`${name}(`)).reduce((sum, frame) => sum + frame.width, 0) / all.width
  );
}

async function checkWindow(phase) {
  await page.click('#tab-flame');
  await drag(phase);
  await page.waitForFunction(
    (end) => window.__flamewire.settled() && Math.abs(window.__flamewire.state().view.end - end) < 200,
    phase.end,
  );
  await settled(page);
  const share = await purity(`phase_${phase.name}`);
  assert.ok(share >= 0.97, `${(share * 100).toFixed(2)} % of the window is ${phase.name}`);
}

const utilized = async () =>
  Number((await page.locator('tr[data-counter="task-clock"]').textContent()).match(/([\d.]+) CPUs utilized/)?.[1]);

test('live: windows show the phase that they cover, and counters fall in the sleep', async () => {
  const agent = programs.start(
    'flamewire-agent',
    '--server',
    '127.0.0.1',
    '--port',
    server.agentPort,
    '--frequency',
    999,
    '--',
    built('phases-workload'),
    PHASE_MS / 1000,
    ROUNDS,
  );
  ({ page, problems } = await openPage(browser, server.url));
  await page.waitForFunction(() => window.__flamewire.state().sessionState === 'live', null);
  recorded = (await inspect(page)).session;
  await page.click('#tab-counters');
  await page.locator('tr[data-counter="task-clock"] .spark-button').click();

  const said = () =>
    [...agent.text().matchAll(/^(\d+) (parse|compute|sleep|end)$/gm)].map(([, ns, name]) => ({ ns: BigInt(ns), name }));
  await waitFor(() => said().length >= 4 && said(), 'the first round', 60);
  startNs = BigInt((await api(`/api/sessions/${recorded}`)).start_ns);
  phases = said()
    .slice(0, 4)
    .map(({ ns, name }) => ({ name, start: Number(ns - startNs) / 1e6 }));
  phases.forEach((phase, i) => (phase.end = phases[i + 1]?.start));
  phases.length = 3;
  await waitFor(async () => (await axis()).end > phases[2].end + 1000, 'all of the first round on the axis');
  assert.ok((await axis()).follows);
  // The first round, standing still while more comes in: an axis that moves below the pointer is not for exact times.
  await page.evaluate((end) => (location.hash += `&axis=0-${end}`), Math.ceil(phases[2].end) + 300);
  await waitFor(async () => !(await axis()).follows, 'an axis that stands');

  await checkWindow(phases[0]);
  await checkWindow(phases[1]);
  await page.click('#tab-counters');
  // How much of a CPU it gets depends on what else runs here: its samples show that, too. Readings reach beyond the window.
  const { view } = await inspect(page);
  const { total } = await api(`/api/flamegraph?session=${recorded}&start=${view.start}&end=${view.end}`);
  const sampled = total.weight / 1e6 / (view.end - view.start);
  assert.ok(sampled > 0, JSON.stringify(total));
  const computing = await waitFor(
    async () => (await utilized()) > 0.5 * sampled && utilized(),
    async () =>
      `a clock that runs while it computes, for ${sampled} of a CPU by its samples; ${await page.locator('tr[data-counter="task-clock"]').textContent()}`,
  );
  await drag(phases[2]);
  // Readings are half a second apart: one that lies partly in the next phase can belong to this one.
  await waitFor(async () => (await utilized()) < 0.15 * computing, 'a clock that stands while it sleeps');

  // The line on the axis: intervals of the counter lie across phases, so only those that lie in one are compared.
  const { lines, samples, start, slice } = await axis();
  const within = (phase) =>
    lines[0].value.filter(
      (value, i) => value !== null && lines[0].time[i] > phase.start && (lines[0].time[i + 1] ?? Infinity) < phase.end,
    );
  const busy = within(phases[1]);
  const idle = within(phases[2]);
  assert.ok(busy.length >= 1 && idle.length >= 1, `${busy.length} and ${idle.length} readings`);
  assert.ok(Math.max(...idle) < 0.1 * Math.min(...busy), `${idle} against ${busy}`);
  // So does the density.
  const counted = (phase) =>
    samples.reduce(
      (sum, n, i) =>
        sum + (start + i * slice > phase.start + EDGE_MS && start + (i + 1) * slice < phase.end - EDGE_MS ? n : 0),
      0,
    );
  assert.ok(
    counted(phases[0]) > 20 && counted(phases[2]) <= 2,
    `${counted(phases[0])} and ${counted(phases[2])} samples`,
  );
  if (shots) {
    mkdirSync(shots, { recursive: true });
    await page.screenshot({ path: join(shots, 'timeline-phases-dark.png') });
  }
  assert.deepEqual(problems, []);
});

test('replay: the same windows', async () => {
  await waitFor(async () => (await api(`/api/sessions/${recorded}`)).state === 'ended', 'the end of the program', 60);
  await page.goto(`${server.url}#flame?session=${recorded}`);
  await page.reload();
  await settled(page);
  const { marks, end } = await waitFor(async () => (await axis()).samples.length > 0 && axis(), 'the axis');
  assert.ok(end > 3 * ROUNDS * PHASE_MS);
  assert.ok(
    marks.some((mark) => mark.kind === 'exec' && mark.name.startsWith('phases-workloa')),
    JSON.stringify(marks),
  );
  assert.ok(
    marks.some((mark) => mark.kind === 'exit'),
    JSON.stringify(marks),
  );
  for (const phase of phases.slice(0, 2)) await checkWindow(phase);
  assert.deepEqual(problems, []);
});
