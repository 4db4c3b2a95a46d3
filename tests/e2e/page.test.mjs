// The page alone with a mock server: states that are hard to create, large profiles, several tabs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contentOf, frames, inspect, openPage, pixels, settled, shot, shows } from './browser.mjs';
import { SESSION, unwindOf } from './mock_server.mjs';
import { pagesWithMock } from './pages.mjs';
import { waitFor } from './programs.mjs';

const withPage = pagesWithMock();

const replayed = `#flame?session=${SESSION}`;

const hoverFrame = async (page, frame) => {
  const box = await page.locator('.flame-canvas').boundingBox();
  return { x: box.x + frame.x + Math.min(frame.width / 2, 40), y: box.y + frame.y + frame.height / 2 };
};

test('the first screen shows the command for a target', () =>
  withPage({ size: 0, live: false, agent: false }, async ({ page }) => {
    await page.getByText('Connect a target').waitFor();
    await page.getByText(/flamewire-agent --server 127\.0\.0\.1 --pair [0-9a-f]{16}-[0-9a-f]{32}/).waitFor();
    await shows(page, '#connection', /No agent/);
  }));

test('the first screen shows why an agent was turned away', () =>
  withPage({ size: 0, live: false, agent: false }, async ({ page, mock }) => {
    await page.getByText('Connect a target').waitFor();
    mock.state.turnedAway = [
      {
        address: '192.0.2.7:4711',
        reason: 'it is a PerfLens agent: start the server with --accept-perflens',
        time: new Date().toISOString(),
      },
    ];
    await page.reload();
    await shows(
      page,
      '.start-card [data-turned-away]',
      /192\.0\.2\.7:4711 was turned away: it is a PerfLens agent: start the server with --accept-perflens\.$/,
    );
    await shot(page, 'turned-away-dark');
  }));

test('for an idle agent the page offers a choice of process', () =>
  withPage({ size: 0, live: false }, async ({ page, mock }) => {
    await page.getByText('What do you want to profile?').waitFor();
    await page.getByRole('button', { name: 'Choose a process' }).click();
    await page.fill('dialog [data-search]', 'postgres');
    await page.locator('.process-row[data-pid]').first().click();
    await page.click('#options');
    await page.fill('dialog input[name=frequency]', '499');
    await page.getByLabel('page-faults').check();
    await page.click('#start');
    await page.waitForFunction(() => !document.querySelector('dialog'));
    assert.ok(mock.state.live);
  }));

const asked = (page, cmd) =>
  page
    .waitForRequest((request) => request.url().includes('/api/agent/command') && request.postDataJSON().cmd === cmd)
    .then((request) => request.postDataJSON().args);

test('several processes are chosen by checkbox, with Ctrl, and by keyboard', () =>
  withPage({ size: 0, live: false }, async ({ page }) => {
    await page.getByRole('button', { name: 'Choose a process' }).click();
    const row = (pid) => page.locator(`.process-row[data-pid="${pid}"]`);
    const chosen = (...pids) =>
      page.waitForFunction(
        (wanted) =>
          [...document.querySelectorAll('.process-row[aria-selected="true"]')]
            .map((one) => one.dataset.pid)
            .sort()
            .join() === wanted,
        pids.join(),
      );
    await page.fill('dialog [data-search]', 'postgres');
    await row(4724).click();
    await row(4828).locator('input').click();
    await row(5036).click({ modifiers: ['Control'] });
    await chosen(4724, 4828, 5036);
    await shows(page, '#start', 'Profile postgres and 2 more');
    await row(4828).locator('input').click();
    await chosen(4724, 5036);
    // By keyboard: extend by one row, move on without selecting, add the row there.
    await row(4724).click();
    await page.locator('.processes').focus();
    await page.keyboard.press('Shift+ArrowDown');
    await chosen(4724, 4763);
    await page.keyboard.press('Control+ArrowDown');
    await chosen(4724, 4763);
    await page.keyboard.press('Space');
    await chosen(4724, 4763, 4828);
    await shot(page, 'process-picker-several-dark');
    const sent = asked(page, 'start');
    await page.keyboard.press('Enter');
    const { pid, pids } = await sent;
    assert.deepEqual({ pid, pids }, { pid: undefined, pids: [4724, 4763, 4828] });
  }));

