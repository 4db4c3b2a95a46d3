// Cuts a text to the width of a box. It adds the widths of letters, each measured once, because measuring every name of every
// answer costs more than drawing all boxes. It ignores kerning, so it may cut a text that would just fit.
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

  // Returns the text, or its beginning with an ellipsis. Long C++ names lose their end, which contains the arguments. The result
  // is empty if fewer than two letters fit. The cost depends on the room and not on the length of the text.
  fit(text: string, room: number): string {
    let width = 0;
    let cut = 0; // end of the longest prefix that fits with an ellipsis
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
