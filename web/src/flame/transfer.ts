// Encodes messages from the worker to the page. Columns become buffers that are transferred, and each text is sent once. Pure.
import type { FromWorker, Made } from './messages';
import type { Boxes } from './layout';
import { TextsIn, TextsOut, type TextNews } from './texts';
import type { FlameTree } from './tree';

const tables = ['names', 'modules', 'files', 'labels'] as const;
type Table = (typeof tables)[number];
// The column with the indices into each table.
const columnOf = { names: 'name', modules: 'module', files: 'file', labels: 'label' } as const satisfies Record<
  Table,
  keyof FlameTree
>;

// `labels` is missing if the labels are the names.
export type PackedTree = Omit<FlameTree, Table> & { news: Partial<Record<Table, TextNews>> };
type MadeMessage = Extract<FromWorker, { type: 'made' }>;
export type Transfer =
  | Exclude<FromWorker, MadeMessage>
  | (Omit<MadeMessage, 'made'> & { made: (Omit<Made, 'trees'> & { trees: readonly PackedTree[] }) | null });

// Copies the columns that are typed arrays, because the worker keeps `from`.
function copyOf<T extends object>(from: T, buffers: ArrayBuffer[]): T {
  const column = (value: unknown): unknown => {
    if (!ArrayBuffer.isView(value)) return value;
    const copy = value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength) as ArrayBuffer;
    buffers.push(copy);
    return new (value.constructor as new (buffer: ArrayBuffer) => ArrayBufferView)(copy);
  };
  return Object.fromEntries(Object.entries(from).map(([name, value]) => [name, column(value)])) as T;
}

function copyOfBoxes(boxes: Boxes, buffers: ArrayBuffer[]): Boxes {
  const { count } = boxes;
  const part = {
    count,
    node: boxes.node.subarray(0, count),
    depth: boxes.depth.subarray(0, count),
    x: boxes.x.subarray(0, count),
    width: boxes.width.subarray(0, count),
    type: boxes.type.subarray(0, count),
  };
  return copyOf(part, buffers);
}

export class Packer {
  private readonly texts: Record<Table, TextsOut> = {
    names: new TextsOut(),
    modules: new TextsOut(),
    files: new TextsOut(),
    labels: new TextsOut(),
  };

  pack(message: FromWorker): { packed: Transfer; buffers: ArrayBuffer[] } {
    const buffers: ArrayBuffer[] = [];
    if (message.type === 'drawn' && message.seen) {
      return {
        packed: { ...message, seen: { ...message.seen, boxes: copyOfBoxes(message.seen.boxes, buffers) } },
        buffers,
      };
    }
    if (message.type !== 'made' || !message.made) return { packed: message as Transfer, buffers };
    const { head, trees } = message.made;
    return {
      packed: { ...message, made: { head, trees: trees.map((tree) => this.packTree(tree, buffers)) } },
      buffers,
    };
  }

  private packTree(tree: FlameTree, buffers: ArrayBuffer[]): PackedTree {
    const { names, modules, files, labels, diff, ...rest } = tree;
    const packed = { ...copyOf(rest, buffers), diff: diff && copyOf(diff, buffers), news: {} as PackedTree['news'] };
    for (const table of tables) {
      if (table === 'labels' && labels === names) continue;
      const { places, news } = this.texts[table].put(tree[table]);
      const column = packed[columnOf[table]];
      for (let node = 0; node < column.length; node++) column[node] = places[column[node]!]!;
      packed.news[table] = news;
    }
    return packed;
  }
}

export class Unpacker {
  private readonly texts: Record<Table, TextsIn> = {
    names: new TextsIn(),
    modules: new TextsIn(),
    files: new TextsIn(),
    labels: new TextsIn(),
  };

  unpack(packed: Transfer): FromWorker {
    if (packed.type !== 'made' || !packed.made) return packed as FromWorker;
    const { head, trees } = packed.made;
    return { ...packed, made: { head, trees: trees.map((tree) => this.unpackTree(tree)) } };
  }

  private unpackTree({ news, ...columns }: PackedTree): FlameTree {
    const take = (table: Table): readonly string[] => this.texts[table].take(news[table]!);
    const names = take('names');
    const tree = { ...columns, names, modules: take('modules'), files: take('files') };
    return news.labels ? { ...tree, labels: take('labels') } : { ...tree, labels: names, label: columns.name };
  }
}
