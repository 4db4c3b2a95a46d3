// Draws the boxes of a flame graph as pixels. All pixel lines of a row are equal, so one line is filled and copied to the others.
// For thousands of boxes, that is faster than one canvas call per box.

const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/;
const rgb = /^rgba?\(([\d.]+), ?([\d.]+), ?([\d.]+)(?:, ?([\d.]+))?\)$/;
const hsl = /^hsl\(([\d.-]+) ([\d.]+)% ([\d.]+)%\)$/;

// Converts a CSS color to a pixel of ImageData: 0xAABBGGRR, because all platforms with browsers are little-endian. Supports only
// the notations that this page uses. Pure.
export function pixelOf(colour: string): number {
  const pixel = (r: number, g: number, b: number, a = 1) =>
    ((Math.round(a * 255) << 24) | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;
  let found = hex.exec(colour);
  if (found) return pixel(parseInt(found[1]!, 16), parseInt(found[2]!, 16), parseInt(found[3]!, 16));
  found = rgb.exec(colour);
  if (found) return pixel(Number(found[1]), Number(found[2]), Number(found[3]), Number(found[4] ?? 1));
  found = hsl.exec(colour);
  if (!found) throw new Error(`${colour} is not a color of this page`);
  const hue = ((Number(found[1]) % 360) + 360) % 360;
  const lightness = Number(found[3]) / 100;
  const reach = (Number(found[2]) / 100) * Math.min(lightness, 1 - lightness);
  const channel = (n: number) => {
    const k = (n + hue / 30) % 12;
    return 255 * (lightness - reach * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
  };
  return pixel(channel(0), channel(8), channel(4));
}

// Multiplies the opacity of a pixel. Pure.
export const faded = (pixel: number, opacity: number): number =>
  ((pixel & 0xffffff) | (Math.round((pixel >>> 24) * opacity) << 24)) >>> 0;

// Blends one pixel over another. Pure.
export function over(top: number, bottom: number): number {
  const a = (top >>> 24) / 255;
  const rest = ((bottom >>> 24) / 255) * (1 - a);
  const alpha = a + rest;
  if (alpha === 0) return 0;
  const mix = (shift: number) =>
    Math.round((((top >>> shift) & 255) * a + ((bottom >>> shift) & 255) * rest) / alpha) << shift;
  return ((Math.round(alpha * 255) << 24) | mix(16) | mix(8) | mix(0)) >>> 0;
}

export class Scanlines {
  readonly pixels: Uint32Array;
  private readonly filled = new Map<number, number>(); // first line of a row -> the line after its last

  constructor(
    readonly width: number,
    readonly height: number,
    buffer: ArrayBufferLike = new ArrayBuffer(4 * width * height),
  ) {
    this.pixels = new Uint32Array(buffer);
  }

  begin(): void {
    this.pixels.fill(0);
    this.filled.clear();
  }

  // Fills pixels [left, right) in `rows` lines that start at `top`. Boxes of a row must have the same top and height.
  fill(left: number, right: number, top: number, rows: number, pixel: number): void {
    const first = Math.max(0, top);
    const end = Math.min(this.height, top + rows);
    const from = Math.max(0, left);
    const to = Math.min(this.width, right);
    if (first >= end || from >= to) return;
    this.filled.set(first, end);
    const line = first * this.width;
    if (to - from > 8) this.pixels.fill(pixel, line + from, line + to);
    else for (let at = line + from; at < line + to; at++) this.pixels[at] = pixel;
  }

  // Copies the first line of each row to its other lines.
  finish(): void {
    const { pixels, width } = this;
    for (const [first, end] of this.filled) {
      const line = first * width;
      for (let y = first + 1; y < end; y++) pixels.copyWithin(y * width, line, line + width);
    }
  }
}
