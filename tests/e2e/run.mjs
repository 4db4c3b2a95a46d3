// Runs one browser test: node run.mjs page.test.mjs|live.test.mjs [--update-screenshots]
// playwright-core is looked for beside this file and in FLAMEWIRE_E2E_PACKAGES.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const file = process.argv.find((word) => word.endsWith('.test.mjs')) ?? 'live.test.mjs';
const env = { ...process.env };
if (process.argv.includes('--update-screenshots')) env.FLAMEWIRE_UPDATE_SCREENSHOTS = '1';
const { status } = spawnSync(process.execPath, ['--test', join(here, file)], { stdio: 'inherit', env });
process.exitCode = status ?? 1;
