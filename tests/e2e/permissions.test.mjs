// The guide when permissions are missing: it shows what is missing and the command that helps, continues to a flame
// graph of what is permitted, and notices an applied remedy. The agents really lack the permissions.
import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { frames, launch, openPage } from './browser.mjs';
import { Programs, built, root, waitFor } from './programs.mjs';

const shots = process.env.FLAMEWIRE_SCREENSHOTS;
const asRoot = process.getuid() === 0;
let browser;
let copies; // folder of programs that every user may start

before(async () => {
  browser = await launch();
  copies = mkdtempSync(join(tmpdir(), 'flamewire-nobody-'));
  for (const name of ['flamewire-agent', 'shares-workload']) copyFileSync(built(name), join(copies, name));
  for (const path of [copies, join(copies, 'flamewire-agent'), join(copies, 'shares-workload')]) chmodSync(path, 0o755);
});
after(async () => {
  await browser?.close();
  rmSync(copies, { recursive: true, force: true });
});

/** Changes settings of the kernel, and restores them after `body`. */
async function withSysctls(values, body) {
  const file = (name) => `/proc/sys/kernel/${name}`;
  const set = (name, value) => writeFileSync(file(name), `${value}\n`);
  const earlier = Object.keys(values).map((name) => [name, readFileSync(file(name), 'utf8').trim()]);
  try {
    for (const [name, value] of Object.entries(values)) set(name, value);
    return await body(set);
  } finally {
    for (const [name, value] of earlier) set(name, value);
  }
}

const asNobody = (...command) => ['/usr/bin/setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', ...command];

/** A first visit with the agent of `agent(port)` and one workload, up to the guide's step that checks what works. */
async function visit(name, agent, workload, body) {
  const programs = new Programs();
  let page;
  try {
    const server = await programs.server();
    const target = programs.start(...workload);
    const opened = await openPage(browser, server.url, { theme: 'dark', firstRun: true });
    page = opened.page;
    const shot = async (what) => {
      if (!shots) return;
      mkdirSync(shots, { recursive: true });
      await page.screenshot({ path: join(shots, `permissions-${name}-${what}.png`) });
    };
    const next = async (step) => {
      await page.locator('#wizard-next:not(:disabled)').click();
      await page.locator(`.wizard-${step}`).waitFor();
    };
    await page.locator('.wizard-connect').waitFor();
    programs.start(...agent(server.agentPort));
    await page.locator('.wizard-agents input:checked').waitFor();
    await next('process');
    await page.locator('dialog[open] [data-search]').fill(String(target.pid));
    await page.locator(`.process-row[data-pid="${target.pid}"]`).click();
    await next('check');
    const fails = (text) => page.locator('.finding-fails', { hasText: text }).first().waitFor();
    const works = (text) => page.locator('.finding-works', { hasText: text }).first().waitFor();
    const goOn = async () => {
      for (const step of ['files', 'options', 'start']) await next(step);
      await page.click('#wizard-start');
    };
    const flameGraph = async (function_) => {
      await page.locator('.wizard').waitFor({ state: 'detached' });
      await waitFor(
        async () => (await frames(page).catch(() => [])).some((frame) => frame.name.includes(function_)),
        `frames of ${function_}`,
        60,
      );
    };
    await body({ page, server, target, shot, next, fails, works, goOn, flameGraph });
    assert.deepEqual(opened.problems, []);
    await page.close();
  } catch (error) {
    if (shots && page) await page.screenshot({ path: join(shots, `permissions-${name}-failed.png`) }).catch(() => {});
    for (const entry of programs.running) console.log(`--- ${entry.program}\n${entry.text().slice(-2000)}`);
    throw error;
  } finally {
    await programs.stop();
  }
}

const needsRoot = (name, body) =>
  test(name, async () => {
    if (asRoot) return body();
    return console.log('NOT tested: changing users and sysctls requires root');
  });

needsRoot("another user's process: the guide shows missing permissions, and at once that they were granted", () =>
  withSysctls({ perf_event_paranoid: 2, kptr_restrict: 1 }, (set) =>
    visit(
      'other-user',
      (port) => asNobody(join(copies, 'flamewire-agent'), '--server', '127.0.0.1', '--port', port),
      ['shares-workload', 600],
      async ({ page, shot, fails, works }) => {
        await fails('this user may not profile process');
        await fails('perf_event_paranoid is 2');
        await fails('kptr_restrict');
        await fails('tracefs');
        await shot('missing');
        set('perf_event_paranoid', 1);
        set('kptr_restrict', 0);
        await page.click('#reprobe');
        await works('Kernel functions are sampled');
        await works('Kernel functions have names');
        assert.equal(await page.locator('.finding-fails', { hasText: 'perf_event_paranoid is 2' }).count(), 0);
      },
    ),
  ),
);

needsRoot('no kernel samples: an own process is recorded without them', () =>
  withSysctls({ perf_event_paranoid: 2 }, () =>
    visit(
      'own',
      (port) => asNobody(join(copies, 'flamewire-agent'), '--server', '127.0.0.1', '--port', port),
      asNobody(join(copies, 'shares-workload'), 600),
      async ({ page, server, target, shot, fails, works, goOn, flameGraph }) => {
        await works(`Process ${target.pid} (shares-workload) can be profiled`);
        await fails('perf_event_paranoid is 2');
        await goOn();
        await flameGraph('burn_');
        const [session] = (await (await fetch(new URL('/api/sessions', server.url))).json()).sessions;
        const { notices } = await (await fetch(new URL(`/api/sessions/${session.id}`, server.url))).json();
        assert.ok(
          notices.some((notice) => notice.code === 'kernel-excluded' && notice.remedy.includes('perf_event_paranoid')),
          JSON.stringify(notices),
        );
        await page.locator('.notices', { hasText: 'perf_event_paranoid' }).waitFor();
        await shot('flame');
      },
    ),
  ),
);

needsRoot('no tracefs: the guide shows how to mount it, and everything else works', () => {
  const script =
    'umount -l /sys/kernel/tracing 2>/dev/null; umount -l /sys/kernel/debug 2>/dev/null; mount -t tmpfs none /sys/kernel/tracing 2>/dev/null; exec "$@"';
  const agent = (port) => [
    '/usr/bin/unshare',
    '--mount',
    '--propagation',
    'private',
    'sh',
    '-c',
    script,
    'sh',
    built('flamewire-agent'),
    '--server',
    '127.0.0.1',
    '--port',
    port,
  ];
  return visit('no-tracefs', agent, ['shares-workload', 600], async ({ shot, fails, works, goOn, flameGraph }) => {
    await fails('mount -t tracefs');
    await works('Kernel functions are sampled');
    await shot('missing');
    await goOn();
    await flameGraph('burn_');
  });
});

test('perf events refused, as in a container: the guide shows what the container lacks, before and after a failed start', () =>
  visit(
    'refused',
    (port) => [
      '/usr/bin/python3',
      join(root, 'tests/harness/without_perf_events.py'),
      built('flamewire-agent'),
      '--server',
      '127.0.0.1',
      '--port',
      port,
    ],
    ['shares-workload', 600],
    async ({ page, shot, fails, goOn }) => {
      await fails('seccomp');
      await fails('PERFMON');
      await shot('missing');
      await goOn();
      await page.locator('.wizard', { hasText: 'seccomp' }).waitFor();
      await shot('start');
    },
  ));
