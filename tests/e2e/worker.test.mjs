// The flame graph is computed and drawn in a worker, so the page does not do that work. Without one it looks the same.
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

// A page with its own mock server. `prepare` gets the context before anything is loaded.
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
// The number of requests by the page itself, without those of its worker.
const fetched = (page, part) =>
  page.evaluate(
    (wanted) => performance.getEntriesByType('resource').filter(({ name }) => name.includes(wanted)).length,
    part,
  );
const pane = (page) => page.locator('.flame-pane').boundingBox();
// Whether anything is drawn in a part of the pane that contains frames.
const isDrawn = async (page) =>
  new Set((await pixels(page, { ...(await pane(page)), width: 300, height: 60 })).map(String)).size > 4;

test('answers go to the worker, not to the page', () =>
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
  test(`the picture is the same with a worker and without (${theme}, pixel ratio ${ratio}${look})`, async () => {
    const taken = [];
    for (const prepare of [undefined, withoutWorkers])
      await withPage(
        { theme, ratio, prepare, size: 6000, hash: `flame?session=${SESSION}${look}` },
        async ({ page }) => {
          assert.equal(page.workers().length, prepare ? 0 : 1);
          const list = await frames(page);
          assert.ok(list.length > 50);
          // The screen lags a frame or two behind the canvas, and elements above the pane may still move it.
          let picture = null;
          let same = 0;
          await waitFor(async () => {
            const before = picture;
            picture = await page.screenshot({ clip: await pane(page) });
            same = before?.equals(picture) ? same + 1 : 0;
            return same >= 5 && list.some(({ width }) => width > 40);
          }, 'a picture that does not change');
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

test('the page works without a worker that cannot be loaded', () =>
  withPage(
    { prepare: (context) => context.route('**/flame.js', (route) => route.fulfill({ status: 404, body: '' })) },
    async ({ page }) => {
      assert.ok((await frames(page)).length > 50);
      assert.ok((await fetched(page, '/api/flamegraph')) > 0);
      await waitFor(() => isDrawn(page), 'a picture');
    },
  ));

test('a print is drawn before the browser continues, and the screen is restored afterwards', () => {
  // This listener runs before the page's own one, so it reads the canvas that was printed.
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
    assert.ok(share > 0.05, `only ${share} of the printed canvas is drawn`);
    assert.ok(height >= 2 * 20 * (deepest + 1), `${height}`); // at least two device pixels per CSS pixel
    assert.equal(shown, 1);
    await settled(page);
    assert.equal(await page.locator('.flame-canvas').count(), 1);
    await waitFor(() => isDrawn(page), 'the screen again');
  });
});

test('the picture adapts to the size of the window and to the theme', () =>
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
