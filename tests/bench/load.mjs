// The time from choosing a file of folded stacks to its flame graph on the screen, for Flamewire and for speedscope, in
// turns in one Chromium. Prints a JSON array like page.mjs. Uses wall time, because both also work in other processes.
import { createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launch, openPage, speedscope } from '../e2e/browser.mjs';
import { Programs } from '../e2e/programs.mjs';
import { serveFolder } from '../e2e/serve_folder.mjs';

// FLAMEWIRE_BENCH_SMOKE=1: one run with a small file.
const smoke = process.env.FLAMEWIRE_BENCH_SMOKE === '1';
const STACKS = smoke ? 1_050 : 105_000;
const NODES = smoke ? 1_000 : 100_000;
const TURNS = smoke ? 1 : 5;

// Stacks in random order, of a tree of NODES calls of functions with names of 60 characters.
async function writeFolded(path) {
  let seed = 7;
  const random = (below) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  const name = (id) => `space::module_${id % 37}::Class${id}::method_${id}<Type, Allocator>::call(int)${'x'.repeat(60)}`.slice(0, 60);
  const parent = [-1];
  const label = [0];
  const depth = [0];
  for (let node = 1; node < NODES; node++) {
    let above = random(10) < 7 ? Math.max(0, node - 3000) + random(Math.min(node, 3000)) : random(node);
    while (depth[above] > 60) above = parent[above];
    parent.push(above);
    label.push(random(20_000));
    depth.push(depth[above] + 1);
  }
  const order = Array.from({ length: STACKS }, (_, i) => (i < NODES - 1 ? i + 1 : 1 + random(NODES - 1)));
  for (let i = order.length - 1; i > 0; i--) {
    const other = random(i + 1);
    [order[i], order[other]] = [order[other], order[i]];
  }
  const out = createWriteStream(path);
  for (const leaf of order) {
    const stack = [];
    for (let node = leaf; node > 0; node = parent[node]) stack.push(name(label[node]));
    if (!out.write(`${stack.reverse().join(';')} ${1 + random(99)}\n`)) await new Promise((go) => out.once('drain', go));
  }
  await new Promise((done) => out.end(done));
}

const painted = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));

// Milliseconds from the choice of the file until `there()` holds in the page and is painted.
async function time(page, input, file, there) {
  await page.evaluate((selector) => document.querySelector(selector).addEventListener('change', () => (window.chosenAt = performance.now()), { capture: true, once: true }), input);
  await page.setInputFiles(input, file);
  await page.waitForFunction((holds) => holds(), there, { polling: 'raf', timeout: 120_000 });
  await painted(page);
  return page.evaluate(() => performance.now() - window.chosenAt);
}

const middle = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

const theirs = await serveFolder(speedscope());
const folder = mkdtempSync(join(tmpdir(), 'flamewire-load-'));
const file = join(folder, 'profile.folded');
const programs = new Programs();
const browser = await launch();
try {
  await writeFolded(file);
  const server = await programs.server();
  const times = { ours: [], theirs: [] };
  for (let turn = 0; turn < TURNS; turn++) {
    const { page, context } = await openPage(browser, `${server.url}#sessions`);
    await page.locator('input[type=file]').first().waitFor({ state: 'attached' });
    // The page showed the list of sessions before, so the first picture is that of the file.
    const shown = await page.evaluateHandle(() => () => location.hash.startsWith('#flame') && document.querySelector('canvas') && window.__flamewire.settled() && window.__flamewire.frames().length > 100);
    times.ours.push(await time(page, '.toolbar input[type=file]', file, shown));
    await context.close();
    const other = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const theirPage = await other.newPage();
    await theirPage.goto(theirs.url);
    await theirPage.locator('#file').waitFor({ state: 'attached' });
    // The bar with the views appears together with the profile.
    const there = await theirPage.evaluateHandle(() => () => document.body.innerText.includes('Left Heavy') && document.querySelector('canvas') && document.title.includes('profile'));
    times.theirs.push(await time(theirPage, '#file', file, there));
    await other.close();
  }
  const ratio = middle(times.ours) / middle(times.theirs);
  console.log(JSON.stringify([{
    figure: 'page: from a file of 105,000 folded stacks to its flame graph, against speedscope', value: ratio, unit: 'x', bar: 0.33,
    note: `median of ${TURNS}: ${(middle(times.ours) / 1000).toFixed(2)} s, including upload and import, against ${(middle(times.theirs) / 1000).toFixed(2)} s; ${NODES} nodes, ${Math.round(statSync(file).size / 1e6)} MB`,
  }]));
} finally {
  await browser.close();
  await programs.stop();
  theirs.close();
  rmSync(folder, { recursive: true, force: true });
}