test('events are chosen or typed, tracepoints can have a filter, and refusals of the agent appear in the dialog', () =>
  withPage({ size: 0, live: false }, async ({ page }) => {
    await page.getByRole('button', { name: 'Choose a process' }).click();
    await page.locator('.process-row[data-pid]').first().click();
    await page.click('#options');
    for (const name of ['off-cpu', 'run-queue', 'io-wait', 'woken-by', 'page-faults', 'minor-faults', 'major-faults'])
      await page.getByLabel(name).waitFor();
    await page.getByLabel('off-cpu').check();
    assert.equal(await page.locator('input[name=filter]').count(), 0);
    await page.fill('input[name=others]', 'nosuch:event');
    await page.fill('input[name=filter]', 'prev_pid == 42');
    await shot(page, 'recording-options-dark');
    await page.click('#start');
    await shows(page, 'dialog [role=alert]', /^It does not start: events: this kernel has no tracepoint nosuch:event$/);
    await page.fill('input[name=others]', 'sched:sched_switch');
    await shows(page, '.foot-options', '99 Hz · auto · off-cpu, sched:sched_switch');
    const sent = asked(page, 'start');
    await page.click('#start');
    const { events, filter } = await sent;
    assert.deepEqual({ events, filter }, { events: ['off-cpu', 'sched:sched_switch'], filter: 'prev_pid == 42' });
    await page.waitForFunction(() => !document.querySelector('dialog'));
  }));

test('a recording uses what the dialog shows: the options of the agent, or else the defaults', () =>
  withPage({ size: 0, live: false }, async ({ page, mock }) => {
    mock.state.agentSettings = { frequency: 499, unwind: 'fp', event_list: 'off-cpu,r01c2:u', kernel: false };
    await page.getByRole('button', { name: 'Choose a process' }).click();
    await shows(page, '.foot-options', '499 Hz · fp · off-cpu,r01c2:u');
    await page.locator('.process-row[data-pid="4711"]').click();
    await page.click('#options');
    assert.equal(await page.locator('input[name=kernel]').isChecked(), false);
    await page.fill('input[name=others]', '');
    await shows(page, '.foot-options', '499 Hz · fp · CPU cycles, or the clock');
    const sent = asked(page, 'start');
    await page.click('#start');
    assert.deepEqual(await sent, { pid: 4711, frequency: 499, unwind: 'fp', events: [], filter: '', kernel: false });
    await page.waitForFunction(() => !document.querySelector('dialog'));
  }));

test('a container, a control group or some CPUs are chosen instead of a process', () =>
  withPage({ size: 0, live: false }, async ({ page }) => {
    await page.getByRole('button', { name: 'Choose a process' }).click();
    const group = page.locator('.process-group[data-container="9f86d081884c7d65"]');
    // Sorted by CPU use, each with its processes below it.
    await shows(page, '.process-group', /No container/);
    await page.fill('dialog [data-search]', '9f86d081884c');
    await group.waitFor();
    assert.equal(await page.locator('.process-group').count(), 1);
    assert.match(await group.textContent(), /12container 9f86d081884c$/);
    await group.click();
    assert.equal(await group.getAttribute('aria-selected'), 'true');
    await shows(page, '#start', /^Profile container 9f86d081884c$/);
    await page.fill('dialog input[name=cgroup]', 'system.slice');
    assert.equal(await group.getAttribute('aria-selected'), 'false');
    await page.fill('dialog input[name=cpus]', 'all');
    assert.equal(await page.locator('#start').isDisabled(), true);
    await page.fill('dialog input[name=cpus]', '0-3');
    const sent = asked(page, 'start');
    await page.click('#start');
    const { cgroups, cpus, pid, all, container } = await sent;
    assert.deepEqual(
      { cgroups, cpus, pid, all, container },
      { cgroups: ['system.slice'], cpus: '0-3', pid: undefined, all: undefined, container: undefined },
    );
  }));

test('a stack of 2,000 frames scrolls, and only its visible part is drawn', () =>
  withPage({ live: false, notices: false }, async ({ page, mock }) => {
    await page.route('**/api/flamegraph*', async (route) => {
      const depth = 2000;
      const list = (make) => Array.from({ length: depth + 1 }, (_, i) => make(i));
      const zeros = list(() => 0);
      await route.fulfill({
        json: {
          session: mock.id,
          event: 'cycles',
          unit: 'ns',
          data_version: 1,
          total: { samples: 10, weight: 1e7 },
          newest_ns: 0,
          names: ['', ...Array.from({ length: 10 }, (_, i) => `recurse_${i}`)],
          modules: [''],
          files: [''],
          nodes: {
            parent: list((i) => Math.max(0, i - 1)),
            name: list((i) => (i === 0 ? 0 : 1 + (i % 10))),
            module: zeros,
            kind: zeros,
            file: zeros,
            line: zeros,
            self: list((i) => (i === depth ? 1e7 : 0)),
            total: list(() => 1e7),
            samples: list(() => 10),
            self_samples: list((i) => (i === depth ? 10 : 0)),
            pruned: zeros,
          },
        },
      });
    });
    await page.goto(`${mock.url}#flame?session=${mock.id}`);
    await page.reload();
    await settled(page);
    assert.ok((await frames(page)).length < 100);
    await page.evaluate(() => document.querySelector('.flame-scroller').scrollTo(0, 1e9));
    await page.waitForFunction(() => window.__flamewire.frames().some((frame) => frame.depth === 2000));
    // A click in the minimap scrolls there.
    const map = await page.locator('.minimap').boundingBox();
    await page.mouse.click(map.x + 20, map.y + map.height / 2);
    await page.waitForFunction(() => window.__flamewire.frames().some((frame) => frame.depth === 1000));
    await shot(page, 'minimap-dark');
    await page.mouse.click(map.x + 20, map.y + map.height - 1);
    await page.waitForFunction(() => window.__flamewire.frames().some((frame) => frame.depth === 2000));
    // A zoom to the innermost frame is in the URL and survives a reload.
    const bottom = (await frames(page)).find((frame) => frame.depth === 2000);
    const at = await hoverFrame(page, bottom);
    await page.mouse.click(at.x, at.y);
    await page.waitForFunction(() => window.__flamewire.zoomPath().length === 2000);
    await page.reload();
    await settled(page);
    assert.equal((await page.evaluate(() => window.__flamewire.zoomPath())).length, 2000);
    await page.getByText('1994 more').waitFor();
  }));

