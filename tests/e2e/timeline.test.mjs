// The time axis of a real recording of a program that parses, computes and sleeps for two seconds each, and prints
// when (tests/workloads/phases.cc). Ranges dragged on the axis show only the right function, live and in replay. The
// counters drop while the program sleeps.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { frames, inspect, launch, openPage, settled, shot } from './browser.mjs';
import { Programs, built, waitFor } from './programs.mjs';

const PHASE_MS = 2000;
const ROUNDS = 2;
// A drag has the precision of a pixel, and the time of a sample that of its 10 ms bucket.
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

// Selects the inner part of a phase by dragging.
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

// The share of the flame graph's width whose stacks contain the function.
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
  assert.ok(share >= 0.97, `${(share * 100).toFixed(2)} % of the range is ${phase.name}`);
}

const utilized = async () =>
  Number((await page.locator('tr[data-counter="task-clock"]').textContent()).match(/([\d.]+) CPUs utilized/)?.[1]);

test('live: ranges show the phase that they cover, and counters drop during the sleep', async () => {
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

  const printed = () =>
    [...agent.text().matchAll(/^(\d+) (parse|compute|sleep|end)$/gm)].map(([, ns, name]) => ({ ns: BigInt(ns), name }));
  await waitFor(() => printed().length >= 4 && printed(), 'the first round', 60);
  startNs = BigInt((await api(`/api/sessions/${recorded}`)).start_ns);
  phases = printed()
    .slice(0, 4)
    .map(({ ns, name }) => ({ name, start: Number(ns - startNs) / 1e6 }));
  phases.forEach((phase, i) => (phase.end = phases[i + 1]?.start));
  phases.length = 3;
  await waitFor(async () => (await axis()).end > phases[2].end + 1000, 'all of the first round on the axis');
  assert.ok((await axis()).follows);
  // Fixes the axis to the first round while more data arrive: dragging to exact times needs an axis that does not move.
  await page.evaluate((end) => (location.hash += `&axis=0-${end}`), Math.ceil(phases[2].end) + 300);
  await waitFor(async () => !(await axis()).follows, 'an axis that does not move');

  await checkWindow(phases[0]);
  await checkWindow(phases[1]);
  await page.click('#tab-counters');
  // Its share of a CPU depends on what else runs on this machine, so compare with its samples. Readings extend beyond
  // the range.
  const { view } = await inspect(page);
  const { total } = await api(`/api/flamegraph?session=${recorded}&start=${view.start}&end=${view.end}`);
  const sampled = total.weight / 1e6 / (view.end - view.start);
  assert.ok(sampled > 0, JSON.stringify(total));
  const computing = await waitFor(
    async () => (await utilized()) > 0.5 * sampled && utilized(),
    async () =>
      `a task clock above half of its samples (${sampled} CPUs) while it computes; ${await page.locator('tr[data-counter="task-clock"]').textContent()}`,
  );
  await drag(phases[2]);
  // Readings are half a second apart, so one of this range can lie partly in the next phase.
  await waitFor(async () => (await utilized()) < 0.15 * computing, 'a task clock that stops while it sleeps');

  // The line on the axis. Intervals of the counter can span phases, so compare only those within one phase.
  const { lines, samples, start, slice } = await axis();
  const within = (phase) =>
    lines[0].value.filter(
      (value, i) => value !== null && lines[0].time[i] > phase.start && (lines[0].time[i + 1] ?? Infinity) < phase.end,
    );
  const busy = within(phases[1]);
  const idle = within(phases[2]);
  assert.ok(busy.length >= 1 && idle.length >= 1, `${busy.length} and ${idle.length} readings`);
  assert.ok(Math.max(...idle) < 0.1 * Math.min(...busy), `${idle} against ${busy}`);
  // The sample density also drops during the sleep.
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
  await shot(page, 'timeline-phases-dark');
  assert.deepEqual(problems, []);
});

test('replay: the same ranges', async () => {
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
