// Texts that are said once: one side has a table that grows, and tells the other what is new in it. A live session brings nearly the
// same names with every answer. Pure.
export interface TextNews {
  from: number; // where what is added begins; 0: the table begins anew
  added: readonly string[];
}

// So many may be there that no answer has any more, besides as many as the last had.
const SPARE = 4096;

export class TextsOut {
  private readonly places = new Map<string, number>();

  // Where the other side finds each of `texts`.
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

  // All that is known now. Places of what was taken before stay good in what was returned for it.
  take({ from, added }: TextNews): readonly string[] {
    if (from === 0) this.texts = [];
    for (const text of added) this.texts.push(text);
    return this.texts;
  }
}