for (const theme of ['dark', 'light']) {
  test(`the page shows how complete the stacks are, in total and per process (${theme})`, () =>
    withPage({ theme, live: false, hash: replayed }, async ({ page }) => {
      await settled(page);
      // 41,080 + 5,100 + 1,896 whole and 88 joined, of 48,211.
      await shows(
        page,
        '#status-stacks',
        'Stacks auto: dwarf + fp + hybrid · 99.9 % whole · 88 joined · 24 truncated · 15 open-ended · 8 stopped',
      );
      await page.click('#status-stacks');
      const panel = page.locator('#stacks-panel');
      await panel.waitFor();
      const text = await panel.textContent();
      assert.match(text, /Stacks of 17 processes/);
      assert.match(text, /Requested: auto; copies of up to 16\.0 KiB a stack, at most 1,024 frames\./);
      assert.match(text, /truncated24 \(0\.05 %\)/);
      for (const remedy of ['--stack-size 65528', '--max-depth 4096', 'kernel.perf_event_max_stack'])
        assert.ok(text.includes(remedy), remedy);
      const rows = await panel.locator('[data-pid]').allTextContents();
      assert.equal(rows.length, 4);
      assert.match(
        rows[0],
        /^city-demo 4711dwarfOf the code that was sampled 86 % keeps no frame pointer\.41,200 stacks: 99\.9 % whole · 88 joined · 24 truncated · 8 stopped; 24 frames a stack, 5\.18 KiB copied$/,
      );
      assert.match(rows[1], /^postgres 4724fp.*5,100 stacks: all whole; 18 frames a stack$/);
      assert.match(rows[3], /11 stacks: all open-ended/);
      assert.match(text, /and 13 processes more, with fewer samples/);
      await shot(page, `stacks-${theme}`);
      await page.keyboard.press('Escape');
      await panel.waitFor({ state: 'detached' });
    }));

  test(`missing callers are drawn and explained (${theme})`, () =>
    withPage({ theme, live: false, truncated: true, hash: replayed }, async ({ page }) => {
      await settled(page);
      const cut = (await frames(page)).find((frame) => frame.name === '[truncated]');
      assert.ok(cut && cut.depth === 1 && cut.width > 60);
      const other = (await frames(page)).find((frame) => frame.depth === 2 && frame.width > 60);
      // Hatched and with a broken edge: several colors along its middle and its edge. A function has one color.
      const canvas = await page.locator('.flame-canvas').boundingBox();
      const colours = async (frame, dy) =>
        new Set(
          (
            await pixels(page, {
              x: canvas.x + Math.ceil(frame.x + frame.width - 30),
              y: canvas.y + Math.round(frame.y + dy),
              width: 20,
              height: 1,
            })
          ).map(String),
        ).size;
      await waitFor(async () => (await colours(cut, 9)) > 1, 'hatching');
      assert.ok((await colours(cut, 0)) > 1);
      assert.equal(await colours(other, 1), 1);
      const at = await hoverFrame(page, cut);
      await page.mouse.move(at.x, at.y);
      await page.locator('.card').waitFor();
      const text = await page.textContent('.card');
      assert.match(
        text,
        /The callers of these stacks are missing: the stacks are deeper than what was recorded \(copies of up to 16\.0 KiB a stack, at most 1,024 frames\)/,
      );
      for (const remedy of ['--stack-size 65528', '--max-depth 4096', 'sysctl -w kernel.perf_event_max_stack=1024'])
        assert.ok(text.includes(remedy), remedy);
      await shows(page, '.legend', /Callers missing/);
      await shot(page, `truncated-${theme}`);
    }));
}

