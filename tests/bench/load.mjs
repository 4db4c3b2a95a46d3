// From a file of folded stacks to its flame graph on the screen: our page and server, and speedscope's page, in one Chromium, in turns.
// Prints a JSON array like page.mjs. By the clock, from the choice of the file: both read it in other processes than the page's too.
import { createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launch, openPage, speedscope } from '../e2e/browser.mjs';
import { Programs } from '../e2e/programs.mjs';
import { serveFolder } from '../e2e/serve_folder.mjs';

// FLAMEWIRE_BENCH_SMOKE=1: the same path with a small file, once.
const smoke = process.env.FLAMEWIRE_BENCH_SMOKE === '1';
const STACKS = smoke ? 1_050 : 105_000;
const NODES = smoke ? 1_000 : 100_000;
const TURNS = smoke ? 1 : 5;

// A tree of NODES functions calls with names of 60 characters, as stacks in no order.
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
    // The page was on its list of sessions: the first picture is the file's.
    const shown = await page.evaluateHandle(() => () => location.hash.startsWith('#flame') && document.querySelector('canvas') && window.__flamewire.settled() && window.__flamewire.frames().length > 100);
    times.ours.push(await time(page, '.toolbar input[type=file]', file, shown));
    await context.close();
    const other = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const theirPage = await other.newPage();
    await theirPage.goto(theirs.url);
    await theirPage.locator('#file').waitFor({ state: 'attached' });
    // The bar with the views stands there when the profile does.
    const there = await theirPage.evaluateHandle(() => () => document.body.innerText.includes('Left Heavy') && document.querySelector('canvas') && document.title.includes('profile'));
    times.theirs.push(await time(theirPage, '#file', file, there));
    await other.close();
  }
  const ratio = middle(times.ours) / middle(times.theirs);
  console.log(JSON.stringify([{
    figure: 'page: a file of 105,000 folded stacks to its flame graph, against speedscope', value: ratio, unit: 'x', bar: 0.33,
    note: `median of ${TURNS}: ${(middle(times.ours) / 1000).toFixed(2)} s, upload and the server's reading included, against ${(middle(times.theirs) / 1000).toFixed(2)} s; ${NODES} nodes, ${Math.round(statSync(file).size / 1e6)} MB`,
  }]));
} finally {
  await browser.close();
  await programs.stop();
  theirs.close();
  rmSync(folder, { recursive: true, force: true });
}
