// Every click takes effect and no update is lost, whatever the order in which the server's answers arrive.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shows } from './browser.mjs';
import { SESSION } from './mock_server.mjs';
import { pagesWithMock } from './pages.mjs';
import { waitFor } from './programs.mjs';

const CONFIG = 'GET /api/config';
const CHANGE = 'PATCH /api/config';
const withPage = pagesWithMock({ live: false, settle: true, hash: `#flame?session=${SESSION}` });

const at = (page, step) => page.locator(`.wizard-body.wizard-${step}`).waitFor();
const next = (page) => page.locator('#wizard-next:not(:disabled)').click();
const goTo = (page, title) => page.locator('.wizard-step', { hasText: title }).click();
const openSettings = (page) => page.locator('.header').getByTitle('Symbols and sources').click();
const sourceFolder = (page) => page.locator('.settings input[type=text]').last();
// Waits until everything that has arrived is on the screen.
const painted = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50))));
const requests = (mock, wanted) => mock.state.requests.filter((request) => request === wanted).length;

/** Opens the guide and goes to the step with symbols and sources. */
async function guideAtFiles(page) {
  await page.keyboard.press('g');
  await at(page, 'connect');
  await next(page);
  await page.locator('.process-row[data-pid]').first().click();
  await next(page);
  await at(page, 'check');
  await next(page);
  await at(page, 'files');
}

test('Next works before the configuration has arrived', () =>
  withPage({}, async ({ page, mock }) => {
    const release = mock.hold(CONFIG);
    await guideAtFiles(page);
    await page.getByText('Reading the configuration').waitFor();
    await next(page);
    await at(page, 'options');
    release();
    assert.equal(requests(mock, CHANGE), 0, 'nothing was edited');
  }));

test('a configuration that cannot be read is reported, read again on demand, and does not block the guide', () =>
  withPage({}, async ({ page, mock }) => {
    mock.state.failing = '/api/config';
    await guideAtFiles(page);
    await shows(page, '.wizard [role=alert]', /The disk is full/);
    await next(page);
    await at(page, 'options');
    await page.click('#wizard-back');
    await shows(page, '.wizard [role=alert]', /The disk is full/);
    mock.state.failing = '';
    await page.getByRole('button', { name: 'Try again' }).click();
    await sourceFolder(page).waitFor();
  }));

test('an older answer does not replace newer edits', () =>
  withPage({}, async ({ page, mock }) => {
    const release = mock.hold(CONFIG);
    await guideAtFiles(page);
    await waitFor(() => requests(mock, CONFIG) === 1, 'the first request', 30);
    await page.click('#wizard-back');
    await at(page, 'check');
    await next(page);
    await at(page, 'files');
    await sourceFolder(page).fill('/srv/edited');
    const answered = page.waitForEvent('requestfinished', (request) => request.url().endsWith('/api/config'));
    release();
    await answered;
    await painted(page);
    assert.equal(await sourceFolder(page).inputValue(), '/srv/edited');
  }));

test('edits are also applied when a later step is chosen by its name', () =>
  withPage({}, async ({ page, mock }) => {
    await guideAtFiles(page);
    await sourceFolder(page).fill('/srv/edited');
    await goTo(page, 'Start');
    await at(page, 'start');
    assert.equal(requests(mock, CHANGE), 1);
  }));

test('Back during a change stays in effect, and the step chosen last is shown', () =>
  withPage({}, async ({ page, mock }) => {
    const change = async () => {
      const release = mock.hold(CHANGE);
      const before_ = requests(mock, CHANGE);
      await sourceFolder(page).fill(`/srv/edited-${before_}`);
      await next(page);
      await waitFor(() => requests(mock, CHANGE) === before_ + 1, 'the change', 30);
      return async () => {
        release();
        await page.locator('.toast', { hasText: 'Symbols are being read again' }).first().waitFor();
      };
    };
    await guideAtFiles(page);
    const first = await change();
    await page.click('#wizard-back');
    await at(page, 'check');
    await first();
    await at(page, 'check');
    await next(page);
    await at(page, 'files');
    const second = await change();
    await goTo(page, 'Start');
    await at(page, 'start');
    await second();
    await at(page, 'start');
  }));

test('a late answer does not close a dialog that was opened since', () =>
  withPage({}, async ({ page, mock }) => {
    const settings = page.locator('.settings-dialog');
    await openSettings(page);
    await sourceFolder(page).fill('/srv/edited');
    const release = mock.hold(CHANGE);
    await settings.getByRole('button', { name: 'Apply' }).click();
    await settings.getByRole('button', { name: 'Cancel' }).click();
    await settings.waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await page.locator('.help-dialog').waitFor();
    release();
    await page.locator('.toast', { hasText: 'Symbols are being read again' }).waitFor();
    assert.equal(await page.locator('.help-dialog').count(), 1);
  }));

test('a drag out of a dialog does not close it; a click beside it does', () =>
  withPage({}, async ({ page }) => {
    await openSettings(page);
    await sourceFolder(page).fill('/srv/edited');
    const field = await sourceFolder(page).boundingBox();
    await page.mouse.move(field.x + 20, field.y + field.height / 2);
    await page.mouse.down();
    await page.mouse.move(5, field.y + field.height / 2);
    await page.mouse.up();
    assert.equal(await sourceFolder(page).inputValue(), '/srv/edited');
    await page.mouse.click(5, 300);
    await page.locator('.settings-dialog').waitFor({ state: 'detached' });
  }));

test('a pressed process is chosen even if the list is re-sorted before the release', () =>
  withPage({}, async ({ page, mock }) => {
    await page.keyboard.press('p');
    const rows = page.locator('.process-row[data-pid]');
    await rows.nth(9).waitFor();
    const pressed = await rows.nth(3).getAttribute('data-pid');
    const box = await rows.nth(3).boundingBox();
    await page.mouse.move(box.x + 300, box.y + box.height / 2);
    await page.mouse.down();
    mock.state.busiest = 40; // moves to the top, so the others move down
    const sent = await page.waitForRequest((request) => request.postData()?.includes('list_processes'));
    await (await sent.response()).finished();
    await painted(page);
    await page.mouse.up();
    await page.locator(`.process-row[data-pid="${pressed}"][aria-selected="true"]`).waitFor();
    await page.waitForFunction(
      (pid) => document.querySelector('.process-row[data-pid]').dataset.pid === pid,
      String(4711 + 40 * 13),
    );
  }));

test('an agent that connects while an older list of agents is in transit stays in the list', () =>
  withPage({ agent: false }, async ({ page, mock }) => {
    const AGENTS = 'GET /api/agents';
    await shows(page, '#connection', 'No agent');
    // When the stream reopens, the page requests the list.
    await mock.disconnect();
    const release = mock.hold(AGENTS, 10);
    const earlier = requests(mock, AGENTS);
    await mock.reconnect();
    await waitFor(() => mock.streams() > 0 && requests(mock, AGENTS) > earlier, 'the request for the list', 30);
    mock.connectAgent();
    await shows(page, '#connection', 'Connected');
    const answered = page.waitForEvent('requestfinished', (request) => request.url().endsWith('/api/agents'));
    release();
    await answered;
    await painted(page);
    assert.equal(await page.locator('#connection').textContent(), 'Connected');
  }));