test('stacks that ended without a root are distinguished from truncated ones', () =>
  withPage({ live: false, truncated: '[incomplete]', hash: replayed }, async ({ page }) => {
    await settled(page);
    const end = (await frames(page)).find((frame) => frame.name === '[incomplete]');
    const at = await hoverFrame(page, end);
    await page.mouse.move(at.x, at.y);
    await page.locator('.card').waitFor();
    const text = await page.textContent('.card');
    assert.match(text, /The callers of these stacks are missing: a frame could not be unwound/);
    assert.ok(!text.includes('--stack-size'));
  }));

test('without stack counts the status bar names only the mode', () =>
  withPage(
    { live: false, hash: replayed, unwind: { ...unwindOf(0), unwind: 'fp', stack_bytes: 0, max_depth: 0 } },
    async ({ page }) => {
      await settled(page);
      await shows(page, '#status-stacks', 'Stacks fp');
      await page.click('#status-stacks');
      await page.getByText('No user stack was taken yet').waitFor();
      assert.ok(!(await page.textContent('.legend')).includes('Callers missing'));
    },
  ));

test('zooming into a pruned subtree fetches it', () =>
  withPage({ live: false, notices: false, size: 4000, pruneShare: 0.01 }, async ({ page, mock }) => {
    await page.goto(`${mock.url}#flame?session=${mock.id}`);
    await page.reload();
    await settled(page);
    const all = await frames(page);
    // The smallest frame on the canvas that lacks several callees. Pruning is relative to the zoomed frame.
    const graph = await (await page.request.get(`${mock.url}api/flamegraph`)).json();
    const lacking = graph.nodes.pruned
      .map((_, i) => i)
      .filter((i) => i > 0 && graph.nodes.pruned[i] >= 4)
      .sort((a, b) => graph.nodes.total[a] - graph.nodes.total[b]);
    const target = lacking
      .map((i) =>
        all.find(
          (frame) =>
            frame.total === graph.nodes.total[i] &&
            frame.name === graph.names[graph.nodes.name[i]] &&
            frame.width > 20 &&
            frame.depth < 16,
        ),
      )
      .find((frame) => frame !== undefined);
    assert.ok(target);
    const at = await hoverFrame(page, target);
    await page.mouse.click(at.x, at.y);
    await page.waitForFunction(() => window.__flamewire.zoomPath().length > 0);
    await settled(page);
    await page.waitForTimeout(400);
    assert.ok(
      mock.state.requests.some((request) => request.includes('path=')),
      'the subtree was not requested',
    );
    const zoomed = (await frames(page)).filter((frame) => frame.depth > target.depth);
    const before = all.filter(
      (frame) =>
        frame.depth > target.depth && frame.x >= target.x - 1 && frame.x + frame.width <= target.x + target.width + 1,
    );
    assert.ok(zoomed.length > before.length, `${zoomed.length} frames below, ${before.length} before`);
    await page.keyboard.press('Escape');
    await page.waitForFunction((depth) => window.__flamewire.zoomPath().length === depth - 1, target.depth);
  }));

test('live data does not move the zoomed frame', () =>
  withPage({ hz: 6 }, async ({ page }) => {
    await settled(page);
    const target = (await frames(page)).filter((frame) => frame.depth === 3).sort((a, b) => b.width - a.width)[0];
    const at = await hoverFrame(page, target);
    await page.mouse.click(at.x, at.y);
    await page.waitForTimeout(500);
    const seen = await page.evaluate(
      () =>
        new Promise((done) => {
          const widths = new Set();
          const versions = new Set();
          const begin = performance.now();
          const look = () => {
            const path = window.__flamewire.zoomPath();
            const frame = window.__flamewire.frames().find((f) => f.depth === path.length && f.name === path.at(-1));
            widths.add(frame ? Math.round(frame.width) : 0);
            versions.add(window.__flamewire.state().dataVersion);
            if (performance.now() - begin < 2000) requestAnimationFrame(look);
            else done({ widths: [...widths], versions: versions.size });
          };
          look();
        }),
    );
    assert.equal(seen.widths.length, 1, `the zoomed frame changed its width: ${seen.widths}`);
    assert.ok(seen.versions > 2, 'too few versions were drawn');
  }));

test('arrow keys walk, S opens the source, Back returns', () =>
  withPage({ live: false, notices: false }, async ({ page, mock }) => {
    await page.goto(`${mock.url}#flame?session=${mock.id}`);
    await page.reload();
    await settled(page);
    await page.focus('.flame-scroller');
    for (let i = 0; i < 4; i++) {
      await page.keyboard.press('ArrowDown');
      const place = await page.textContent('.card').catch(() => '');
      if (/\.cc:\d+/.test(place ?? '')) break;
    }
    await page.keyboard.press('s');
    await page.waitForFunction(() => location.hash.startsWith('#source'));
    await page.goBack();
    await page.waitForFunction(() => location.hash.startsWith('#flame'));
    await page.keyboard.press('2');
    await page.getByText('112 functions').waitFor();
  }));

