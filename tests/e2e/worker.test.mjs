// The flame graph is made and drawn in a worker: the page does without what the worker does, and shows the same where there is none.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { frames, launch, openPage, pixels, settled, unlike } from './browser.mjs';
import { SESSION, startMock } from './mock_server.mjs';
import { waitFor } from './programs.mjs';

const dist = process.env.FLAMEWIRE_WEB_DIST ?? new URL('../../web/dist', import.meta.url).pathname;
const shots = process.env.FLAMEWIRE_SCREENSHOTS ?? '';
let browser;
before(async () => (browser = await launch()));
after(() => browser?.close());

// A page on its own mock; `prepare` gets its context before anything is loaded.
async function withPage({ theme = 'dark', ratio = 1, hash = `flame?session=${SESSION}`, prepare, ...mocked }, body) {
  const mock = await startMock({ dist, notices: false, live: false, ...mocked });
  const context = await browser.newContext({
    colorScheme: theme,
    viewport: { width: 1200, height: 700 },
    deviceScaleFactor: ratio,
  });
  await prepare?.(context);
  const opened = await openPage(browser, `${mock.url}#${hash}`, { context });
  try {
    await settled(opened.page);
    await body({ mock, ...opened });
    assert.deepEqual(opened.problems, []);
  } finally {
    await context.close();
    await mock.stop();
  }
}

const withoutWorkers = (context) => context.addInitScript(() => delete window.Worker);
// What the page itself fetched; a worker's requests are its own.
const fetched = (page, part) =>
  page.evaluate(
    (wanted) => performance.getEntriesByType('resource').filter(({ name }) => name.includes(wanted)).length,
    part,
  );
const pane = (page) => page.locator('.flame-pane').boundingBox();
// Something is drawn in a part of it that frames reach.
const isDrawn = async (page) =>
  new Set((await pixels(page, { ...(await pane(page)), width: 300, height: 60 })).map(String)).size > 4;

test('answers come to the worker, not to the page', () =>
  withPage({ live: true }, async ({ page, mock }) => {
    const version = mock.state.version;
    await page.waitForFunction((older) => window.__flamewire.state().dataVersion > older + 2, version);
    assert.equal(await fetched(page, '/api/flamegraph'), 0);
    assert.ok((await fetched(page, '/app.js')) > 0);
    assert.equal(page.workers().length, 1);
  }));

for (const [theme, ratio, look] of [
  ['dark', 1, ''],
  ['light', 1, '&root=bottom&q=visit'],
  ['dark', 2, '&colour=module'],
])
  test(`the picture is the same with a worker and without (${theme}, ${ratio} pixels a pixel${look})`, async () => {
    const taken = [];
    for (const prepare of [undefined, withoutWorkers])
      await withPage(
        { theme, ratio, prepare, size: 6000, hash: `flame?session=${SESSION}${look}` },
        async ({ page }) => {
          assert.equal(page.workers().length, prepare ? 0 : 1);
          const list = await frames(page);
          assert.ok(list.length > 50);
          // The screen follows what is drawn by a frame or two, and what stands above the pane may still move it.
          let picture = null;
          let same = 0;
          await waitFor(async () => {
            const before = picture;
            picture = await page.screenshot({ clip: await pane(page) });
            same = before?.equals(picture) ? same + 1 : 0;
            return same >= 5 && list.some(({ width }) => width > 40);
          }, 'a picture that stays');
          const share = taken.length > 0 ? await unlike(page, taken[0].picture, picture) : 0;
          taken.push({ list, picture, share });
          if (shots && !prepare) {
            mkdirSync(shots, { recursive: true });
            await page.screenshot({ path: join(shots, `worker-${theme}-${ratio}.png`) });
          }
        },
      );
    const [apart, here] = taken;
    assert.deepEqual(apart.list, here.list);
    assert.ok(here.share < 0.001, `${(100 * here.share).toFixed(2)} % of the pixels differ`);
  });

test('a worker that is not to be had is done without', () =>
  withPage(
    { prepare: (context) => context.route('**/flame.js', (route) => route.fulfill({ status: 404, body: '' })) },
    async ({ page }) => {
      assert.ok((await frames(page)).length > 50);
      assert.ok((await fetched(page, '/api/flamegraph')) > 0);
      await waitFor(() => isDrawn(page), 'a picture');
    },
  ));

test('what is printed is drawn before the browser goes on, and the screen is as it was', () => {
  // Asked before the page hears that it is over.
  const prepare = (context) =>
    context.addInitScript(() =>
      addEventListener('afterprint', () => {
        const canvas = document.querySelector('.flame-canvas');
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let drawn = 0;
        for (let i = 3; i < data.length; i += 4) if (data[i] === 255) drawn++;
        window.printed = {
          share: drawn / (data.length / 4),
          height: canvas.height,
          shown: [...document.querySelectorAll('.flame-canvas')].filter((one) => one.checkVisibility()).length,
        };
      }),
    );
  return withPage({ prepare, live: true, hz: 20 }, async ({ page }) => {
    const deepest = Math.max(...(await frames(page)).map(({ depth }) => depth));
    assert.ok((await page.pdf()).length > 10_000);
    const { share, height, shown } = await (await page.waitForFunction(() => window.printed)).jsonValue();
    assert.ok(share > 0.05, `${share} of the paper is drawn on`);
    assert.ok(height >= 2 * 20 * (deepest + 1), `${height}`); // two pixels a pixel at least
    assert.equal(shown, 1);
    await settled(page);
    assert.equal(await page.locator('.flame-canvas').count(), 1);
    await waitFor(() => isDrawn(page), 'the screen again');
  });
});

test('the picture follows a window that changes its size, and the theme', () =>
  withPage({}, async ({ page }) => {
    const sizeOf = () =>
      page.evaluate(() => Math.max(...window.__flamewire.frames().map((frame) => frame.x + frame.width)));
    const wide = await sizeOf();
    await page.setViewportSize({ width: 900, height: 700 });
    await waitFor(async () => Math.abs((await sizeOf()) - (wide - 300)) < 1, 'frames of the new width');
    const corner = async () => (await pixels(page, { ...(await pane(page)), width: 3, height: 3 }))[4];
    const dark = await corner();
    assert.ok(
      dark.every((channel) => channel < 90),
      String(dark),
    ); // the root's frame
    await page.emulateMedia({ colorScheme: 'light' });
    await waitFor(async () => (await corner()).every((channel) => channel > 180), 'a light root');
  }));
