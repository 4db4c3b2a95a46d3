// What leaves the page and what comes into it, on a made-up server: files for modules.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, openPage, shows } from './browser.mjs';
import { SESSION, startMock } from './mock_server.mjs';

const dist = process.env.FLAMEWIRE_WEB_DIST ?? new URL('../../web/dist', import.meta.url).pathname;
let browser;
before(async () => (browser = await launch()));
after(() => browser?.close());

async function withPage(options, body) {
  const { theme, width, height, hash = '', ...mockOptions } = options;
  const mock = await startMock({ dist, ...mockOptions });
  const opened = await openPage(browser, mock.url + hash, { theme, width, height });
  try {
    await body({ mock, ...opened });
    assert.deepEqual(opened.problems, []);
  } finally {
    await opened.context.close();
    await mock.stop();
  }
}

const shots = process.env.FLAMEWIRE_SCREENSHOTS ?? '';
const shot = async (page, name) => {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`) });
};
const of = (tab, more = '') => `#${tab}?session=${SESSION}${more}`;
const row = (name) => `.module-row[data-module="${name}"]`;

test('each module says its symbols, its weight, what was tried and what helps', () =>
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
    // In the address: a reload opens the same one.
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
    // Three slices, of which the second is lost once.
    await page.locator('.module-give input[type=file]').setInputFiles({ name: 'libcity.so', mimeType: 'application/octet-stream', buffer: Buffer.alloc(2_500_000, 'elf ') });
    await shows(page, row('libcity.so'), /debug info.*uploaded for it/);
    const sent = mock.state.requests.filter((request) => request.startsWith('PUT'));
    assert.deepEqual(sent.map((request) => Number(/offset=(\d+)/.exec(request)[1])), [0, 1_048_576, 1_048_576, 2_097_152]);
    assert.ok(sent.every((request) => request.includes('size=2500000')));
    await page.waitForFunction(() => !document.querySelector('.upload-progress'));
    await page.locator(`${row('helper')} .module-name`).click();
    await page.locator('.module-give input[type=text]').fill('/srv/helper');
    await page.keyboard.press('Enter');
    await shows(page, row('helper'), /debug info.*given to the server/);
  }));
