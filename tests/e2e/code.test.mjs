// Source and assembly with a mock server: links both ways, inlined functions, jumps, copies, missing code, a long file.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, openPage, shot, shows } from './browser.mjs';
import { SESSION, startMock } from './mock_server.mjs';

const dist = process.env.FLAMEWIRE_WEB_DIST ?? new URL('../../web/dist', import.meta.url).pathname;
const FILE = '/build/city/traffic.cc';
let browser;
before(async () => (browser = await launch()));
after(() => browser?.close());

async function withSource(query, body, options = {}) {
  const mock = await startMock({ dist, live: false, ...options });
  const opened = await openPage(browser, `${mock.url}#source?session=${SESSION}${query}`, options);
  try {
    await body({ mock, ...opened });
    assert.deepEqual(opened.problems, []);
  } finally {
    await opened.context.close();
    await mock.stop();
  }
}

const hashHas = (page, text) => page.waitForFunction((part) => location.hash.includes(part), text);
const row = (page, address) => page.locator(`.assembly-row[data-address="${address}"]`);
const line = (page, number) => page.locator(`.source-line[data-line="${number}"]`);

test('lines and instructions lead to each other, and the URL contains the selection', () =>
  withSource(`&file=${FILE}`, async ({ page }) => {
    await line(page, 9).waitFor();
    await row(page, '1020').waitFor();
    // The instructions of the hottest line are marked from the start.
    await page.waitForFunction(
      () =>
        [...document.querySelectorAll('.row-linked')].map((element) => element.dataset.address).join() ===
        '1018,101c,1020',
    );
    await line(page, 8).click();
    await hashHas(page, 'line=8');
    await page.waitForFunction(() => document.querySelectorAll('.row-linked').length === 5);
    await row(page, '1020').click();
    await hashHas(page, 'at=0x1020');
    await page.locator('.source-line.line-chosen[data-line="9"]').waitFor();
    assert.match(await row(page, '1020').getAttribute('class'), /row-selected/);
    // A reload keeps the selection.
    await page.reload();
    await page.locator('.assembly-row.row-selected[data-address="1020"]').waitFor();
    await page.locator('.source-line.line-chosen[data-line="9"]').waitFor();
    await shot(page, 'code-dark');
  }));

test('keys walk through hot lines and instructions, and follow jumps', () =>
  withSource(`&file=${FILE}`, async ({ page }) => {
    await line(page, 9).waitFor();
    await row(page, '1020').waitFor();
    await page.locator('.cm-content').focus();
    await page.keyboard.press('j');
    await page.locator('.source-line.line-chosen[data-line="12"]').waitFor();
    await page.keyboard.press('k');
    await page.locator('.source-line.line-chosen[data-line="9"]').waitFor();
    await page.keyboard.press('k');
    await page.locator('.source-line.line-chosen[data-line="8"]').waitFor();
    await page.keyboard.press('h');
    await page.locator('.source-line.line-chosen[data-line="9"]').waitFor();
    await row(page, '1028').click();
    await page.locator('.lane-marked').first().waitFor();
    await page.locator('.assembly').focus();
    await page.keyboard.press('Enter');
    await hashHas(page, 'at=0x100c');
    await page.keyboard.press('ArrowDown');
    await hashHas(page, 'at=0x1010');
    await page.keyboard.press('h');
    await hashHas(page, 'at=0x1020');
  }));

test('functions inlined at a line open below it and lead to their source', () =>
  withSource(
    `&file=${FILE}`,
    async ({ page }) => {
      await line(page, 9).waitFor();
      const marks = page.locator('.source-inlined .inline-mark:visible');
      await marks.first().click();
      await shows(page, '.inlined-calls', '13.0 %std::vector<Car>::size');
      await page.locator('.cm-content').focus();
      await page.keyboard.press('i');
      await page.waitForFunction(() => document.querySelectorAll('.inlined-calls').length === 2);
      await page.locator('.inlined-call').first().click();
      await hashHas(page, 'stl_vector.h');
      await hashHas(page, 'line=987');
      await page.goBack();
      await line(page, 9).waitFor();
    },
    { theme: 'light' },
  ));

test('a call leads to the code of its target, and the choice of copies to another copy', () =>
  withSource(`&file=${FILE}`, async ({ page }) => {
    await row(page, '101c').waitFor();
    await page.selectOption('.code-copy', '1');
    await row(page, '9000').waitFor();
    await hashHas(page, 'at=0x9000');
    await page.selectOption('.code-copy', '0');
    await row(page, '101c').locator('.assembly-target').click();
    await hashHas(page, 'code=distance');
    await page.locator('.toolbar').getByRole('button', { name: 'Assembly' }).click();
    await hashHas(page, 'split=off');
    assert.equal(await page.locator('.assembly').count(), 0);
  }));

test('for missing code the page says so and what to configure', () =>
  withSource(`&file=${FILE}&code=irq_work`, async ({ page }) => {
    await page.getByText("the kernel's code is not in a file here").waitFor();
    await page.getByText("give the target's own vmlinux with --binary FILE").waitFor();
  }));

test('a file of 50,000 lines opens at its hottest line', () =>
  withSource('&file=/build/city/many.cc', async ({ page }) => {
    await line(page, 40_000).waitFor();
    await shows(page, '.toolbar', /of 50,000/);
    assert.match(await line(page, 40_000).getAttribute('class'), /heat-5/);
    await page.locator('.cm-line .token-string').first().waitFor();
    assert.ok((await page.locator('.cm-line').count()) < 300, 'lines out of view are rendered');
  }));
