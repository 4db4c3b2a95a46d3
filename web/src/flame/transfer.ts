// How the workshop's messages travel from a worker to the page: columns as buffers that change hands, texts said once. Pure.
import type { FromWorkshop, Made } from './messages';
import type { Boxes } from './layout';
import { TextsIn, TextsOut, type TextNews } from './texts';
import type { FlameTree } from './tree';

const tables = ['names', 'modules', 'files', 'labels'] as const;
type Table = (typeof tables)[number];
// The column of places in each table.
const columnOf = { names: 'name', modules: 'module', files: 'file', labels: 'label' } as const satisfies Record<
  Table,
  keyof FlameTree
>;

// `labels` is missing when they are the names.
export type PackedTree = Omit<FlameTree, Table> & { news: Partial<Record<Table, TextNews>> };
type MadeMessage = Extract<FromWorkshop, { type: 'made' }>;
export type Parcel =
  | Exclude<FromWorkshop, MadeMessage>
  | (Omit<MadeMessage, 'made'> & { made: (Omit<Made, 'trees'> & { trees: readonly PackedTree[] }) | null });

// The worker keeps its own: the columns of `from`, as far as they are typed arrays, are copied.
function copyOf<T extends object>(from: T, transfer: ArrayBuffer[]): T {
  const column = (value: unknown): unknown => {
    if (!ArrayBuffer.isView(value)) return value;
    const copy = value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength) as ArrayBuffer;
    transfer.push(copy);
    return new (value.constructor as new (buffer: ArrayBuffer) => ArrayBufferView)(copy);
  };
  return Object.fromEntries(Object.entries(from).map(([name, value]) => [name, column(value)])) as T;
}

function copyOfBoxes(boxes: Boxes, transfer: ArrayBuffer[]): Boxes {
  const { count } = boxes;
  const part = {
    count,
    node: boxes.node.subarray(0, count),
    depth: boxes.depth.subarray(0, count),
    x: boxes.x.subarray(0, count),
    width: boxes.width.subarray(0, count),
    type: boxes.type.subarray(0, count),
  };
  return copyOf(part, transfer);
}

export class Packer {
  private readonly texts: Record<Table, TextsOut> = {
    names: new TextsOut(),
    modules: new TextsOut(),
    files: new TextsOut(),
    labels: new TextsOut(),
  };

  pack(message: FromWorkshop): { parcel: Parcel; transfer: ArrayBuffer[] } {
    const transfer: ArrayBuffer[] = [];
    if (message.type === 'drawn' && message.seen) {
      return {
        parcel: { ...message, seen: { ...message.seen, boxes: copyOfBoxes(message.seen.boxes, transfer) } },
        transfer,
      };
    }
    if (message.type !== 'made' || !message.made) return { parcel: message as Parcel, transfer };
    const { head, trees } = message.made;
    return {
      parcel: { ...message, made: { head, trees: trees.map((tree) => this.packTree(tree, transfer)) } },
      transfer,
    };
  }

  private packTree(tree: FlameTree, transfer: ArrayBuffer[]): PackedTree {
    const { names, modules, files, labels, diff, ...rest } = tree;
    const packed = { ...copyOf(rest, transfer), diff: diff && copyOf(diff, transfer), news: {} as PackedTree['news'] };
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

  unpack(parcel: Parcel): FromWorkshop {
    if (parcel.type !== 'made' || !parcel.made) return parcel as FromWorkshop;
    const { head, trees } = parcel.made;
    return { ...parcel, made: { head, trees: trees.map((tree) => this.unpackTree(tree)) } };
  }

  private unpackTree({ news, ...columns }: PackedTree): FlameTree {
    const take = (table: Table): readonly string[] => this.texts[table].take(news[table]!);
    const names = take('names');
    const tree = { ...columns, names, modules: take('modules'), files: take('files') };
    return news.labels ? { ...tree, labels: take('labels') } : { ...tree, labels: names, label: columns.name };
  }
}
