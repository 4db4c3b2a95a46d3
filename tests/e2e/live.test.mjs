// A real recording as a person sees it: the page in Chromium, the real server, a real agent and the demo workload.
// Its stages use known shares of each worker's time (tests/workloads/demo.cc): traffic 45 %, weather 30 %, render 25 %.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Check } from './bounds.mjs';
import { frames, inspect, launch, openPage, settled, shot, shows } from './browser.mjs';
import { steps } from './pages.mjs';
import { Programs, root, waitFor } from './programs.mjs';

const updateImages = process.env.FLAMEWIRE_UPDATE_SCREENSHOTS === '1';
const demoSource = readFileSync(join(root, 'tests/workloads/demo.cc'), 'utf8').split('\n');

const KNOWN = new Check('shares that the workload takes by its CPU clock', { times: 3 });
const programs = new Programs();
let browser;
let server;
let agent;
let page;
let opened;
let recorded = ''; // the session's id

const api = async (path) => {
  const response = await fetch(new URL(path, server.url));
  return { status: response.status, body: await response.json() };
};
const named = (list, name) => list.filter((frame) => frame.name.startsWith(`city::${name}(`));
const widthOf = (list, name) => named(list, name).reduce((sum, frame) => sum + frame.width, 0);
const clickFrame = async (frame) => {
  const box = await page.locator('.flame-canvas').boundingBox();
  await page.mouse.click(box.x + frame.x + Math.min(frame.width / 2, 60), box.y + frame.y + frame.height / 2);
};
const step = steps(
  programs,
  () => opened?.problems ?? [],
  () => shot(page, 'failed'),
);

before(async () => {
  browser = await launch();
  server = await programs.server();
});
after(async () => {
  await browser?.close();
  await programs.stop();
});

step('without an agent the page shows the command for a target', async () => {
  opened = await openPage(browser, server.url, { theme: 'dark' });
  page = opened.page;
  await page.getByText('Connect a target').waitFor();
  const line = await page.textContent('.copy-line code');
  assert.match(line, /flamewire-agent --server \S+/);
  assert.ok(line.includes(String(server.agentPort)), line);
  await shot(page, 'start-dark');
});

step('an agent connects and a process is chosen from the list', async () => {
  const workload = programs.start('demo-workload', 0);
  agent = programs.start('flamewire-agent', '--server', '127.0.0.1', '--port', server.agentPort);
  await page.getByText('What do you want to profile?').waitFor();
  await page.getByRole('button', { name: 'Choose a process' }).click();
  await page.locator('.process-row[data-pid]').first().waitFor();
  await page.fill('dialog [data-search]', 'demo-workload');
  const row = page.locator(`.process-row[data-pid="${workload.pid}"]`);
  await row.waitFor();
  // Its share of a CPU depends on what else runs on this machine.
  await page.waitForFunction(
    (pid) => Number(document.querySelector(`.process-row[data-pid="${pid}"] .cpu-text`)?.textContent) > 1,
    workload.pid,
  );
  await row.click();
  await page.click('#options');
  await page.fill('dialog input[name=frequency]', '1999');
  await page.click('#options');
  await shot(page, 'process-picker-dark');
  await page.click('#start');
  await page.waitForFunction(() => window.__flamewire.state().sessionState === 'live', null);
  recorded = (await inspect(page)).session;
});

step('the workload is on the canvas with its known shares', async () => {
  await waitFor(async () => (await api(`/api/sessions/${recorded}`)).body.samples > 4000, '4,000 samples', 60);
  await page.evaluate(() => document.querySelector('[aria-label="Freeze what is shown (F)"]').click());
  await settled(page);
  const list = await frames(page);
  const canvas = (await page.locator('.flame-canvas').boundingBox()).width;
  const share = (name) => widthOf(list, name) / canvas;
  // The shares are of simulate_round(): starting threads and the logger take the rest. Boxes are drawn to the pixel.
  const near = (name, wanted) =>
    KNOWN.share(
      share(name) / share('simulate_round'),
      Math.floor(4000 * share('simulate_round')),
      wanted,
      1 / canvas,
      name,
    );
  near('stage_traffic', 0.45);
  near('stage_weather', 0.3);
  // This stage calls libc, which has no frame pointers.
  near('stage_render', 0.25);
  assert.ok(share('simulate_round') > share('stage_traffic') + share('stage_weather') + share('stage_render') - 0.001);
  assert.ok(
    named(list, 'stage_traffic').every((frame) => frame.module.includes('demo-workload') && frame.kind === 'user'),
  );
  await shot(page, 'flame-dark');
  if (updateImages) {
    const frame = named(list, 'visit_quadrant').sort((a, b) => b.width - a.width)[3];
    const box = await page.locator('.flame-canvas').boundingBox();
    await page.mouse.move(box.x + frame.x + frame.width / 2, box.y + frame.y + frame.height / 2);
    await page.locator('.card').waitFor();
    // Screenshots must not contain the path of the sources on this machine.
    await page
      .locator('.card')
      .evaluate((card, folder) => (card.innerHTML = card.innerHTML.replaceAll(folder, '')), root);
    mkdirSync(join(root, 'docs/images'), { recursive: true });
    await page.screenshot({ path: join(root, 'docs/images/flamegraph-dark.png') });
  }
});

