// What the tests of the page share: a browser per file, pages with a mock server, and steps that build on each other.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, openPage, settled } from './browser.mjs';
import { startMock } from './mock_server.mjs';

export const dist = process.env.FLAMEWIRE_WEB_DIST ?? new URL('../../web/dist', import.meta.url).pathname;

// Returns a function that runs `body` with a mock server and a page of its own, and fails if the page reports a problem.
// Options are those of openPage and startMock; `hash`: the address behind the server's; `settle`: wait for the view first.
export function pagesWithMock(defaults = {}) {
  let browser;
  before(async () => (browser = await launch()));
  after(() => browser?.close());
  return async (options, body) => {
    const { theme, width, height, hash = '', settle = false, ...mockOptions } = { ...defaults, ...options };
    const mock = await startMock({ dist, ...mockOptions });
    const opened = await openPage(browser, mock.url + hash, { theme, width, height });
    try {
      if (settle) await settled(opened.page);
      await body({ mock, browser, ...opened });
      assert.deepEqual(opened.problems, []);
    } finally {
      await opened.context.close();
      await mock.stop();
    }
  };
}

// Returns a function like test(). After the first failure all other steps are skipped, because they build on earlier
// ones. `problems` returns those of the page so far, and `failed` is called before a failure is reported.
export function steps(programs, problems, failed) {
  let skip = false;
  return (name, body) =>
    test(name, async (context) => {
      if (skip) return context.skip('an earlier step failed');
      try {
        await body();
        assert.deepEqual(problems(), []);
      } catch (error) {
        skip = true;
        await failed().catch(() => {});
        for (const entry of programs.running) console.log(`--- ${entry.program}\n${entry.text().slice(-3000)}`);
        throw error;
      }
      return undefined;
    });
}
