// Compares a recording, while it runs and after it has ended, with an older one, with its own past, and with
// sessions that do not exist. Nothing here depends on the number of samples in a given time.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { contentOf, launch, openPage, settled, shot, shows } from './browser.mjs';
import { Programs, waitFor } from './programs.mjs';

const programs = new Programs();
let browser;
let server;
let agent;
let session = '';
let older = '';

const api = async (path) => (await fetch(new URL(path, server.url))).json();
const record = (workload, samples) => {
  const running = programs.start(
    'flamewire-agent',
    '--server',
    '127.0.0.1',
    '--port',
    server.agentPort,
    '--pid',
    workload.pid,
    '--events',
    'cpu-clock',
    '--frequency',
    499,
  );
  const own = async () => {
    const { sessions } = await api('/api/sessions');
    return sessions.find((entry) => entry.id !== older && entry.samples > samples)?.id;
  };
  return { running, session: waitFor(own, `${samples} samples`, 90) };
};
const end = async ({ running }, id) => {
  running.child.kill('SIGTERM');
  await waitFor(async () => (await api(`/api/sessions/${id}`)).state === 'ended', 'the end', 60);
};

before(async () => {
  browser = await launch();
  server = await programs.server();
  const first = record(programs.start('shares-workload', 600, 1), 300);
  older = await first.session;
  await end(first, older);
  agent = record(programs.start('demo-workload', 0), 800);
  session = await agent.session;
});
after(async () => {
  await browser?.close();
  await programs.stop();
});

const drawn = (page, holds) =>
  waitFor(async () => {
    const shown = await page.evaluate(() => window.__flamewire?.settled() && window.__flamewire.frames());
    return shown && holds(shown) ? shown : null;
  }, `frames for which ${holds} holds`);
const stepOf = (frames, part) => frames.find((frame) => frame.name.includes(part))?.step;