step('each process, thread or CPU has a root frame when it is grouped by', async () => {
  const canvas = (await page.locator('.flame-canvas').boundingBox()).width;
  const roots = async (group) => {
    await page.selectOption('#group-by', group);
    // The picture of the previous grouping stays until this one has arrived.
    await page.waitForFunction(
      (wanted) =>
        window.__flamewire.settled() &&
        window.__flamewire.frames().some((frame) => frame.kind === 'group') === (wanted !== 'none'),
      group,
    );
    await settled(page);
    const list = (await frames(page)).filter((frame) => frame.kind === 'group');
    const width = list.reduce((sum, frame) => sum + frame.width, 0);
    assert.ok(group === 'none' || Math.abs(width - canvas) < 2, `${group}: ${width} of ${canvas}`);
    return list.map((frame) => frame.name);
  };
  const { threads } = (await api(`/api/thread-summary?session=${recorded}`)).body;
  assert.deepEqual(await roots('process'), [`demo-workload (${threads[0].pid})`]);
  assert.match(await page.evaluate(() => location.hash), /each=process/);
  await shot(page, 'grouped');
  await roots('none');
  const busy = threads
    .filter((thread) => thread.share > 0.05 || thread.percent > 5)
    .map((thread) => `${thread.comm} (${thread.tid})`);
  const shown = await roots('thread');
  assert.ok(shown.length >= 2 && busy.every((name) => shown.includes(name)), `${shown} ${busy}`);
  await roots('none');
  for (const name of await roots('cpu')) assert.match(name, /^CPU \d+$/);
  await roots('none');
});

step('the status bar shows samples, losses, unresolved addresses, rate, cost and latency', async () => {
  const number = async (id) => Number((await page.textContent(id)).replace(/[^\d.]/g, ''));
  await waitFor(async () => (await number('#status-samples')) > 4000, 'the samples of some seconds', 60);
  await shows(page, '#status-lost', /\d \(\S+ %\)/);
  await shows(page, '#status-unresolved', /\d %/);
  await shows(page, '#status-rate', /\d+(\.\d+)?( k)?\/s/);
  await shows(page, '#status-agent', /\d %/);
  await shows(page, '#status-latency', /\d (ms|µs|s)/);
  await page.click('#status-lost');
  await page.getByText('Lost samples').waitFor();
  await page.keyboard.press('Escape');
  await shows(page, '#status-stacks', /^Stacks auto: \S+( \+ \S+)* · (all|99\.\d %) whole/);
  await page.click('#status-stacks');
  const row = await page.textContent('#stacks-panel [data-pid]');
  assert.match(row, /^demo-workload \d+(hybrid|dwarf).+[\d,]+ stacks: (all|99\.\d %) whole.*; \d+ frames a stack/);
  await shot(page, 'stacks-live-dark');
  await page.keyboard.press('Escape');
});

step('a search gives the share of the stacks that match', async () => {
  await page.keyboard.press('/');
  await page.keyboard.type('visit_quadrant');
  await page.locator('#matched').waitFor();
  const shared = await page.evaluate(() => window.__flamewire.matchedShare());
  const list = await frames(page);
  // It recurses. The outermost frames are those that no other frame of it contains.
  const hits = named(list, 'visit_quadrant');
  const outermost = hits.filter(
    (a) => !hits.some((b) => b.depth < a.depth && b.x <= a.x + 0.01 && b.x + b.width >= a.x + a.width - 0.01),
  );
  const canvas = await page.locator('.flame-canvas').boundingBox();
  const drawn = outermost.reduce((sum, frame) => sum + frame.width, 0) / canvas.width;
  assert.ok(hits.length > outermost.length, 'visit_quadrant does not recurse');
  assert.ok(shared > 0.1 && shared < 0.45, `visit_quadrant is in ${shared} of the stacks`);
  assert.ok(Math.abs(shared - drawn) < 0.02, `shown ${shared}, drawn ${drawn}`);
  await page.keyboard.press('Enter');
  await shows(page, '#matched', /^\S+ %\s*matched\s*1 \/ \d/);
  await shot(page, 'search-dark');
});

