// Measures the page in Chromium with generated profiles (tests/e2e/mock_server.mjs), for `./dev bench page`. Prints a
// JSON array of {figure, value, unit, bar, note}. Times are CPU time of the page's main thread, and of its worker if it
// draws, from the input until the result is painted.
import { launch, openPage, settled } from '../e2e/browser.mjs';
import { SESSION, startMock } from '../e2e/mock_server.mjs';
import { measureMemory } from './page_memory.mjs';
import { mainThread } from './main_thread.mjs';
import { workerClock } from './worker_thread.mjs';

// FLAMEWIRE_BENCH_SMOKE=1: runs everything with little input, and measures nothing.
const smoke = process.env.FLAMEWIRE_BENCH_SMOKE === '1';
const either = (measured, little) => (smoke ? little : measured);
const dist = process.env.FLAMEWIRE_WEB_DIST;
// zoom, live, functions, source or memory: only that part.
const only = process.argv[2];
const isWanted = (part) => !only || only === part;
const results = [];
const result = (figure, value, unit, bar, note = '') => results.push({ figure, value, unit, bar, note });
const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];

async function withPage(options, hash, body) {
  const { before, argument, ...mocked } = options;
  const mock = await startMock({ dist, notices: false, ...mocked });
  const context = before && (await browser.newContext({ colorScheme: 'dark', viewport: { width: 1440, height: 900 }, deviceScaleFactor: 1 }));
  await context?.addInitScript(before, argument);
  const opened = await openPage(browser, `${mock.url}#${hash}`, { context });
  try {
    await body(opened.page, mock);
    if (opened.problems.length > 0) throw new Error(opened.problems.join('\n'));
  } finally {
    await opened.context.close();
    await mock.stop();
  }
}

// CPU time of the page's main thread, without other processes on the machine.
async function threadClock(page) {
  const client = await page.context().newCDPSession(page);
  await client.send('Performance.enable', { timeDomain: 'threadTicks' });
  return async (name = 'TaskDuration') => {
    const { metrics } = await client.send('Performance.getMetrics');
    return 1000 * metrics.find((metric) => metric.name === name).value;
  };
}

// Does `act` `count` times, and waits each time until the result is painted. Returns CPU times and wall times,
// ascending.
async function costs(page, act, count, pause = 0) {
  const main = await threadClock(page);
  const draws = act === 'zoom' || act === 'pan';
  const worker = draws ? workerClock() : () => 0;
  const clock = async () => (await main()) + worker();
  const cpu = [];
  const wall = [];
  for (let i = 0; i < count; i++) {
    const before = await clock();
    wall.push(
      await page.evaluate(
        async ([what, turn, draws]) => {
          const start = performance.now();
          if (what === 'filter') {
            const field = document.querySelector('.main [data-search]');
            field.value = ['vis', 'visit_w', 'render', 'e_5', 'World&, unsigned', ''][turn % 6];
            field.dispatchEvent(new InputEvent('input', { bubbles: true }));
          } else if (what === 'sort') {
            const heads = [...document.querySelectorAll('.row-head .sort')];
            heads[turn % heads.length].click();
          } else {
            const canvas = document.querySelector('.flame-canvas');
            const box = canvas.getBoundingClientRect();
            const wheel = what === 'zoom' ? { deltaY: turn % 60 < 30 ? -60 : 60, ctrlKey: true } : { deltaY: turn % 40 < 20 ? 40 : -40, shiftKey: true };
            canvas.dispatchEvent(new WheelEvent('wheel', { ...wheel, bubbles: true, cancelable: true, clientX: box.left + box.width * 0.4, clientY: box.top + 100 }));
          }
          // The message arrives when the frame is painted and the thread is idle again.
          await new Promise((done, failed) => {
            const late = setTimeout(() => failed(new Error(`no frame was painted 60 s after ${what} ${turn}`)), 60_000);
            requestAnimationFrame(() => {
              const channel = new MessageChannel();
              channel.port1.onmessage = () => {
                clearTimeout(late);
                done();
              };
              channel.port2.postMessage(0);
            });
          });
          // Wait until the worker has drawn it.
          while (draws && !window.__flamewire.settled()) {
            if (performance.now() - start > 120_000) throw new Error(`the worker has not drawn ${what} ${turn} for 120 s`);
            await new Promise((done) => setTimeout(done));
          }
          return performance.now() - start;
        },
        [act, i, draws],
      ),
    );
    cpu.push((await clock()) - before);
    if (pause > 0) await page.waitForTimeout(pause);
  }
  const ascending = (a, b) => a - b;
  return { cpu: cpu.sort(ascending), wall: wall.sort(ascending) };
}

