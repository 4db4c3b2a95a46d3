// Single hits of traced events on the page: with a mock server, then with the real server, agent and kernel.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contentOf, shot, shows } from './browser.mjs';
import { SESSION } from './mock_server.mjs';
import { pagesWithMock } from './pages.mjs';
import { waitFor } from './programs.mjs';

const withPage = pagesWithMock({ settle: false });
const at = (more = '') => `#events?session=${SESSION}${more}`;
const row = (number) => `.hit-row[data-hit="${number}"]`;
const view = (page) => page.evaluate(() => window.__flamewire.state().view);
const listed = (page) => page.evaluate(() => window.__flamewire.hits());

test('a session without traced events has no such tab', () =>
  withPage({ live: false, hash: `#functions?session=${SESSION}` }, async ({ page, mock }) => {
    await page.locator('.function-row:not(.row-head)').first().waitFor();
    await page.waitForFunction(() => document.querySelector('#tab-sessions') !== null);
    assert.equal(await page.locator('#tab-events').count(), 0);
    // The keys of the other tabs are the same with and without it.
    assert.match(await page.getAttribute('#tab-sessions', 'title'), /\(8\)/);
    assert.equal(mock.state.requests.filter((request) => request.includes('/api/hits')).length, 1);
  }));

test('hits are listed in order, chosen by keys, and shown with values and stack', () =>
  withPage({ live: false, hits: 12_000, hash: at() }, async ({ page }) => {
    await page.locator('.hit-row[data-hit]').first().waitFor();
    await shows(page, '#hit-count', 'newest 5,000 of 12,000 hits');
    const times = (await listed(page)).map((hit) => hit.time_ms);
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    );
    // Only what is in sight is in the page.
    assert.ok((await page.locator('.hit-row').count()) < 100);
    await shows(page, '.hit-notes li:nth-child(1)', 'The 1,200 hits before these are no longer in memory.');
    await shows(page, '.hit-notes li:nth-child(2)', /^3 hits came too fast to keep their values/);

    await page.focus('.rows.hits');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.locator(`${row(7001)}.row-selected`).waitFor();
    await page.locator('.hit-stack').waitFor();
    assert.deepEqual(await page.locator('.hit-stack .link').allTextContents(), [
      '__x64_sys_write',
      'do_syscall_64',
      'entry_SYSCALL_64_after_hwframe',
      '__GI___libc_write',
      'city::save(World&)',
      'main',
    ]);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement.classList.contains('hit-detail'));
    await page.keyboard.press('Escape');
    await page.locator('.hit-detail').waitFor({ state: 'detached' });
    await page.waitForFunction(() => document.activeElement.classList.contains('hits'));
    await page.keyboard.press('End');
    await page.keyboard.press('Enter');
    await page.locator(`${row(11_999)}.row-selected`).waitFor();
    await shows(page, '.hit-title', 'city:loaded');
    // Names of a target are texts.
    await shows(page, '#hit-values dd', '/etc/city "1" <i>.conf ');
    await shot(page, 'hits-dark');

    // The moment is in the middle of the axis, and marked.
    await page.click('#show-moment');
    const { hit, axis } = await view(page);
    assert.equal(hit.number, 11_999);
    assert.ok(axis.from < hit.ms && hit.ms < axis.to && axis.to - axis.from <= 1001, JSON.stringify(axis));
    await page.locator('.strip-moment').waitFor();

    // A reload shows the same hit. Back leads to where the hit was chosen.
    await page.reload();
    await page.locator(`${row(11_999)}.row-selected`).waitFor();
    await shows(page, '.hit-title', 'city:loaded');
    await page.click('.hit-stack li:nth-child(4) .link');
    await page.waitForFunction(() => location.hash.startsWith('#flame'));
    const flame = await view(page);
    assert.deepEqual([flame.event, flame.search], ['city:loaded', '^__GI___libc_write$']);
  }));

test('older hits follow without a gap', () =>
  withPage({ live: false, hits: 12_000, hash: at() }, async ({ page }) => {
    const seen = new Set();
    for (const first of [7000, 2001, 0]) {
      await page.waitForFunction((number) => window.__flamewire.hits()[0]?.number === number, first);
      for (const hit of await listed(page)) seen.add(hit.number);
      if (first > 0) await page.click('#older-hits');
    }
    assert.equal(seen.size, 12_000);
    assert.equal(await page.locator('#older-hits').count(), 0);
    await page.click('#newest-hits');
    await shows(page, '#hit-count', 'newest 5,000 of 12,000 hits');
  }));

test('the filter, the event and the time range choose hits, and a wrong filter is explained', () =>
  withPage({ live: false, hits: 2000, hash: at() }, async ({ page }) => {
    await shows(page, '#hit-count', '2,000 hits');
    await page.selectOption('#hit-event', 'syscalls:sys_exit_write');
    await shows(page, '#hit-count', '950 hits');
    await page.fill('.main [data-search]', 'ret<0');
    await shows(page, '#hit-count', '87 hits');
    assert.deepEqual(new Set((await listed(page)).map((hit) => hit.values[0].text)), new Set(['-11 (EAGAIN)']));
    await page.fill('.main [data-search]', 'ret!5');
    await shows(page, '.main [role=alert]', /write NAME!=VALUE/);
    await page.fill('.main [data-search]', 'nothing-has-this');
    await shows(page, '.hits-body .message', 'No hits match the filter');
    await page.goto(new URL(at('&start=10000&end=12000&hits=fd%3D3'), page.url()).href);
    await page.waitForFunction(() => window.__flamewire.hits().length > 0);
    const list = await listed(page);
    assert.ok(list.every((hit) => hit.time_ms >= 10_000 && hit.time_ms < 12_000 && hit.values[0].text === '3'));
    // A value of the details is added to the filter.
    await page.locator('.hit-row[data-hit]').first().click();
    await page.click('#hit-values dd:nth-of-type(3) .hit-filter');
    await page.waitForFunction(() => /^fd=3 count=\d+$/.test(window.__flamewire.state().view.hitFilter));
  }));

