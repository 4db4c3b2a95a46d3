// axe-core finds nothing serious in any view or dialog, dark and light. Also tests the page by keyboard alone and with
// reduced motion.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { axeSource, launch, openPage, settled } from './browser.mjs';
import { SESSION, startMock } from './mock_server.mjs';

const dist = process.env.FLAMEWIRE_WEB_DIST ?? new URL('../../web/dist', import.meta.url).pathname;
let browser;
let mock;
before(async () => {
  browser = await launch();
  mock = await startMock({ dist, live: false, hits: 400 });
});
after(async () => {
  await browser?.close();
  await mock?.stop();
});

// Only issues that exclude people: minor and moderate ones are left out.
async function check(page, where) {
  const issues = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ['violations'] });
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(
        ({ id, help, nodes }) =>
          `${id}: ${help}: ${nodes
            .slice(0, 4)
            .map((node) => `${node.target} ${node.any[0]?.message ?? ''}`)
            .join(' | ')}`,
      );
  });
  assert.deepEqual(issues, [], where);
}

const of = (tab, more = '') => `#${tab}?session=${SESSION}${more}`;
const menuFromKeys = async (page) => {
  await page.focus('.flame-scroller');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Shift+F10');
  await page.locator('#frame-menu').waitFor();
};
const views = [
  ['flame graph', of('flame'), settled],
  ['flame graph, searched', of('flame', '&search=visit'), (page) => page.locator('#matched').waitFor()],
  [
    'flame graph, by heat, one subtree hidden',
    of('flame', '&colour=heat&hide=nothing'),
    (page) => page.locator('#hidden-note').waitFor(),
  ],
  ['menu of a frame', of('flame'), (page) => settled(page).then(() => menuFromKeys(page))],
  ['shape', of('flame', '&colour=module'), (page) => settled(page).then(() => page.click('#shape-menu'))],
  ['export', of('flame'), (page) => settled(page).then(() => page.click('#export-menu'))],
  ['functions', of('functions'), (page) => page.locator('.function-row:not(.row-head)').first().waitFor()],
  ['functions, grouped', of('functions', '&group=module'), (page) => page.locator('.group-row').first().waitFor()],
  ['flame graph, compared', of('flame', `&base=${SESSION}-1`), (page) => page.locator('#legend-changes').waitFor()],
  [
    'colours of changes',
    of('flame', `&base=${SESSION}-1&contrast=orange-purple`),
    (page) =>
      page
        .locator('#legend-changes')
        .waitFor()
        .then(() => page.click('#shape-menu')),
  ],
  [
    'functions, compared',
    of('functions', `&base=${SESSION}-1`),
    (page) => page.locator('.diff-row:not(.row-head)').first().waitFor(),
  ],
  ['menu of baselines', of('flame'), (page) => settled(page).then(() => page.click('#compare-menu'))],
  ['choice of callers', of('callers'), (page) => page.locator('.chooser button').first().waitFor()],
  [
    'callers',
    of('callers'),
    (page) =>
      page
        .locator('.chooser button')
        .first()
        .click()
        .then(() => page.waitForFunction(() => window.__flamewire.halves().every((half) => half.length > 0))),
  ],
  [
    'source',
    of('source', '&file=/build/city/traffic.cc'),
    async (page) => {
      await page.locator('.source-line[data-line="9"]').waitFor();
      await page.locator('.assembly-row[data-address="1020"]').waitFor();
    },
  ],
  [
    'code that is not available',
    of('source', '&file=/build/city/traffic.cc&code=irq_work'),
    (page) => page.getByText("give the target's own vmlinux").waitFor(),
  ],
  ['threads', of('threads'), (page) => page.locator('.thread-row:not(.row-head)').first().waitFor()],
  ['counters', of('counters'), (page) => page.locator('[data-counter]').first().waitFor()],
  ['modules', of('modules'), (page) => page.locator('.module-row').first().waitFor()],
  ['modules, detailed', of('modules', '&about=libcity.so@5566'), (page) => page.locator('.module-detail').waitFor()],
  ['events', of('events'), (page) => page.locator('.hit-row[data-hit]').first().waitFor()],
  [
    'a hit',
    of('events'),
    (page) =>
      page
        .locator('.hit-row[data-hit]')
        .first()
        .click()
        .then(() => page.locator('.hit-stack').waitFor()),
  ],
  [
    'help for the filter of hits',
    of('events', '&traced=city:loaded'),
    (page) =>
      page
        .locator('.hit-row[data-hit]')
        .first()
        .waitFor()
        .then(() => page.click('#hit-filter-help')),
  ],
  ['hits, grouped', of('events', '&by=fd&value=count'), (page) => page.locator('.bucket').first().waitFor()],
  ['sessions', '#sessions', (page) => page.locator('.sessions tbody tr').first().waitFor()],
  [
    'help',
    of('flame'),
    (page) =>
      settled(page)
        .then(() => page.keyboard.press('?'))
        .then(() => page.locator('.help-dialog').waitFor()),
  ],
];

