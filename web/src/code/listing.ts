// Instructions and source lines, linked both ways. Pure.
import type { Disassembly } from '../api/types';

export interface SourcePlace {
  name: string;
  file: string;
  line: number;
}

// Functions at an instruction, innermost first; all but the last were inlined.
export function chainOf(code: Disassembly, index: number): SourcePlace[] {
  const place = code.places[code.instructions.place[index] ?? -1] ?? [];
  const chain: SourcePlace[] = [];
  for (let i = 0; i + 2 < place.length; i += 3)
    chain.push({ name: code.strings[place[i]!] ?? '', file: code.strings[place[i + 1]!] ?? '', line: place[i + 2]! });
  return chain;
}

// The target of a click on an instruction: its line in the shown file, or else its innermost known location.
export function placeIn(code: Disassembly, index: number, file: string): SourcePlace | null {
  const known = chainOf(code, index).filter((place) => place.file !== '' && place.line > 0);
  return known.find((place) => place.file === file) ?? known[0] ?? null;
}

// The instructions of a line, including inlined ones.
export function instructionsAt(code: Disassembly, file: string, line: number): Set<number> {
  const fileIndex = code.strings.indexOf(file);
  const fits = code.places.map((place) => {
    for (let i = 0; i + 2 < place.length; i += 3) if (place[i + 1] === fileIndex && place[i + 2] === line) return true;
    return false;
  });
  const found = new Set<number>();
  code.instructions.place.forEach((place, index) => fits[place] && found.add(index));
  return found;
}

// The lines of one file that an instruction belongs to.
export const linesAt = (code: Disassembly, index: number, file: string): Set<number> =>
  new Set(
    chainOf(code, index)
      .filter((place) => place.file === file && place.line > 0)
      .map((place) => place.line),
  );

export function indexAt(code: Disassembly, address: number): number {
  const { address: addresses, size } = code.instructions;
  let low = 0;
  let high = addresses.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (addresses[middle]! <= address) low = middle + 1;
    else high = middle;
  }
  const index = low - 1;
  return index >= 0 && address < addresses[index]! + size[index]! ? index : -1;
}

export function hottestIndex(code: Disassembly): number {
  const { self, total } = code.instructions;
  let best = -1;
  for (let i = 0; i < self.length; i++)
    if (best < 0 || self[i]! > self[best]! || (self[i] === self[best] && total[i]! > total[best]!)) best = i;
  return best >= 0 && total[best]! > 0 ? best : -1;
}

// Where the source of a function is: at the hottest instruction, or else at the first instruction with a file.
export function sourceOf(code: Disassembly): SourcePlace | null {
  const outer = (index: number) =>
    chainOf(code, index).findLast((place) => place.file !== '' && place.line > 0) ?? null;
  const hottest = hottestIndex(code);
  const found = hottest >= 0 ? outer(hottest) : null;
  if (found) return found;
  for (let i = 0; i < code.instructions.address.length; i++) {
    const place = outer(i);
    if (place) return place;
  }
  return null;
}

// Splits an instruction into mnemonic and operands.
export function splitText(text: string): [string, string] {
  const prefixed = /^(?:(?:lock|rep|repz|repnz|notrack|bnd|data16|cs)\s+)+/.exec(text)?.[0] ?? '';
  const space = text.indexOf(' ', prefixed.length);
  return space < 0 ? [text, ''] : [text.slice(0, space), text.slice(space + 1)];
}
