// How much of a text fits into a box. Adds up the widths of letters, each measured once: to ask a canvas for the width of every name
// of every answer costs more than to draw all boxes. Pairs of letters that stand closer than alone make it err to the narrow side.
export class TextFit {
  private readonly ascii = new Float32Array(128).fill(-1);
  private readonly others = new Map<number, number>(); // by code point
  private readonly ellipsis: number;

  constructor(private readonly measure: (text: string) => number) {
    this.ellipsis = measure('…');
  }

  private letter(point: number): number {
    let width = point < 128 ? this.ascii[point]! : (this.others.get(point) ?? -1);
    if (width >= 0) return width;
    width = this.measure(String.fromCodePoint(point));
    if (point < 128) this.ascii[point] = width;
    else this.others.set(point, width);
    return width;
  }

  // All of the text, or its beginning with an ellipsis (long C++ names lose their end, where arguments stand); empty when there is
  // room for less than two letters. Looks at no more of the text than fits.
  fit(text: string, room: number): string {
    let width = 0;
    let cut = 0; // so much fits with an ellipsis
    for (let at = 0; at < text.length; ) {
      const point = text.codePointAt(at)!;
      at += point > 0xffff ? 2 : 1;
      width += this.letter(point);
      if (width > room) return cut < 2 ? '' : `${text.slice(0, cut)}…`;
      if (width + this.ellipsis <= room) cut = at;
    }
    return text;
  }
}
