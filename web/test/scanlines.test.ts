import assert from 'node:assert/strict';
import { test } from 'node:test';
import { frameColour, heatColour, moduleColour } from '../src/flame/colour';
import { diffPalette } from '../src/flame/difference';
import { faded, over, pixelOf, Scanlines } from '../src/flame/scanlines';

const channels = (pixel: number) => [pixel & 255, (pixel >>> 8) & 255, (pixel >>> 16) & 255, pixel >>> 24];

test('colours of CSS become pixels', () => {
  assert.deepEqual(channels(pixelOf('#2b323d')), [0x2b, 0x32, 0x3d, 255]);
  assert.deepEqual(channels(pixelOf('rgba(224,170,110,0.30)')), [224, 170, 110, 77]);
  assert.deepEqual(channels(pixelOf('rgb(1, 2, 3)')), [1, 2, 3, 255]);
  // The six corners and greys of the color circle, as CSS Color 4 defines them.
  const corners = {
    'hsl(0 100% 50%)': [255, 0, 0],
    'hsl(60 100% 50%)': [255, 255, 0],
    'hsl(120 100% 25%)': [0, 128, 0],
    'hsl(180 100% 50%)': [0, 255, 255],
    'hsl(240 100% 50%)': [0, 0, 255],
    'hsl(300 50% 50%)': [191, 64, 191],
    'hsl(30 0% 50%)': [128, 128, 128],
    'hsl(-60 100% 50%)': [255, 0, 255],
  };
  for (const [colour, wanted] of Object.entries(corners))
    assert.deepEqual(channels(pixelOf(colour)), [...wanted, 255], colour);
  assert.throws(() => pixelOf('tomato'), /not a color of this page/);
});

test('each color that a picture can have is parsed', () => {
  for (const theme of ['dark', 'light'] as const) {
    for (const kind of ['user', 'kernel', 'jit', 'inlined', 'unknown'] as const)
      for (let shade = 0; shade < 7; shade++) pixelOf(frameColour(kind, shade, theme));
    for (const module of ['', 'a', 'libc.so.6', '[kernel]', 'some-program']) pixelOf(moduleColour(module, theme));
    for (let step = 0; step < 12; step++) pixelOf(heatColour(step, theme));
    for (const contrast of ['red-blue', 'orange-purple'] as const)
      diffPalette(theme, contrast).forEach((colour) => pixelOf(colour));
  }
});

test('pixels blend and overlap as on a canvas', () => {
  assert.deepEqual(channels(faded(pixelOf('rgba(1,2,3,0.5)'), 0.5)), [1, 2, 3, 64]);
  assert.deepEqual(channels(over(pixelOf('rgba(255,255,255,0.28)'), pixelOf('#000000'))), [71, 71, 71, 255]);
  assert.deepEqual(channels(over(pixelOf('#102030'), pixelOf('#ffffff'))), [16, 32, 48, 255]);
  assert.equal(over(0, 0), 0);
  assert.deepEqual(channels(over(0, pixelOf('#102030'))), [16, 32, 48, 255]);
});

test('rows are filled once and copied down, and clipped at the edges', () => {
  const lines = new Scanlines(20, 6);
  lines.begin();
  lines.fill(-5, 3, 0, 2, 7); // beyond the left edge
  lines.fill(3, 40, 0, 2, 8); // beyond the right edge
  lines.fill(2, 4, 4, 5, 5); // all but two rows are below it
  lines.fill(0, 20, 6, 3, 1);
  lines.fill(0, 20, -3, 3, 1);
  lines.fill(25, 30, 0, 2, 1);
  lines.finish();
  const row = (y: number) => [...lines.pixels.subarray(20 * y, 20 * (y + 1))];
  assert.deepEqual(row(4), [0, 0, 5, 5, ...Array(16).fill(0)]);
  assert.deepEqual(row(5), row(4));
  assert.deepEqual(row(3), Array(20).fill(0));
  assert.deepEqual(row(1).slice(0, 20), [7, 7, 7, ...Array(17).fill(8)]);
  lines.begin();
  lines.finish();
  assert.ok(lines.pixels.every((pixel) => pixel === 0));
});