test('an invalid expression is searched as text and reported', () =>
  withPage({ live: true }, async ({ page }) => {
    await settled(page);
    await page.keyboard.press('/');
    await page.keyboard.type('visit(');
    await page.locator('.search-error').waitFor();
    assert.match(await page.getAttribute('.main [data-search]', 'title'), /plain text/);
  }));

test('for a missing source the page shows the places that were searched and offers a path map', () =>
  withPage({ hash: '#source?file=/build/city/weather.cc' }, async ({ page, mock }) => {
    await page.getByText('/srv/sysroot/build/city/weather.cc').waitFor();
    assert.equal(await page.inputValue('.source-missing input >> nth=0'), '/build/city=/home/me/city');
    await page.getByRole('button', { name: 'Add path map' }).click();
    await page.locator('.source-line[data-line="9"]').waitFor();
    assert.deepEqual(mock.state.pathMap, ['/build/city=/home/me/city']);
  }));

test('an error of the server is shown and goes away', () =>
  withPage({ hash: '#functions' }, async ({ page, mock }) => {
    mock.state.failing = '/api/functions';
    await page.reload();
    await page.getByText('The disk is full').waitFor();
    mock.state.failing = '';
    await page.getByText('112 functions').waitFor();
  }));

test('a lost connection is reported, and everything resumes after the reconnect', () =>
  withPage({}, async ({ page, mock }) => {
    await settled(page);
    await mock.disconnect();
    // The banner. A view that was being refreshed may show the same text.
    await page.locator('.offline', { hasText: 'The server does not answer' }).waitFor();
    assert.ok((await frames(page)).length > 10, 'the last picture must stay');
    const seen = (await inspect(page)).dataVersion;
    await mock.reconnect();
    await page.waitForFunction(
      (version) => window.__flamewire.state().stream === 'open' && window.__flamewire.state().dataVersion > version,
      seen,
    );
    await page.waitForFunction(() => !document.body.textContent.includes('The server does not answer'));
  }));

test('three tabs share one event stream, even after the first is closed', () =>
  withPage({}, async ({ browser, page, context, mock, problems }) => {
    await settled(page);
    const others = [await openPage(browser, mock.url, { context }), await openPage(browser, mock.url, { context })];
    for (const other of others) await settled(other.page);
    await page.waitForTimeout(500);
    assert.equal(mock.streams(), 1);
    await page.close();
    const follower = others[1].page;
    const before = (await inspect(follower)).dataVersion;
    await follower.bringToFront();
    await follower.waitForFunction((version) => window.__flamewire.state().dataVersion > version + 4, before);
    await follower.waitForTimeout(500);
    assert.equal(mock.streams(), 1);
    assert.deepEqual([...problems, ...others.flatMap((other) => other.problems)], []);
  }));

test('counters without a value have an explanation, and health has thresholds', () =>
  withPage({ size: 200, theme: 'dark', hash: `#counters?session=${SESSION}` }, async ({ page }) => {
    const row = (name) => page.locator(`tr[data-counter="${name}"]`);
    await row('task-clock').waitFor();
    assert.match(await row('cycles').textContent(), /cycles\s*not supported/);
    assert.doesNotMatch(await row('cycles').textContent(), /\d/);
    assert.match(await row('branch-misses').textContent(), /123,456.*61\.7 k\/s.*2\.50 % of all branches.*49\.7 %/);
    assert.match(await row('task-clock').textContent(), /2\.00 s.*1\.333 CPUs utilized.*98\.2 %/);
    assert.match(await row('task-clock').locator('path').getAttribute('d'), /^M0\.0 .*H120\.0$/);
    const grades = await page
      .locator('[data-health]')
      .evaluateAll((cards) =>
        Object.fromEntries(
          cards.map((card) => [card.dataset.health, card.className.match(/health-(ok|warning|critical)/)[1]]),
        ),
      );
    assert.deepEqual([grades.CPU, grades.Memory, grades.Load, grades.Temperature], ['critical', 'warning', 'ok', 'ok']);
    assert.match(await page.locator('[data-health="Temperature"]').textContent(), /–/);
    await shot(page, 'counters-dark');
    await page.getByRole('button', { name: 'By thread' }).click();
    await page.getByText('Nothing was counted by thread yet').waitFor();
  }));