step('a click zooms, and a reload keeps zoom, search and theme', async () => {
  await page.evaluate(() => document.querySelector('.search-clear').click());
  await clickFrame(named(await frames(page), 'stage_weather')[0]);
  await page.waitForFunction(() => window.__flamewire.zoomPath().at(-1)?.includes('stage_weather'));
  await settled(page);
  const canvas = await page.locator('.flame-canvas').boundingBox();
  assert.ok(Math.abs(widthOf(await frames(page), 'stage_weather') - canvas.width) < 2);
  await page.fill('.main [data-search]', 'diffuse|sin|libm');
  await page.click('#theme');
  const before_ = { path: await page.evaluate(() => window.__flamewire.zoomPath()), url: page.url() };
  await page.reload();
  await settled(page);
  assert.equal(page.url(), before_.url);
  assert.deepEqual(await page.evaluate(() => window.__flamewire.zoomPath()), before_.path);
  assert.equal(await page.inputValue('.main [data-search]'), 'diffuse|sin|libm');
  assert.equal((await inspect(page)).theme, 'light');
  assert.equal((await inspect(page)).session, recorded);
  assert.ok(
    (await page.evaluate(() => window.__flamewire.matchedShare())) > 0.8,
    'both cover nearly all of stage_weather',
  );
  await shot(page, 'zoom-light');
  await page.keyboard.press('Escape');
  await page.click('#theme');
  await page.evaluate(() => document.querySelector('.search-clear').click());
  await page.click('.crumbs button >> nth=0');
  await page.waitForFunction(() => window.__flamewire.zoomPath().length === 0);
});

step('functions are sorted by their own weight and lead to the source', async () => {
  await page.click('#tab-functions');
  await page.locator('.functions .function-row:not(.row-head)').first().waitFor();
  const names = await page.locator('.functions .cell-name .ellipsis').allTextContents();
  assert.ok(
    names.some((name) => name.includes('diffuse')),
    names.join('\n'),
  );
  await shot(page, 'functions-dark');
  await page.fill('.main [data-search]', 'diffuse');
  await page.locator('.functions .function-row:not(.row-head)', { hasText: 'diffuse' }).first().dblclick();
  await page.waitForFunction(() => location.hash.startsWith('#source') && location.hash.includes('demo.cc'));
});

step('the hottest line of the source is in a hot loop', async () => {
  await page.locator('.source-line[data-line]').first().waitFor();
  await page.locator('.toolbar').getByRole('button', { name: 'Hottest' }).click();
  const hash = new URLSearchParams(new URL(page.url()).hash.split('?')[1]);
  const line = Number(hash.get('line'));
  const row = page.locator(`.source-line[data-line="${line}"]`);
  await row.waitFor();
  assert.equal((await row.textContent()).trim(), demoSource[line - 1].trim());
  // A line in the body of a hot loop: the diffusion, the walk over the cars, the sorting or the filling of a crossing.
  const begin = demoSource.findIndex((text) => text.includes('inline double distance'));
  const end = demoSource.findIndex((text) => text.includes('void simulate_round'));
  assert.ok(line > begin && line < end, `line ${line}: ${demoSource[line - 1]}`);
  const { body } = await api(`/api/source?session=${recorded}&file=${encodeURIComponent(hash.get('file'))}`);
  const share = (number) => body.lines.find((entry) => entry.line === number).percent;
  const hottest = [...body.lines].sort((a, b) => b.weight - a.weight)[0];
  assert.ok(hottest.percent - share(line) < 1.5, `line ${hottest.line} against ${line}`);
});

step('source lines and instructions are side by side and lead to each other', async () => {
  const rows = page.locator('.assembly-row[data-address]');
  await rows.first().waitFor();
  // At least one instruction of the hottest line is marked and has self weight.
  await page.locator('.assembly-row.row-linked .source-bar').first().waitFor();
  const linked = page.locator('.assembly-row.row-linked').first();
  const address = await linked.getAttribute('data-address');
  await linked.click();
  await page.waitForFunction((at) => location.hash.includes(`at=0x${at}`), address);
  await page.locator('.source-line.line-chosen').first().waitFor();
  await shot(page, 'source-dark');
});

