// Data that leave the page and enter it, with a mock server: files for modules, links, the URL, the Save or share menu.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shot, shows } from './browser.mjs';
import { SESSION } from './mock_server.mjs';
import { pagesWithMock } from './pages.mjs';

const withPage = pagesWithMock();

const of = (tab, more = '') => `#${tab}?session=${SESSION}${more}`;
const row = (name) => `.module-row[data-module="${name}"]`;

test('each module shows its symbols, its weight, the files that were tried and the remedy', () =>
  withPage({ live: false, hash: of('modules') }, async ({ page }) => {
    await shows(page, row('libcity.so'), /mismatch/);
    await shows(page, row('city-demo'), /debug info.*61\.0 %.*\/srv\/city-demo.*given to the server/);
    await shows(page, row('[kernel]'), /symbols only/);
    await shows(page, row('helper'), /not found/);
    await page.click(`${row('libcity.so')} .module-name`);
    await shows(page, '[data-problem]', /has 7788, the target runs 5566/);
    await shows(page, '[data-remedy]', /--binary FILE/);
    await shows(page, '.tried', /\/srv\/libcity\.so/);
    await shot(page, 'modules-dark');
    // The URL names the module: a reload opens the same one.
    await page.reload();
    await shows(page, '[data-problem]', /has 7788/);
    await page.fill('[data-search]', 'libc');
    await page.waitForFunction(() => document.querySelectorAll('.module-row').length === 2);
  }));

test('a file on the server, or an uploaded one, is used for a module', () =>
  withPage({ live: false, theme: 'light', hash: of('modules', '&about=libcity.so@5566') }, async ({ page, mock }) => {
    await page.locator('.module-give input[type=text]').fill('/srv/wrong/libcity.so');
    await page.getByRole('button', { name: 'Use it' }).click();
    await shows(page, '.module-give [role=alert]', /build-id mismatch/);
    await shot(page, 'modules-light');
    // The upload has slices of 1 MiB. The second one is lost once.
    await page.locator('.module-give input[type=file]').setInputFiles({
      name: 'libcity.so',
      mimeType: 'application/octet-stream',
      buffer: Buffer.alloc(10_000_000, 'elf '),
    });
    await shows(page, row('libcity.so'), /debug info.*uploaded for it/);
    const sent = mock.state.requests.filter((request) => request.startsWith('PUT'));
    assert.deepEqual(
      sent.map((request) => Number(/offset=(\d+)/.exec(request)[1])),
      [0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((slice) => slice * 1_048_576),
    );
    assert.ok(sent.every((request) => request.includes('size=10000000')));
    await page.waitForFunction(() => !document.querySelector('.upload-progress'));
    await page.locator(`${row('helper')} .module-name`).click();
    await page.locator('.module-give input[type=text]').fill('/srv/helper');
    await page.keyboard.press('Enter');
    await shows(page, row('helper'), /debug info.*given to the server/);
  }));

const halves = (page) => page.evaluate(() => window.__flamewire.halves());

test('the zoom of both halves of callers is in the URL: a reload keeps it, Back undoes it', () =>
  withPage({ live: false, hash: of('callers') }, async ({ page }) => {
    await page.locator('.chooser button').first().click();
    await page.waitForFunction(() => window.__flamewire.halves().every((half) => half.length > 5));
    // The frame to which a half is zoomed is as wide as the picture.
    const shownWide = (names) =>
      page.waitForFunction((wanted) => {
        const wide = document.querySelector('.flame-canvas')?.clientWidth * 0.95;
        return window.__flamewire
          ?.halves()
          .every(
            (half, side) =>
              !wanted[side] || half.some((one) => one.depth === 2 && one.name === wanted[side] && one.width > wide),
          );
      }, names);
    const names = [];
    for (const [side, name] of [
      [0, 'above'],
      [1, 'below'],
    ]) {
      const frame = (await halves(page))[side].filter((one) => one.depth === 2).sort((a, b) => b.width - a.width)[0];
      names.push(frame.name);
      const box = await page.locator('.flame-canvas').nth(side).boundingBox();
      await page.mouse.click(box.x + frame.x + frame.width / 2, box.y + frame.y + frame.height / 2);
      await page.waitForFunction((parameter) => new URLSearchParams(location.hash.split('?')[1]).has(parameter), name);
    }
    await shownWide(names);
    await page.reload();
    await shownWide(names);
    await page.goBack();
    await page.waitForFunction(() => !location.hash.includes('below='));
    await shownWide([names[0], null]);
    await page.goBack();
    await page.waitForFunction(() => !location.hash.includes('above=') && location.hash.includes('function='));
    // Another function starts without a zoom.
    await page.goForward();
    await page.waitForFunction(() => location.hash.includes('above='));
    await page.locator('.neighbour').first().click();
    await page.waitForFunction(() => !location.hash.includes('above='));
  }));

test('typing in a search field adds no history entries', () =>
  withPage({ live: false, hash: of('flame') }, async ({ page }) => {
    for (const [tab, name] of [
      ['flame', 'search'],
      ['functions', 'filter'],
      ['modules', 'modules'],
    ]) {
      await page.click(`#tab-${tab}`);
      await page.locator('.main [data-search]').waitFor();
      const steps = await page.evaluate(() => history.length);
      await page.locator('.main [data-search]').pressSequentially('visit');
      await page.waitForFunction(
        (parameter) => new URLSearchParams(location.hash.split('?')[1]).get(parameter) === 'visit',
        name,
      );
      assert.equal(await page.evaluate(() => history.length), steps, tab);
    }
  }));

test('every view has the menu with its own items, and a link names the session', () =>
  withPage({ live: true, hash: '' }, async ({ page, context, mock }) => {
    const items = async (tab, ready) => {
      await page.click(`#tab-${tab}`);
      await page.locator(ready).first().waitFor();
      await page.click('#export-menu');
      await page.locator('#export-menu .menu, .popover-panel .menu').first().waitFor();
      const texts = await page.evaluate(() =>
        [...document.querySelectorAll('.popover-panel .menu li')].map((item) => item.querySelector('span').textContent),
      );
      await page.keyboard.press('Escape');
      return texts;
    };
    const all = [
      'SVG',
      'Collapsed stacks',
      'JSON',
      'pprof',
      'speedscope',
      'Firefox Profiler',
      'perf.data',
      'Page',
      'Session',
      'Session and sources',
      'Copy a link',
      'Print',
    ];
    assert.deepEqual(await items('flame', '.flame-canvas'), ['PNG', ...all]);
    assert.deepEqual(await items('functions', '.function-row'), ['CSV', ...all]);
    assert.deepEqual(await items('counters', '[data-counter]'), ['CSV', ...all]);
    for (const [tab, ready] of [
      ['threads', '.thread-row'],
      ['callers', '.chooser'],
      ['modules', '.module-row'],
      ['source', '.source-line'],
    ])
      assert.deepEqual(await items(tab, ready), all, tab);

    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: new URL(mock.url).origin });
    await page.click('#tab-threads');
    await page.click('#export-menu');
    const page_ = await page.getByRole('link', { name: 'Page' }).getAttribute('href');
    assert.match(page_, new RegExp(`^/api/export/session/${SESSION}\\?format=html&page=%23threads%3Fsession%3D`));
    await page.click('#share-link');
    await shows(page, '.toasts', /Link copied/);
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `${mock.url}#threads?session=${SESSION}`);
  }));