test('threads show how they spent their time', () =>
  withPage({ size: 200, hash: `#threads?session=${SESSION}` }, async ({ page }) => {
    const row = (name) => page.locator('.thread-row:not(.row-head)', { hasText: name });
    await page.getByRole('button', { name: 'States', exact: true }).click();
    assert.match(await row('city-1').textContent(), /city-147117\.50 s2\.50 s0 s0 s$/);
    assert.match(await row('city-2').textContent(), /city-247120 s0 s5\.00 s5\.00 s$/);
    await row('city-2').getByLabel('Run 0.0 %, Runnable 0.0 %, Blocked 50.0 %, I/O wait 50.0 %').waitFor();
    // The first half of the bar has one color and the second half another, over the whole width.
    const colour = async (left) => {
      const box = await row('city-2').locator('.state-bar').boundingBox();
      const [pixel] = await pixels(page, {
        x: Math.round(box.x + left * box.width),
        y: Math.round(box.y + box.height / 2),
        width: 1,
        height: 1,
      });
      return JSON.stringify(pixel);
    };
    const [start, early, late, end] = [await colour(0.02), await colour(0.48), await colour(0.52), await colour(0.98)];
    assert.equal(start, early);
    assert.equal(late, end);
    assert.notEqual(early, late);
    await shot(page, 'thread-states-dark');
    await row('city-2').click();
    await page.waitForFunction(() => location.hash.includes('4712'));
    assert.equal(await row('city-2').getAttribute('aria-selected'), 'true');
    // Times of waits for a CPU and of runs, and the reasons for leaving it. A thread that never waited has no times.
    await page.getByRole('button', { name: 'Scheduling', exact: true }).click();
    await shows(
      page,
      '.sched-row:not(.row-head)',
      /^city-147111,2342\.00 ms6\.00 ms8\.00 ms1,2974\.00 ms12\.0 ms16\.0 ms1,234567$/,
    );
    assert.match(await row('city-2').textContent(), /^city-247120–––1,297/);
    await shot(page, 'thread-scheduling-dark');
    await page.getByRole('button', { name: 'Samples', exact: true }).click();
    await page.locator('.thread-spark').first().waitFor();
  }));

test('counters are drawn on the time axis, copied and saved', () =>
  withPage({ size: 200, hash: `#counters?session=${SESSION}` }, async ({ page }) => {
    const row = (name) => page.locator(`tr[data-counter="${name}"]`);
    await row('task-clock').waitFor();
    assert.equal(await row('cycles').locator('.spark-button').count(), 0);
    await row('task-clock').locator('.spark-button').click();
    await page.waitForFunction(() => window.__flamewire.timeline().lines.length === 1);
    const [line] = (await page.evaluate(() => window.__flamewire.timeline())).lines;
    assert.deepEqual(line.time, [0, 500, 1000, 1500, 20_000, 30_000]);
    assert.deepEqual(
      line.value.map((value) => value && Number(value.toFixed(6))),
      [1, 1.8, 1.2, null, 1, null],
    );
    await shows(page, '[data-plot="counter:task-clock"]', /task-clock 1\.00 CPUs/);
    await page.click('#plot-menu');
    await page.locator('.plot-choices').getByText('CPU', { exact: true }).click();
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => window.__flamewire.timeline().lines.length === 2);
    await page.reload();
    await page.waitForFunction(() => window.__flamewire.timeline().lines.length === 2);
    await shot(page, 'timeline-lines-dark');
    await page.locator('[data-plot="health:cpu"] .chip-clear').click();
    await page.waitForFunction(() => window.__flamewire.timeline().lines.length === 1);
    const saved = page.waitForEvent('download');
    await page.click('#export-menu');
    await page.getByRole('button', { name: 'CSV' }).click();
    const file = await saved;
    assert.equal(file.suggestedFilename(), `${SESSION}-counters.csv`);
    const lines = (await contentOf(file)).toString().split('\r\n');
    assert.equal(lines[1], 'whole target,cycles,cycles,not supported,,,');
    assert.equal(lines[2], 'whole target,branch-misses,misses,123456,61728,2.50 % of all branches,49.70');
  }));

test('health has tables, and data that the agent does not collect can be enabled', () =>
  withPage({ size: 200, hash: '#counters' }, async ({ page, mock }) => {
    const group = (name) => `[data-health-group="${name}"]`;
    await shows(page, `${group('network')} tbody`, /eth02\.00 MiB\/s100\/s0 B\/s/);
    await shows(page, `${group('threads')} tbody`, /city-1 \(4711\)R90\.0 %/);
    await shows(page, `${group('processes')} tbody`, /city \(4711\)180\.0 %20\.0 MiB/);
    assert.equal(await page.locator('.health-row-critical').count(), 1);
    await shows(page, group('disk'), /The agent does not read this now/);
    await page.locator(`${group('disk')} input`).click();
    await shows(page, group('disk'), /The first figures come with the next two rounds/);
    assert.ok(mock.state.metrics.disk);
    await shot(page, 'health-dark');
  }));

