// The page's memory during half an hour of a live session, in fast motion: the mock server sends the next batch when
// the page has shown the previous one, and the page's clock runs faster. The heap is measured after forced collections.
import { settled } from '../e2e/browser.mjs';

const smoke = process.env.FLAMEWIRE_BENCH_SMOKE === '1';
const MINUTES = smoke ? 2 : 30;
const WARM_UP = smoke ? 1 : 6;
const BATCH_MS = smoke ? 3000 : 250; // of session time; the agent's default
const FASTER = 40;
const NODES = 2000;
// Every minute, another view is opened for a while.
const VIEWS = ['functions', 'callers', 'threads', 'counters', 'modules', 'source'];

// Makes the timers and clocks of the page run faster, for context.addInitScript.
export function runFaster(times) {
  const { setTimeout: later, setInterval: every, requestAnimationFrame: frame } = window;
  const clock = performance.now.bind(performance);
  performance.now = () => clock() * times;
  window.setTimeout = (run, ms = 0, ...more) => later(run, ms / times, ...more);
  window.setInterval = (run, ms = 0, ...more) => every(run, Math.max(10, ms / times), ...more);
  window.requestAnimationFrame = (run) => frame((now) => run(now * times));
}

async function heap(client) {
  for (let i = 0; i < 3; i++) await client.send('HeapProfiler.collectGarbage');
  const { usedSize } = await client.send('Runtime.getHeapUsage');
  const { nodes, jsEventListeners } = await client.send('Memory.getDOMCounters');
  return { bytes: usedSize, nodes, listeners: jsEventListeners };
}

// {before, after, updates, version}: the heaps after the warm-up and at the end.
export async function streamForHalfAnHour(page, mock) {
  const client = await page.context().newCDPSession(page);
  await client.send('HeapProfiler.enable');
  await settled(page);
  const shownVersion = () => page.evaluate(() => window.__flamewire.state().dataVersion);
  let before = null;
  let updates = 0;
  for (let minute = 0; minute < MINUTES; minute++) {
    if (minute === WARM_UP) before = await heap(client);
    const other = VIEWS[minute % VIEWS.length];
    for (let ms = 0; ms < 60_000; ms += BATCH_MS) {
      mock.batch(BATCH_MS);
      updates++;
      // Another view is shown for the last tenth of a minute. The page requests at most every second batch.
      if (ms === 54_000) await page.click(`#tab-${other}`);
      if (ms < 54_000 && updates % 2 === 0) await page.waitForFunction((wanted) => window.__flamewire.state().dataVersion >= wanted, mock.state.version, { timeout: 60_000, polling: 'raf' });
      else if (ms >= 54_000) await page.waitForTimeout(15);
    }
    if (process.env.FLAMEWIRE_BENCH_VERBOSE) console.error(`minute ${minute + 1}`, new Date().toISOString(), await heap(client));
    await page.click('#tab-flame');
    await page.waitForFunction((wanted) => window.__flamewire.state().dataVersion >= wanted, mock.state.version, { timeout: 60_000 });
  }
  await settled(page);
  return { before, after: await heap(client), updates, version: await shownVersion() };
}

export async function measureMemory(withPage, result) {
  await withPage({ size: NODES, pruneShare: 0, hz: 0, before: runFaster, argument: FASTER }, `flame?plot=${encodeURIComponent('counter:task-clock')}`, async (page, mock) => {
    const { before, after, updates } = await streamForHalfAnHour(page, mock);
    const growth = (key) => (100 * (after[key] - before[key])) / before[key];
    const mib = (bytes) => (bytes / 2 ** 20).toFixed(1);
    result(
      `page: growth of the heap from ${WARM_UP} to ${MINUTES} min of live updates`, growth('bytes'), '%', 10,
      `${mib(before.bytes)} and ${mib(after.bytes)} MiB, after forced collections; ${updates} updates of ${NODES.toLocaleString('en-US')} nodes, each view opened in turn; DOM nodes ${before.nodes} and ${after.nodes}, listeners ${before.listeners} and ${after.listeners}`,
    );
  });
}
