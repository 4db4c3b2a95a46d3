// Many texts, and which of them match a pattern. A plain pattern is searched in all of them at once, as one long text:
// that is much faster than a test of each of a hundred thousand texts.
import type { Pattern } from '../model/pattern';

// Neither the texts nor a pattern that is searched in this way contain it.
const SEPARATOR = '\n';

interface Joined {
  text: string;
  starts: Uint32Array; // where each text begins, and one more entry for the end
}

function join(texts: readonly string[]): Joined {
  const starts = new Uint32Array(texts.length + 1);
  let at = 0;
  for (let i = 0; i < texts.length; i++) {
    starts[i] = at;
    at += texts[i]!.length + 1;
  }
  starts[texts.length] = at;
  return { text: texts.join(SEPARATOR), starts };
}

export class TextColumn {
  private asWritten: Joined | null = null;
  private small: Joined | null = null;

  constructor(private readonly texts: readonly string[]) {}

  // Builds what the first search needs.
  prepare(ignoreCase: boolean): Joined {
    if (ignoreCase) return (this.small ??= join(this.texts.map((text) => text.toLowerCase())));
    return (this.asWritten ??= join(this.texts));
  }

  // 1 where the pattern matches.
  matches(pattern: Pattern): Uint8Array {
    const fits = new Uint8Array(this.texts.length);
    if (pattern.plain === null || pattern.plain.includes(SEPARATOR)) {
      this.texts.forEach((text, i) => (fits[i] = pattern.test(text) ? 1 : 0));
      return fits;
    }
    const { text, starts } = this.prepare(pattern.ignoreCase);
    let row = 0;
    for (let at = text.indexOf(pattern.plain); at >= 0; at = text.indexOf(pattern.plain, starts[row])) {
      while (starts[row + 1]! <= at) row++;
      fits[row] = 1;
      if (++row >= this.texts.length) break;
    }
    return fits;
  }
}