for (const theme of ['dark', 'light']) {
  test(`axe-core finds nothing serious in any view (${theme})`, async () => {
    const axe = axeSource();
    const found = [];
    for (const [name, hash, ready] of views) {
      const { page, context, problems } = await openPage(browser, mock.url + hash, { theme });
      await ready(page);
      await page.evaluate(axe);
      await check(page, `${name}, ${theme}`).catch((error) => found.push(`${name}: ${JSON.stringify(error.actual)}`));
      assert.deepEqual(problems, []);
      await context.close();
    }
    assert.deepEqual(found, []);
  });
}

// The steps of the guide, in order, and what to wait for in each.
const guide = {
  connect: (page) => page.locator('.wizard .dial').waitFor(),
  process: (page) => page.locator('.process-row[data-pid]').first().click(),
  check: (page) => page.locator('.finding-fails').first().waitFor(),
  files: (page) =>
    page
      .getByTitle('Choose on the server: Sysroot')
      .click()
      .then(() => page.locator('.picker-list button').first().waitFor()),
  options: (page) => page.click('#find-events').then(() => page.locator('.event-details dt').first().waitFor()),
  start: (page) => page.locator('.wizard-summary').waitFor(),
};
for (const theme of ['dark', 'light']) {
  test(`axe-core finds nothing serious in the guide (${theme})`, async () => {
    const found = [];
    const { page, context, problems } = await openPage(browser, mock.url + of('flame'), { theme });
    await settled(page);
    await page.evaluate(axeSource());
    await page.keyboard.press('g');
    for (const [step, ready] of Object.entries(guide)) {
      await page.locator(`.wizard-${step}`).waitFor();
      await ready(page);
      await check(page, `${step}, ${theme}`).catch((error) => found.push(`${step}: ${JSON.stringify(error.actual)}`));
      if (step !== 'start') await page.locator('#wizard-next:not(:disabled)').click();
    }
    assert.deepEqual(problems, []);
    await context.close();
    assert.deepEqual(found, []);
  });
}

test('the Tab key reaches every view, and the focus is visible', async () => {
  const { page, context } = await openPage(browser, mock.url + of('flame'), {});
  await settled(page);
  const seen = new Set();
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const element = document.activeElement;
      const style = getComputedStyle(element);
      const name = element.getAttribute('aria-label') ?? element.title ?? '';
      return {
        id: element.id,
        name: (name || element.textContent).trim(),
        outline: style.outlineStyle !== 'none' || style.boxShadow !== 'none',
        body: element === document.body,
      };
    });
    if (at.body) break;
    assert.ok(at.name, `an element without a name has the focus: #${at.id}`);
    assert.ok(at.outline, `the focus is not visible on ${at.name}`);
    seen.add(at.id || at.name);
  }
  for (const id of ['tab-flame', 'shape-menu', 'export-menu'])
    assert.ok(seen.has(id), `${id} is among ${[...seen].join(', ')}`);
  assert.ok(
    [...seen].some((name) => name.startsWith('Flame graph.')),
    'the picture',
  );
  await page.focus('#tab-flame');
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(
    () => location.hash.startsWith('#functions') && document.activeElement.id === 'tab-functions',
  );
  await context.close();
});

test('with reduced motion a zoom takes effect immediately', async () => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' });
  const { page } = await openPage(browser, mock.url + of('flame'), { context });
  await settled(page);
  const widths = await page.evaluate(async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const inspector = window.__flamewire;
    const wide = inspector
      .frames()
      .filter((one) => one.depth === 1)
      .sort((a, b) => b.width - a.width)[0];
    document.querySelector('.flame-scroller').focus();
    const canvas = document.querySelector('.flame-canvas');
    const box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(
      new MouseEvent('click', {
        clientX: box.left + wide.x + wide.width / 2,
        clientY: box.top + wide.y + 5,
        bubbles: true,
      }),
    );
    const out = new Set();
    for (let i = 0; i < 20; i++) {
      await frame();
      const now = inspector.frames().filter((one) => one.depth === 1 && one.name === wide.name);
      if (now.length > 0) out.add(Math.round(Math.max(...now.map((one) => one.width))));
    }
    return [[...out], Math.round(wide.width), Math.round(box.width)];
  });
  const [seen, before_, after_] = widths;
  assert.ok(before_ < after_);
  assert.deepEqual(
    seen.filter((width) => width !== before_),
    [after_],
  );
  await context.close();
});