test('the time axis follows live data until it is zoomed, moved or brushed by pointer or keys', () =>
  withPage({ hash: `#flame?session=${SESSION}` }, async ({ page }) => {
    await settled(page);
    const axis = () => page.evaluate(() => window.__flamewire.timeline());
    const until = (condition) =>
      waitFor(async () => condition(await axis(), (await inspect(page)).view), `${condition}`);
    await until((t) => t.follows && t.span.from === 0 && t.span.to === 42000 && t.samples.length > 100);
    const box = await page.locator('#time-strip').boundingBox();
    const at = (share) => [box.x + box.width * share, box.y + box.height / 2];
    // Zooming with the wheel keeps the time below the pointer in place.
    await page.mouse.move(...at(0.25));
    for (let i = 0; i < 3; i++) await page.mouse.wheel(0, -300);
    await until((t) => !t.follows && t.span.to - t.span.from < 10000);
    const zoomed = await axis();
    const under = zoomed.span.from + 0.25 * (zoomed.span.to - zoomed.span.from);
    assert.ok(Math.abs(under - 10_500) < 60, `${under} is under the pointer`);
    await until((t) => t.slice < 100 && t.start <= t.span.from);
    assert.match(page.url(), /axis=\d+-\d+/);
    // The hint describes the mark below the pointer.
    await page.mouse.move(
      box.x + ((9600 - zoomed.span.from) / (zoomed.span.to - zoomed.span.from)) * box.width,
      box.y + 5,
    );
    await shows(page, '.strip-hint', /118 samples lost: Kernel buffer full \(cycles\)/);
    await shot(page, 'timeline-zoomed-dark');
    await page.mouse.wheel(200, 0);
    await until((t) => t.span.from > zoomed.span.from);
    await page.keyboard.press('0');
    await until((t) => t.follows && t.span.from === 0);
    // Dragging selects a range. Keys move the range by its own width and zoom the axis to it.
    await page.mouse.move(...at(0.25));
    await page.mouse.down();
    await page.mouse.move(...at(0.5), { steps: 4 });
    await page.mouse.up();
    await until((t, v) => Math.abs(v.start - 10500) < 60 && Math.abs(v.end - 21000) < 60);
    const { start, end } = (await inspect(page)).view;
    await page.keyboard.press(']');
    await until((t, v) => v.start === end && v.end === 2 * end - start);
    await page.keyboard.press('z');
    await until((t, v) => t.span.from < v.start && t.span.to > v.end && t.span.to - t.span.from < 14000);
    await page.keyboard.press('-');
    await page.keyboard.press(',');
    await page.locator('#time-strip').dblclick({ position: { x: 200, y: 30 } });
    await until((t, v) => v.start === null && v.end === null);
    // Where only steps of 2 s are left, a range consists of whole steps, and the hint says so. The steps begin at odd
    // seconds of the session, because the target's clock is at 1 s at ms 0.
    await page.keyboard.press('0');
    await until((t) => t.span.from === 0 && t.span.to === 42000);
    await page.mouse.move(...at(2000 / 42000));
    await shows(page, '.strip-hint', /Only steps of 2\.00 s are left of this time/);
    await page.mouse.down();
    await page.mouse.move(...at(4000 / 42000), { steps: 4 });
    await page.mouse.up();
    await until((t, v) => v.start === 1000 && v.end === 5000);
    await page.locator('#time-strip').dblclick({ position: { x: 600, y: 30 } });
    await until((t, v) => v.start === null);
    // A zoom to the newest part follows the session.
    await page.locator('#time-strip').focus();
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('End');
    await until((t) => t.follows && t.span.to === 42000);
    assert.match(page.url(), /axis=last-\d+/);
    // Threads and CPUs have separate lanes.
    await page.getByRole('button', { name: 'CPUs', exact: true }).click();
    await until((t) => t.rows === 16);
    assert.equal(await page.locator('.strip-lane').count(), 12);
    await page.getByText('and 7 less busy').waitFor();
    await shot(page, 'timeline-lanes-dark');
  }));

test('losses and notices are visible', () =>
  withPage({}, async ({ page }) => {
    await settled(page);
    await shows(page, '#status-lost', /127 \(0\.\d\d %\)/);
    await page.click('#status-lost');
    await page.getByText('Kernel buffer full').waitFor();
    await page.getByText('118 (').waitFor();
    await page.getByText('perf_event_paranoid is 2').waitFor();
    await page.getByRole('button', { name: '1 more' }).click();
    await page.getByText('999 Hz at most').waitFor();
  }));