async function walkThrough(state) {
  const { page, context, problems } = await openPage(browser, `${server.url}#flame?session=${session}`);
  await drawn(page, (frames) => frames.some((frame) => frame.name.includes('stage_weather') && frame.step === null));

  // Against the older session, with the widths of the shown session: new functions are red.
  await page.click('#compare-menu');
  await page.click(`[data-compare="${older}"]`);
  await drawn(page, (frames) => frames.some((frame) => frame.name.includes('stage_weather') && frame.step > 0));
  assert.match(page.url(), new RegExp(`base=${older}`));
  await shows(page, '#legend-changes', /▼ −.* pp.*\+.* pp ▲/);
  await shows(page, '#compare-menu', /against .*shares/);
  await shot(page, `diff-flame-dark-${state}`);
  const frame = (await drawn(page, (frames) => frames.some((one) => one.name.includes('stage_weather')))).find((one) =>
    one.name.includes('stage_weather'),
  );
  const box = await page.locator('.flame-canvas').boundingBox();
  await page.mouse.move(box.x + frame.x + Math.min(frame.width / 2, 20), box.y + frame.y + 8);
  await shows(page, '#frame-card', /Now.*Baseline.*Change.*pp.*New: the baseline has none of it/);
  await shot(page, `diff-card-dark-${state}`);
  await page.mouse.move(2, 2);

  // With the widths of the baseline: functions that are gone are blue.
  await page.getByRole('button', { name: 'Baseline', exact: true }).click();
  await drawn(
    page,
    (frames) => stepOf(frames, 'burn_40') < 0 && !frames.some((one) => one.name.includes('stage_weather')),
  );
  assert.match(page.url(), /width=baseline/);
  // The bottom-up order applies to both sides.
  await page.getByRole('button', { name: 'Bottom-up' }).click();
  await drawn(
    page,
    (frames) =>
      frames.some((one) => one.depth >= 1 && one.step < 0) &&
      !frames.some((one) => one.depth === 1 && one.name === 'main'),
  );
  await page.goBack();
  await page.click('#shape-menu');
  await page.getByRole('button', { name: 'Orange and purple' }).click();
  await page.keyboard.press('Escape');
  assert.match(page.url(), /contrast=orange-purple/);
  await drawn(page, (frames) => stepOf(frames, 'burn_40') < 0);
  await page.click('#theme');
  await shot(page, `diff-baseline-light-${state}`);

  // Rates per second.
  await page.getByRole('button', { name: 'Per second', exact: true }).click();
  await shows(page, '#legend-changes', /\/s/);
  await page.getByRole('button', { name: 'Shares', exact: true }).click();
  await shows(page, '#legend-changes', / pp/);

  // New functions and those that are gone are listed and saved.
  await page.click('#tab-functions');
  await page.locator('.diff-row:not(.row-head)').first().waitFor();
  await shot(page, `diff-functions-light-${state}`);
  await page.getByRole('button', { name: /^Gone \d/ }).click();
  const gone = page.locator('.diff-row', { hasText: 'burn_40' });
  await gone.waitFor();
  await page.waitForFunction(() =>
    [...document.querySelectorAll('.diff-row:not(.row-head)')].every((row) => row.querySelector('.presence-gone')),
  );
  assert.match(await gone.textContent(), /−\d+\.\d pp/);
  await page.getByRole('button', { name: /^New \d/ }).click();
  // It has no self weight, so it is far down in the list until it is searched for.
  await page.fill('.main [data-search]', 'stage_weather');
  await page.locator('.diff-row', { hasText: 'stage_weather(' }).first().waitFor();
  await page.waitForFunction(() =>
    [...document.querySelectorAll('.diff-row:not(.row-head)')].every((row) => row.querySelector('.presence-new')),
  );
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save what is shown as CSV' }).click();
  const csv = (await contentOf(await saved)).toString().split('\r\n');
  assert.match(csv[0], /^function,module,kind,presence,self change \(share\)/);
  assert.ok(csv.length > 2 && csv.slice(1, -1).every((line) => /,new,/.test(line)));
  await page.getByRole('button', { name: /^All \d/ }).click();

  if (state === 'replayed') {
    // The value of the row equals the sums over both exports.
    const own = async (id) => {
      const text = await (
        await fetch(new URL(`/api/export/session/${id}?value=weight&event=cpu-clock`, server.url))
      ).text();
      let all = 0;
      let part = 0;
      for (const line of text.trim().split('\n')) {
        const cut = line.lastIndexOf(' ');
        const weight = Number(line.slice(cut + 1));
        all += weight;
        if (line.slice(0, cut).includes('burn_40')) part += weight;
      }
      return part / all;
    };
    const change = (await own(session)) - (await own(older));
    await page.fill('.main [data-search]', 'burn_40');
    const row = page.locator('.diff-row:not(.row-head)', { hasText: 'burn_40' }).first();
    await row.waitFor();
    const shown = Number((await row.locator('.change-text').nth(1).textContent()).replace('−', '-').replace(' pp', ''));
    assert.ok(Math.abs(shown - change * 100) <= 0.051, `${shown} instead of ${change * 100}`);
    await page.fill('.main [data-search]', 'stage_weather');
  }

  // With the sides exchanged, new functions are gone ones.
  await page.click('#compare-menu');
  await page.click('[data-compare=exchange]');
  await page.waitForFunction(
    ([now, base]) => location.hash.includes(`session=${base}`) && location.hash.includes(`base=${now}`),
    [session, older],
  );
  await page.locator('.diff-row', { hasText: 'stage_weather(' }).first().locator('.presence-gone').waitFor();
  await page.goBack();
  await page.locator('.diff-row', { hasText: 'stage_weather(' }).first().locator('.presence-new').waitFor();

  // Without the baseline, the profile is shown alone again.
  await page.getByRole('button', { name: 'Stop comparing' }).click();
  await page.locator('.function-row:not(.row-head)').first().waitFor();
  assert.doesNotMatch(page.url(), /base=/);

  // Two threads of the session, chosen in the table of threads.
  await page.goto(`${server.url}#threads?session=${session}`);
  const thread = (name) =>
    page
      .locator('.thread-row:not(.row-head)')
      .filter({ has: page.locator('.strong', { hasText: name }) })
      .first();
  await thread('city-1').getByRole('checkbox').check();
  await thread('city-2').getByRole('checkbox').check();
  assert.match(await thread('city-1').textContent(), /(alive|ended)~\d+\.\d %/);
  await page.waitForFunction(() =>
    [...document.querySelectorAll('.thread-spark path')].some((path) => path.getAttribute('d').length > 20),
  );
  await shot(page, `threads-light-${state}`);
  await page.getByRole('button', { name: 'Compare the two' }).click();
  await page.waitForFunction(() => /^#flame\?.*&?tid=\d+&.*base_tid=\d+/.test(location.hash));
  await drawn(page, (frames) => frames.length > 3 && frames.every((one) => one.step !== null));
  await shows(page, '#compare-menu', /against thread city-/);

  // A range of time against the range of equal length before it.
  await page.goto(`${server.url}#flame?session=${session}&start=1000&end=1500`);
  await drawn(page, (frames) => frames.length > 3);
  await page.click('#compare-menu');
  await page.click('[data-compare=before]');
  await page.waitForFunction((id) => location.hash.includes(`base=${id}&base_start=500&base_end=1000`), session);
  await drawn(page, (frames) => frames.length > 3 && frames.every((one) => one.step !== null));

  // A session that does not exist is reported, with a button that removes it.
  await page.goto(`${server.url}#flame?session=${session}&base=no-such-session`);
  await page.getByRole('alert').getByRole('button', { name: 'Stop comparing' }).click();
  await drawn(page, (frames) => frames.some((one) => one.name.includes('stage_weather') && one.step === null));
  assert.deepEqual(problems, []);
  await context.close();
}

test('a running recording against an older one', () => walkThrough('live'));

test('a snapshot against the samples after it', async () => {
  const { page, context, problems } = await openPage(browser, `${server.url}#flame?session=${session}`);
  await drawn(page, (frames) => frames.some((frame) => frame.name.includes('stage_weather')));
  await page.click('#compare-menu');
  await page.click('[data-compare=snapshot]');
  const times = /start=(\d+).*base_end=(\d+)/.exec(page.url());
  assert.equal(times[1], times[2]);
  // Samples after the snapshot arrive.
  await drawn(page, (frames) => frames.some((frame) => frame.name.includes('stage_weather') && frame.step !== null));
  await page.getByRole('button', { name: 'Stop comparing' }).click();
  await settled(page);
  assert.deepEqual(problems, []);
  await context.close();
});

test('an ended recording against an older one', async () => {
  await end(agent, session);
  await walkThrough('replayed');
});