async function measureWindow() {
  await withPage({ size: either(100_000, 2_000), pruneShare: 0, live: false }, `flame?session=${SESSION}`, async (page) => {
    await settled(page);
    const nodes = await page.evaluate(() => window.__flamewire.state().nodes);
    for (const act of ['zoom', 'pan']) {
      // Only a magnified graph can be moved.
      if (act === 'pan') await costs(page, 'zoom', 15);
      const { cpu, wall } = await costs(page, act, either(180, 5));
      result(`page: ${act}, 100,000 nodes, CPU per frame, 95th percentile`, at(cpu, 0.95), 'ms', 16, `of the page's thread and its worker; median ${at(cpu, 0.5).toFixed(1)} ms, slowest ${cpu.at(-1).toFixed(1)} ms; wall time, including the wait for the frame, median ${at(wall, 0.5).toFixed(1)} ms; ${nodes} nodes`);
    }
  });
}

async function measureLive() {
  await withPage({ size: either(20_000, 2_000), pruneShare: 0, hz: either(2, 20) }, 'flame', async (page) => {
    await settled(page);
    const clock = await threadClock(page);
    const version = () => page.evaluate(() => window.__flamewire.state().dataVersion);
    await page.waitForFunction(() => window.__flamewire.state().dataVersion > 4);
    const [task, script, first] = [await clock(), await clock('ScriptDuration'), await version()];
    await page.waitForFunction((wanted) => window.__flamewire.state().dataVersion >= wanted, first + either(20, 2), { timeout: 120_000, polling: 500 });
    const updates = (await version()) - first;
    const spent = (await clock('ScriptDuration')) - script;
    const all = (await clock()) - task;
    // Repeat it with a trace to get the parts. Tracing has a cost, so report shares only.
    const from = await version();
    const parts = await mainThread(browser, page, () => page.waitForFunction((wanted) => window.__flamewire.state().dataVersion >= wanted, from + either(10, 2), { timeout: 120_000, polling: 500 }));
    const whole = Object.values(parts).reduce((sum, part) => sum + part, 0);
    const shares = Object.entries(parts).map(([name, part]) => `${name} ${Math.round((100 * part) / whole)} %`).join(', ');
    result('page: live update, 20,000 nodes, CPU of the main thread', all / updates, 'ms', 8, `scripts without promises ${(spent / updates).toFixed(1)} ms; ${updates} updates, including everything that the page does in that time; traced: ${shares}`);
  });
}

async function measureTable() {
  await withPage({ size: 900, live: false, functions: either(100_000, 1_000) }, `functions?session=${SESSION}`, async (page) => {
    await page.getByText(either('100,000 functions', '1,000 functions')).waitFor();
    // The page sorts in advance while it is idle. A click in the first second may include that work.
    await page.waitForTimeout(either(2000, 0));
    for (let i = 0; i < 4; i++) await page.evaluate(() => new Promise((done) => requestIdleCallback(done)));
    for (const act of ['sort', 'filter']) {
      const { cpu, wall } = await costs(page, act, either(24, 2), 60);
      result(`page: table of 100,000 functions, ${act}, CPU, slowest`, cpu.at(-1), 'ms', 50, `median ${at(cpu, 0.5).toFixed(1)} ms; wall time until it is painted, median ${at(wall, 0.5).toFixed(1)} ms`);
    }
  });
}

async function measureSource() {
  // From the click until the hottest line is painted. The first file also loads the editor.
  const opened = [];
  const again = [];
  for (let turn = 0; turn < either(5, 1); turn++)
    await withPage({ live: false }, `functions?session=${SESSION}`, async (page) => {
      await page.locator('.function-row:not(.row-head)').first().waitFor();
      const clock = await threadClock(page);
      for (const [file, into] of [['/build/many.cc', opened], ['/build/more_many.cc', again]]) {
        const before = await clock();
        const wall = await page.evaluate(async ([session, name]) => {
          const start = performance.now();
          location.hash = `#source?session=${session}&file=${name}&split=off`;
          const isThere = () => document.querySelector('.cm-content')?.getAttribute('aria-label')?.endsWith(name) && document.querySelector('.source-line[data-line="40000"]');
          while (!isThere()) await new Promise((done) => requestAnimationFrame(done));
          await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
          return performance.now() - start;
        }, [SESSION, file]);
        into.push({ cpu: (await clock()) - before, wall });
      }
    });
  const sorted = (list, key) => list.map((entry) => entry[key]).sort((a, b) => a - b);
  result('page: source of 50,000 lines, to the hottest line, CPU, slowest of 5', sorted(opened, 'cpu').at(-1), 'ms', 200,
    `median ${at(sorted(opened, 'cpu'), 0.5).toFixed(0)} ms, wall time ${at(sorted(opened, 'wall'), 0.5).toFixed(0)} ms, including loading the editor and creating and parsing the answer; the next file median ${at(sorted(again, 'cpu'), 0.5).toFixed(0)} ms`);
}

const browser = await launch();
try {
  if (isWanted('zoom')) await measureWindow();
  if (isWanted('live')) await measureLive();
  if (isWanted('functions')) await measureTable();
  if (isWanted('source')) await measureSource();
  if (isWanted('memory')) await measureMemory(withPage, result);
} finally {
  await browser.close();
}
console.log(JSON.stringify(results));
