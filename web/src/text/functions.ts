// The functions table: order, filter, groups and CSV of a hundred thousand rows within a few frames.
// Orders are computed once per answer and cached; every later action is one pass.
import type { FunctionRow } from '../api/types';
import type { Pattern } from '../model/pattern';
import type { Grouping, SortKey } from '../model/view_state';
import { csv } from './counters';
import { TextColumn } from './text_column';

// Indexes of rows in ascending order of a nonnegative number. The sort is stable.
// It is a radix sort of the bits of doubles, whose order is that of the numbers.
export function orderByNumber(keys: Float64Array): Uint32Array {
  const size = keys.length;
  const words = new Uint16Array(keys.buffer, keys.byteOffset, size * 4);
  let order = Uint32Array.from({ length: size }, (_, i) => i);
  let next = new Uint32Array(size);
  const place = new Uint32Array(65537);
  for (let word = 0; word < 4; word++) {
    place.fill(0);
    for (let i = 0; i < size; i++) place[words[i * 4 + word]! + 1]!++;
    if (place[words[word]! + 1] === size) continue; // equal for all rows
    for (let i = 0; i < 65536; i++) place[i + 1]! += place[i]!;
    for (let i = 0; i < size; i++) {
      const row = order[i]!;
      next[place[words[row * 4 + word]!]!++] = row;
    }
    [order, next] = [next, order];
  }
  return order;
}

// The rank of every text in sorted order. Equal texts have the same rank.
function ranks(texts: readonly string[]): Float64Array {
  const distinct = [...new Set(texts)].sort();
  const rank = new Map(distinct.map((text, i) => [text, i]));
  return Float64Array.from(texts, (text) => rank.get(text)!);
}

export class FunctionTable {
  private readonly orders = new Map<SortKey, Uint32Array>();
  private readonly names: TextColumn;
  private readonly modules: string[] = [];
  private readonly moduleOf: Uint32Array; // by row, into modules

  constructor(readonly rows: readonly FunctionRow[]) {
    this.names = new TextColumn(rows.map((row) => row.name));
    const places = new Map<string, number>();
    this.moduleOf = Uint32Array.from(rows, ({ module }) => {
      let place = places.get(module);
      if (place === undefined) places.set(module, (place = this.modules.push(module) - 1));
      return place;
    });
  }

  // The indexes of the rows in ascending order.
  order(key: SortKey): Uint32Array {
    let order = this.orders.get(key);
    if (!order) {
      order = orderByNumber(this.keys(key));
      this.orders.set(key, order);
    }
    return order;
  }

  // Builds what the first filter needs.
  prepareFilter(): void {
    this.names.prepare(true);
  }

  private keys(key: SortKey): Float64Array {
    if (key === 'name') return ranks(this.rows.map((row) => row.name));
    if (key === 'module') return ranks(this.rows.map((row) => row.module));
    return Float64Array.from(this.rows, (row) => row[key]);
  }

  // Rows whose name or module matches, in order.
  select(key: SortKey, ascending: boolean, pattern: Pattern | null, module: string): FunctionRow[] {
    const order = this.order(key);
    const wanted = this.modules.map((name) => !module || name === module);
    const fits = this.modules.map((name) => pattern === null || pattern.test(name));
    const named = pattern && fits.includes(false) ? this.names.matches(pattern) : null;
    const kept: FunctionRow[] = [];
    for (let i = 0; i < order.length; i++) {
      const row = order[ascending ? i : order.length - 1 - i]!;
      const place = this.moduleOf[row]!;
      if (wanted[place] && (fits[place] || named![row] === 1)) kept.push(this.rows[row]!);
    }
    return kept;
  }
}

export interface Group {
  name: string; // empty: rows without one
  count: number;
  self: number;
  selfPercent: number;
}

export type Item = { kind: 'group'; group: Group } | { kind: 'row'; row: FunctionRow };

// Groups in descending order of self weight; the rows of a group keep their order. A closed group has only its head.
export function grouped(
  rows: readonly FunctionRow[],
  by: Exclude<Grouping, 'none'>,
  closed: ReadonlySet<string>,
): Item[] {
  const lists = new Map<string, { group: Group; rows: FunctionRow[] }>();
  for (const row of rows) {
    const name = row[by];
    let list = lists.get(name);
    if (!list) lists.set(name, (list = { group: { name, count: 0, self: 0, selfPercent: 0 }, rows: [] }));
    list.group.count++;
    list.group.self += row.self;
    list.group.selfPercent += row.self_percent;
    list.rows.push(row);
  }
  const items: Item[] = [];
  for (const { group, rows: members } of [...lists.values()].sort((a, b) => b.group.self - a.group.self)) {
    items.push({ kind: 'group', group });
    if (!closed.has(group.name)) for (const row of members) items.push({ kind: 'row', row });
  }
  return items;
}

// Modules in descending order of self weight.
export function modulesOf(rows: readonly Pick<FunctionRow, 'module' | 'self'>[]): string[] {
  const self = new Map<string, number>();
  for (const row of rows) self.set(row.module, (self.get(row.module) ?? 0) + row.self);
  return [...self.keys()].filter(Boolean).sort((a, b) => self.get(b)! - self.get(a)!);
}

export function functionsCsv(rows: readonly FunctionRow[], unit: string): string {
  const head = [
    'function',
    'module',
    'kind',
    'file',
    'line',
    `self (${unit})`,
    'self %',
    'self samples',
    `total (${unit})`,
    'total %',
    'total samples',
  ];
  return csv([
    head,
    ...rows.map((row) => [
      row.name,
      row.module,
      row.kind,
      row.file,
      row.line > 0 ? String(row.line) : '',
      String(row.self),
      row.self_percent.toFixed(4),
      String(row.self_samples),
      String(row.total),
      row.total_percent.toFixed(4),
      String(row.total_samples),
    ]),
  ]);
}