step('a thread is a filter', async () => {
  await page.click('#tab-threads');
  const row = page.locator('.thread-row:not(.row-head)', { hasText: 'city-1' });
  await row.waitFor();
  await shot(page, 'threads-dark');
  await row.getByRole('checkbox').check();
  await page.locator('.chip', { hasText: 'city-1' }).waitFor();
  await page.click('#tab-flame');
  await settled(page);
  const { body } = await api(`/api/flamegraph?session=${recorded}`);
  const some = (await inspect(page)).total;
  assert.ok(some > 0.3 * body.total.weight && some < 0.65 * body.total.weight, `${some} of ${body.total.weight}`);
  await page.locator('.chip .chip-clear').click();
  await page.waitForFunction((weight) => window.__flamewire.state().total > weight * 1.5, some);
});

step('counters and health are those of the target', async () => {
  await page.click('#tab-counters');
  const clock = page.locator('tr[data-counter="task-clock"]');
  await clock.waitFor();
  const utilized = async () => Number((await clock.textContent()).match(/([\d.]+) CPUs utilized/)?.[1]);
  const { body } = await api(`/api/counters?session=${recorded}`);
  const counted = body.groups[0].counters.find((counter) => counter.name === 'task-clock');
  assert.ok(Math.abs((await utilized()) - counted.derived[0].value) < 0.3, `${await utilized()}`);
  assert.match(await page.locator('tr[data-counter="context-switches"]').textContent(), /\d/);
  await page.locator('[data-health="CPU"]').waitFor();
  await shot(page, 'counters-dark');
  await page.getByRole('button', { name: 'By thread' }).click();
  await page.locator('.counter-group', { hasText: 'city-1' }).waitFor();
  assert.equal(await page.locator('.spark-button').count(), 0, 'the axis must show the whole target, not one thread');
  await shot(page, 'counters-by-thread-dark');
  await page.getByRole('button', { name: 'Stop counting by thread and CPU' }).click();
  await clock.waitFor();
  await page.click('#tab-flame');
  await settled(page);
});

step('brushing the time strip filters every view', async () => {
  const strip = await page.locator('#time-strip').boundingBox();
  const y = strip.y + strip.height / 2;
  await page.mouse.move(strip.x + strip.width * 0.25, y);
  await page.mouse.down();
  await page.mouse.move(strip.x + strip.width * 0.5, y, { steps: 5 });
  await page.mouse.up();
  await page.locator('.chip').waitFor();
  await page.waitForFunction(() => location.hash.includes('start='));
  await settled(page);
  const some = (await inspect(page)).total;
  const { body } = await api(`/api/flamegraph?session=${recorded}`);
  assert.ok(some > 0 && some < 0.5 * body.total.weight, `${some} of ${body.total.weight}`);
  await page.locator('#time-strip').dblclick();
  await page.waitForFunction(() => !location.hash.includes('start='));
});

step('pause, resume and stop', async () => {
  await page.click('#pause');
  await page.locator('.header .badge-paused').waitFor();
  await page.click('#resume');
  await page.locator('.header .badge-live').waitFor();
  await page.click('#stop');
  await page.locator('.header .badge-ended').waitFor();
  await settled(page);
  assert.ok((await frames(page)).length > 10, 'the recorded frames must stay in view');
});

step('a session is replayed and deleted from the list', async () => {
  await page.click('#tab-sessions');
  const row = page.locator(`tr[data-session="${recorded}"]`);
  await row.waitFor();
  await shot(page, 'sessions-dark');
  await row.getByRole('button', { name: 'Replay' }).click();
  await page.waitForFunction((id) => location.hash.includes(encodeURIComponent(id)), recorded);
  await settled(page);
  const replayed = await frames(page);
  assert.ok(widthOf(replayed, 'stage_traffic') / widthOf(replayed, 'stage_weather') > 1.2);
  const { body } = await api(`/api/flamegraph?session=${recorded}`);
  assert.equal((await inspect(page)).total, body.total.weight);
  const svg = await page.request.get(new URL(`/api/export/flamegraph?session=${recorded}`, server.url).href);
  assert.match(await svg.text(), /<svg[\s\S]*stage_traffic/);
  await page.click('#tab-sessions');
  await row.getByRole('button', { name: /^Delete/ }).click();
  await page.click('#confirm-delete');
  await row.waitFor({ state: 'detached' });
  assert.equal((await api(`/api/sessions/${recorded}`)).status, 404);
  assert.equal(agent.child.exitCode, null, 'the agent must wait for the next target');
});
