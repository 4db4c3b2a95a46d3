// How often a large flame graph is drawn while data stream in, with a mock server. Nothing else runs at the same time.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { inspect, launch, openPage, settled } from './browser.mjs';
import { startMock } from './mock_server.mjs';

const dist = process.env.FLAMEWIRE_WEB_DIST ?? new URL('../../web/dist', import.meta.url).pathname;
let browser;
let mock;
before(async () => {
  browser = await launch();
  mock = await startMock({ dist, size: 20_000, pruneShare: 0, hz: 3 });
});
after(async () => {
  await browser?.close();
  await mock?.stop();
});

test('20,000 frames stay smooth while data stream in', async () => {
  const { page, context, problems } = await openPage(browser, mock.url);
  await settled(page);
  const earlier = await inspect(page);
  const gaps = await page.evaluate(
    () =>
      new Promise((done) => {
        const out = [];
        const begin = performance.now();
        let last = begin;
        const step = (now) => {
          out.push(now - last);
          last = now;
          if (now - begin < 3000) requestAnimationFrame(step);
          else done(out.sort((a, b) => a - b));
        };
        requestAnimationFrame(step);
      }),
  );
  const later = await inspect(page);
  assert.equal(later.nodes, 20_000);
  assert.ok(later.dataVersion > earlier.dataVersion, 'new data arrived');
  // The frame rate depends on the machine, but not that most frames are drawn between two answers.
  assert.ok(gaps.length > 30, `${gaps.length} frames in 3 s`);
  console.log(
    `frames in 3 s: ${gaps.length}, median ${gaps[gaps.length >> 1].toFixed(1)} ms, longest ${gaps.at(-1).toFixed(0)} ms`,
  );
  await context.close();
  assert.deepEqual(problems, []);
});
