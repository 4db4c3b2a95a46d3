// Runs browser tests in one Chromium: node run.mjs [--update-screenshots] FILE.test.mjs...
// playwright-core comes from FLAMEWIRE_E2E_PACKAGES, or from node_modules beside this file if that is not set.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launchServer } from './browser.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const files = process.argv.filter((word) => word.endsWith('.test.mjs'));
if (files.length === 0) files.push('live.test.mjs');
const env = { ...process.env };
if (process.argv.includes('--update-screenshots')) env.FLAMEWIRE_UPDATE_SCREENSHOTS = '1';

const browser = await launchServer();
env.FLAMEWIRE_BROWSER = browser.wsEndpoint();
const tests = spawn(process.execPath, ['--test', '--test-reporter=spec', ...files.map((file) => join(here, file))], {
  stdio: 'inherit',
  env,
});
const [status] = await once(tests, 'exit');
await browser.close();
process.exitCode = status ?? 1;
