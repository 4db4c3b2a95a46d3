// Encodings of view state values in the address. Pure.

export interface Codec<T> {
  read(text: string): T | undefined; // undefined: the text is not a valid value
  write(value: T): string | null; // null: nothing to write
}

const finite = (text: string): number | undefined => {
  const value = text === '' ? NaN : Number(text);
  return Number.isFinite(value) && value >= 0 ? value : undefined;
};

export const text: Codec<string> = { read: (written) => written, write: (value) => value || null };

// Integers, separated by commas. Other items are skipped.
export const numbers: Codec<readonly number[]> = {
  read: (written) =>
    written
      .split(',')
      .map(finite)
      .filter((n): n is number => Number.isInteger(n)),
  write: (values) => values.join(',') || null,
};

export const whole: Codec<number> = {
  read: (written) => numbers.read(written)?.[0],
  write: String,
};

// Milliseconds since the session's start.
export const time: Codec<number | null> = {
  read: finite,
  write: (value) => (value === null ? null : String(value)),
};

export const hexadecimal: Codec<number | null> = {
  read: (written) => (/^0x[0-9a-f]{1,13}$/.test(written) ? Number(written) : undefined),
  write: (value) => (value === null ? null : `0x${value.toString(16)}`),
};

// One of several things at a time: its number, and the time in milliseconds.
export interface Moment {
  number: number;
  ms: number;
}
export const moment: Codec<Moment | null> = {
  read: (written) => {
    const [number, ms] = written.split('@').map(finite);
    return Number.isInteger(number) && ms !== undefined ? { number: number!, ms } : undefined;
  },
  write: (value) => (value === null ? null : `${value.number}@${value.ms}`),
};

// One of `values`. `written` contains the words in the address that differ from their values.
export function choice<T extends string>(values: readonly T[], written: Partial<Record<T, string>> = {}): Codec<T> {
  const word = (value: T): string => written[value] ?? value;
  return { read: (found) => values.find((value) => word(value) === found), write: word };
}

// `word` stands for the value that is not `initial`.
export const flag = (word: string, initial = false): Codec<boolean> => ({
  read: (written) => (written === word ? !initial : initial),
  write: (value) => (value === initial ? null : word),
});

// `separator` must not occur in an item.
export function list<T>(separator: string, item: Codec<T>): Codec<readonly T[]> {
  return {
    read: (written) =>
      written
        .split(separator)
        .map((part) => item.read(part))
        .filter((part): part is Exclude<typeof part, undefined> => part !== undefined),
    write: (items) => (items.length > 0 ? items.map((one) => item.write(one) ?? '').join(separator) : null),
  };
}
