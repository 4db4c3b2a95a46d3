// One instruction: its weights, its source location, the jumps beside it, and its text.
import type { Disassembly } from '../../api/types';
import { MOST_LANES, type Piece } from '../../code/arrows';
import { chainOf, splitText, type SourcePlace } from '../../code/listing';
import { chooseInstruction, followInstruction } from '../../store/code';
import { count, percent, weight } from '../../text/format';
import { heatOf } from '../../text/heat';

interface Props {
  data: Disassembly;
  index: number;
  highest: number;
  pieces: readonly Piece[];
  arrow: number; // of the marked instruction; -1: none
  marked: boolean;
  linked: boolean;
  place: SourcePlace | null; // set where the source location changes
}

const LANE = 7;
const HEIGHT = 20;

function Lanes({ pieces, arrow }: { pieces: readonly Piece[]; arrow: number }) {
  const width = MOST_LANES * LANE + 10;
  return (
    <svg class="assembly-lanes" width={width} height={HEIGHT} aria-hidden="true">
      {pieces.map((piece) => {
        const x = width - 9 - piece.lane * LANE;
        const middle = HEIGHT / 2;
        const line = `M${x} ${piece.up ? 0 : middle}V${piece.down ? HEIGHT : middle}`;
        const foot = piece.end === 'none' ? '' : `M${x} ${middle}H${width - 2}`;
        const head =
          piece.end === 'head' ? `M${width - 6} ${middle - 3}L${width - 2} ${middle}L${width - 6} ${middle + 3}` : '';
        return (
          <path
            key={piece.arrow}
            class={piece.arrow === arrow ? 'lane lane-marked' : 'lane'}
            d={`${line}${foot}${head}`}
          />
        );
      })}
    </svg>
  );
}

// The source location of the instruction, with inlined functions.
function titleOf(data: Disassembly, index: number): string {
  const { self, self_samples: selfSamples, total, total_samples: totalSamples } = data.instructions;
  const weights =
    total[index]! > 0 || self[index]! > 0
      ? [
          `self ${weight(self[index]!, data.unit)} (${count(selfSamples[index]!)} samples), total ${weight(total[index]!, data.unit)} (${count(totalSamples[index]!)} samples)`,
        ]
      : [];
  return [
    ...weights,
    ...chainOf(data, index).map(
      (at, depth) => `${depth > 0 ? 'inlined in ' : ''}${at.name}${at.file ? ` ${at.file}:${at.line}` : ''}`,
    ),
  ].join('\n');
}

export function InstructionRow({ data, index, highest, pieces, arrow, marked, linked, place }: Props) {
  const { address, self, total, text, known, target, target_name: names, reference } = data.instructions;
  const all = data.total.weight;
  const own = all > 0 ? self[index]! / all : 0;
  const [mnemonic, operands] = splitText(text[index]!);
  const name = data.strings[names[index]!] ?? '';
  const leads = target[index]! >= 0 || name !== '';
  const comment = name || (reference[index]! > 0 ? `0x${reference[index]!.toString(16)}` : '');
  return (
    <div
      class={`row assembly-row heat-${heatOf(100 * own)} ${marked ? 'row-selected' : ''} ${linked ? 'row-linked' : ''}`}
      role="row"
      aria-selected={marked}
      data-address={address[index]!.toString(16)}
      title={titleOf(data, index)}
      onClick={() => chooseInstruction(index)}
      onDblClick={() => followInstruction(index)}
    >
      <span class="assembly-heat" role="cell">
        {self[index]! > 0 && (
          <>
            <span class="source-bar" style={{ width: `${highest > 0 ? (100 * self[index]!) / highest : 0}%` }} />
            <span>{percent(own)}</span>
          </>
        )}
      </span>
      <span class="assembly-total faint" role="cell">
        {total[index]! > 0 && percent(all > 0 ? total[index]! / all : 0)}
      </span>
      <span class="assembly-line faint" role="cell">
        {place && place.line > 0 ? place.line : ''}
      </span>
      <span class="assembly-address" role="cell">
        {address[index]!.toString(16)}
      </span>
      <span role="cell">
        <Lanes pieces={pieces} arrow={arrow} />
      </span>
      <code class={`assembly-text ${known[index] ? '' : 'assembly-data'}`} role="cell">
        <span class="assembly-mnemonic">{mnemonic}</span>
        <span>{operands}</span>
        {comment && (
          <span
            class={leads ? 'assembly-target' : 'token-comment'}
            onClick={leads ? (event) => (event.stopPropagation(), followInstruction(index)) : undefined}
          >
            {comment}
          </span>
        )}
      </code>
    </div>
  );
}