test('warnings about the view are among the notices, and stay dismissed while their share changes', () => {
  const warning = { code: 'unnamed', text: '25.30% has no function names', remedy: 'give it with --binary FILE' };
  return withPage({ live: true, notices: false, warnings: [warning] }, async ({ page }) => {
    await settled(page);
    const shown = page.locator('.notice', { hasText: 'has no function names' });
    await shown.getByText('give it with --binary FILE').waitFor();
    await shown.getByRole('button', { name: 'Dismiss' }).click();
    warning.text = '25.40% has no function names';
    await page.waitForResponse((response) => response.url().includes('/api/warnings'));
    await settled(page);
    assert.equal(await shown.count(), 0);
  });
});

test('addresses that wait for names are counted under Unresolved', () =>
  withPage({}, async ({ page, mock }) => {
    await settled(page);
    await page.click('#status-unresolved');
    await page.getByRole('heading', { name: 'Symbols' }).waitFor();
    assert.equal(await page.locator('#names-pending').count(), 0);
    mock.state.pendingNames = 12;
    await page.reload();
    await settled(page);
    await page.click('#status-unresolved');
    await shows(page, '#names-pending', /^12 addresses waiting for names\.$/);
    await shot(page, 'names-pending-dark');
  }));

test('data that wait for the disk are reported before there is a session', () =>
  withPage({ size: 0, live: false }, async ({ page, mock }) => {
    mock.state.problem =
      'What it records cannot be stored: write: No space left on device: free some space under the data directory. It waits with the agent.';
    await page.reload();
    await page.locator('.notice', { hasText: '127.0.0.1:50412: What it records cannot be stored' }).waitFor();
    mock.state.problem = '';
    await page.reload();
    await page.locator('#connection').waitFor();
    assert.equal(await page.locator('.notice').count(), 0);
  }));

test('sessions are found by name, downloaded and deleted', () =>
  withPage({ hash: '#sessions' }, async ({ page }) => {
    await page.locator('tr[data-session]').nth(3).waitFor();
    await page.fill('.main [data-search]', '4002');
    await page.waitForFunction(() => document.querySelectorAll('tr[data-session]').length === 1);
    await page.getByTitle('Download nginx (4002)').click();
    assert.match(
      await page.getByText('Collapsed stacks').getAttribute('href'),
      /\/api\/export\/session\/.*-2\?format=collapsed/,
    );
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Delete nginx (4002)' }).click();
    await page.click('#confirm-delete');
    await page.getByText('No session matches').waitFor();
  }));

test('everything is accessible in a narrow window', () =>
  withPage({ width: 900, height: 600 }, async ({ page }) => {
    await settled(page);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 900, `the page is ${wide} pixels wide`);
    // The parts of the status bar do not overlap, and the panel is inside the window.
    const items = await page.$$eval('.status > *', (list) =>
      list
        .map((item) => item.getBoundingClientRect())
        .filter((r) => r.width > 0)
        .map((r) => [r.left, r.right]),
    );
    items.reduce((end, [left, right]) => (assert.ok(left >= end - 1, 'parts of the status bar overlap'), right), 0);
    await page.click('#status-stacks');
    const panel = await page.locator('.stacks-panel').boundingBox();
    assert.ok(panel.x >= 0 && panel.x + panel.width <= 900 && panel.y >= 0, JSON.stringify(panel));
    await page.keyboard.press('Escape');
    await page.locator('#stop').waitFor();
  }));

test('the tools of the flame graph do not overlap in windows of any width', () =>
  withPage({ live: false, hash: replayed }, async ({ page }) => {
    await settled(page);
    await page.locator('#group-by').selectOption('container');
    for (const width of [1000, 1100, 1200, 1300, 1400]) {
      await page.setViewportSize({ width, height: 800 });
      const parts = await page.$$eval('.flame-view .toolbar > *', (list) =>
        list
          .map((one) => one.getBoundingClientRect())
          .filter((one) => one.width > 0)
          .map(({ left, right, top }) => ({ left, right, top })),
      );
      for (const [i, { left, right, top }] of parts.entries()) {
        assert.ok(left >= 0 && right <= width, `part ${i} ends at ${right} of ${width}`);
        if (i > 0 && Math.abs(parts[i - 1].top - top) < 20)
          assert.ok(left >= parts[i - 1].right - 1, `tools overlap at ${left} in a window of ${width}`);
      }
      // The longest option fits into its box, and the box into its label.
      const room = await page.$eval('#group-by', (box) => {
        const text = Object.assign(document.createElement('span'), { textContent: 'container' });
        text.style.font = getComputedStyle(box).font;
        box.parentElement.append(text);
        const [needs, has, label] = [
          text.getBoundingClientRect().width,
          box.getBoundingClientRect(),
          box.parentElement.getBoundingClientRect(),
        ];
        text.remove();
        return { needs, has: has.width - 36, inside: has.right <= label.right + 1 && label.height < 32 };
      });
      assert.ok(room.has >= room.needs && room.inside, `${JSON.stringify(room)} at ${width}`);
      await shot(page, `flame-tools-${width}`);
    }
  }));
