// String tables that send each text once: the sender keeps a growing table and sends only new entries to the receiver. The
// answers of a live session contain nearly the same names each time. Pure.
export interface TextNews {
  from: number; // index of the first added text; 0: the table starts over
  added: readonly string[];
}

// The table starts over if it has more than twice the texts of the current answer, plus this many.
const SPARE = 4096;

export class TextsOut {
  private readonly places = new Map<string, number>();

  // Returns the index of each of `texts` in the receiver's table.
  put(texts: readonly string[]): { places: Int32Array; news: TextNews } {
    if (this.places.size > 2 * texts.length + SPARE) this.places.clear();
    const from = this.places.size;
    const added: string[] = [];
    const places = Int32Array.from(texts, (text) => {
      let place = this.places.get(text);
      if (place === undefined) {
        place = from + added.push(text) - 1;
        this.places.set(text, place);
      }
      return place;
    });
    return { places, news: { from, added } };
  }
}

export class TextsIn {
  private texts: string[] = [];

  // Returns the whole table. The indices of earlier messages stay valid for the arrays that were returned for them.
  take({ from, added }: TextNews): readonly string[] {
    if (from === 0) this.texts = [];
    for (const text of added) this.texts.push(text);
    return this.texts;
  }
}
