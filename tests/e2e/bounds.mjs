// Bounds of counted shares, from tests/harness/bounds.py (docs/contributing/testing-live.md). Declare each check once,
// with the number of its comparisons: test_bounds.py adds them up.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from './programs.mjs';

export class Check {
  constructor(what, { times }) {
    Object.assign(this, { what, times, done: 0 });
  }

  // `rounding` is the precision lost when the share is drawn, for example one pixel.
  share(found, samples, expected, rounding, detail) {
    this.done += 1;
    assert.ok(this.done <= this.times, `${this.what}: more than the ${this.times} comparisons that it declares`);
    const words = execFileSync(
      '/usr/bin/python3',
      [join(root, 'tests/harness/bounds.py'), String(samples), String(expected)],
      { encoding: 'utf8' },
    ).split(' ');
    const [low, high] = words.map(Number);
    assert.ok(
      found >= low - rounding && found <= high + rounding,
      `${this.what}: ${detail} is ${found} of ${samples} samples, not between ${low} and ${high}`,
    );
  }
}