test('groups have figures and a distribution, and lead to their hits', () =>
  withPage({ live: false, hits: 2000, theme: 'light', hash: at() }, async ({ page }) => {
    await shows(page, '#hit-count', '2,000 hits');
    await page.selectOption('#hits-by', 'fd');
    await shows(page, '#hit-count', '3 groups of 1,000 hits');
    await shows(page, '.hit-notes li', '1,000 hits of events without fd are left out.');
    // Texts and addresses have no figures.
    assert.deepEqual(await page.locator('#hits-value option').allTextContents(), [
      '– numbers of hits',
      'fd',
      'count',
      'ret',
    ]);
    await page.selectOption('#hits-value', 'count');
    await page.locator('.bucket').first().waitFor();
    assert.equal(await page.locator('.bucket').first().locator('.mono').textContent(), '[64, 128)');
    assert.equal(await page.locator('.bucket').count(), 9);
    await shot(page, 'hit-groups-light');
    const saved = page.waitForEvent('download');
    await page.click('#export-menu');
    await page.getByRole('button', { name: 'CSV the groups' }).click();
    const csv = (await contentOf(await saved)).toString();
    assert.match(csv, /^fd,hits,sum of count,avg of count,min of count,p50 of count/);
    await page.locator('.group-hits-row .sort').first().click();
    await page.waitForFunction(() => document.querySelector('.hit-key')?.textContent === '3');
    await page.locator('.bucket').first().click();
    await page.waitForFunction(() => window.__flamewire.state().view.hitFilter === 'count>=64 count<128');
    await page.goBack();
    await page.locator('.hit-key').first().click();
    await page.locator('.hit-row[data-hit]').first().waitFor();
    assert.match((await view(page)).hitFilter, /^fd=[345]$/);
    assert.equal((await view(page)).hitsBy, '');
  }));

test('a live list follows new hits until one is chosen, and asks for nothing in other tabs', () =>
  withPage({ live: true, hits: 900, hz: 0, hash: at() }, async ({ page, mock }) => {
    const asked = (path) => mock.state.requests.filter((request) => request.includes(path)).length;
    const more = (count) => {
      mock.state.hits += count;
      mock.batch(1000);
    };
    await page.locator(row(899)).waitFor();
    more(50);
    await page.locator(row(949)).waitFor();
    const place = () => page.evaluate(() => document.querySelector('.rows.hits').scrollTop);
    const isHeld = () => page.waitForFunction(() => document.querySelector('#newest-hits').ariaPressed === 'false');
    // The time axis is refreshed as often as the list.
    const refreshed = async () => {
      for (let round = 0; round < 2; round++) {
        const drawn = asked('/api/timeline');
        more(0);
        await waitFor(() => asked('/api/timeline') > drawn, 'the time axis');
      }
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(done)));
    };
    // An answer that arrives after the list was scrolled back does not move it.
    const release = mock.hold('GET /api/hits');
    const lists = asked('limit=5000');
    more(50);
    await waitFor(() => asked('limit=5000') > lists, 'the request for the list');
    await page.evaluate(() => (document.querySelector('.rows.hits').scrollTop -= 400));
    await isHeld();
    const back = await place();
    release();
    await refreshed();
    assert.deepEqual([(await listed(page)).at(-1).number, await place()], [949, back]);
    // At its end it follows again, until a hit is chosen.
    await page.evaluate(() => (document.querySelector('.rows.hits').scrollTop += 1e6));
    await page.locator(row(999)).waitFor();
    await page.locator(row(990)).click();
    await page.locator('.hit-stack').waitFor();
    const before = await place();
    more(50);
    await isHeld();
    await refreshed();
    assert.deepEqual([(await listed(page)).at(-1).number, await place()], [999, before]);
    await page.click('#newest-hits');
    await page.locator(row(1049)).waitFor();
    await page.click('#tab-functions');
    await page.locator('.function-row:not(.row-head)').first().waitFor();
    const now = asked('/api/hits');
    const functions = asked('/api/functions');
    more(50);
    await waitFor(() => asked('/api/functions') > functions, 'the functions');
    assert.equal(asked('/api/hits'), now);
  }));

test('a narrow page shows the list above the details', () =>
  withPage({ live: false, hits: 400, width: 700, height: 900, hash: at() }, async ({ page }) => {
    await page.locator('.hit-row[data-hit]').first().click();
    await page.locator('.hit-stack').waitFor();
    const [list, detail] = await Promise.all(
      ['.rows.hits', '.hit-detail'].map((name) => page.locator(name).boundingBox()),
    );
    assert.ok(detail.y >= list.y + list.height - 1 && list.height > 100, JSON.stringify([list, detail]));
    await shot(page, 'hits-narrow-dark');
  }));
