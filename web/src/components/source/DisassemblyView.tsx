// The machine code of one function: weights, jumps and instructions, linked to the source beside it.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Disassembly } from '../../api/types';
import { MOST_LANES } from '../../code/arrows';
import { chainOf, hottestIndex } from '../../code/listing';
import {
  chooseCopy,
  chooseInstruction,
  code,
  codeFrom,
  disassembly,
  followInstruction,
  linkedInstructions,
  markedIndex,
  pieces,
} from '../../store/code';
import { sourceFile } from '../../store/source';
import { percent } from '../../text/format';
import { Button } from '../widgets/Button';
import { InstructionRow } from './InstructionRow';
import { Failure, Message } from '../widgets/Message';
import { VirtualRows } from '../widgets/VirtualRows';

const ROW_HEIGHT = 20;
const scroll = signal({ index: -1, stamp: 0 });

const show = (index: number) => (scroll.value = { index, stamp: scroll.value.stamp + 1 });

function keys(event: KeyboardEvent, data: Disassembly): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const last = data.instructions.address.length - 1;
  const at = markedIndex.peek();
  if (event.key === 'ArrowDown') chooseInstruction(Math.min(last, at + 1));
  else if (event.key === 'ArrowUp') chooseInstruction(Math.max(0, at < 0 ? 0 : at - 1));
  else if (event.key === 'Home') chooseInstruction(0);
  else if (event.key === 'End') chooseInstruction(last);
  else if (event.key === 'Enter' && at >= 0) followInstruction(at);
  else if (event.key === 'h') chooseInstruction(Math.max(0, hottestIndex(data)));
  else return;
  event.preventDefault();
}

function Copies({ data }: { data: Disassembly }) {
  const chosen = data.copies[data.chosen]!;
  const name = (copy: Disassembly['copies'][number]) => copy.name || `${copy.module}+0x${copy.address.toString(16)}`;
  if (data.copies.length === 1)
    return (
      <strong class="ellipsis" title={`${name(chosen)} in ${chosen.module}`}>
        {name(chosen)}
      </strong>
    );
  return (
    <select
      class="field code-copy"
      aria-label="Which copy of the code"
      value={data.chosen}
      onChange={(event) => chooseCopy(Number(event.currentTarget.value))}
    >
      {data.copies.map((copy, index) => (
        <option key={`${copy.module}/${copy.address}`} value={index}>
          {percent(data.total.weight > 0 ? copy.self / data.total.weight : 0)} {copy.inlined ? 'inlined in ' : ''}
          {name(copy)} ({copy.module})
        </option>
      ))}
    </select>
  );
}

function Listing({ data }: { data: Disassembly }) {
  const marked = markedIndex.value;
  const linked = linkedInstructions.value;
  const rows = pieces.value;
  const { self, place } = data.instructions;
  const most = self.reduce((max, value) => Math.max(max, value), 0);
  const arrow = rows[marked]?.find((piece) => piece.end === 'tail')?.arrow ?? -1;
  const firstLinked = linked.values().next().value ?? -1;
  useEffect(() => {
    if (marked >= 0) show(marked);
    else if (firstLinked >= 0) show(linked.has(hottestIndex(data)) ? hottestIndex(data) : firstLinked);
    else show(Math.max(0, hottestIndex(data)));
  }, [data.copies[data.chosen]!.address, data.instructions.address[0], marked, firstLinked]);
  return (
    <VirtualRows
      class="assembly"
      label={`Assembly of ${data.copies[data.chosen]!.name}`}
      count={data.instructions.address.length}
      rowHeight={ROW_HEIGHT}
      scrollTo={scroll.value}
      onKeyDown={(event) => keys(event, data)}
      head={
        <div class="row row-head assembly-row" role="row">
          <span role="columnheader" class="assembly-heat">
            Self
          </span>
          <span role="columnheader" class="assembly-total">
            Total
          </span>
          <span role="columnheader" class="assembly-line">
            Line
          </span>
          <span role="columnheader" class="assembly-address">
            Address
          </span>
          <span role="columnheader" class="assembly-lanes" style={{ width: `${MOST_LANES * 7 + 10}px` }}>
            <span class="visually-hidden">Jumps</span>
          </span>
          <span role="columnheader" class="assembly-text">
            Instruction
          </span>
        </div>
      }
      render={(index) => (
        <InstructionRow
          key={index}
          data={data}
          index={index}
          highest={most}
          pieces={rows[index] ?? []}
          arrow={arrow}
          marked={index === marked}
          linked={linked.has(index)}
          place={
            index === 0 || place[index] !== place[index - 1]
              ? (chainOf(data, index).find((at) => at.file === sourceFile.value) ?? chainOf(data, index)[0] ?? null)
              : null
          }
        />
      )}
    />
  );
}

function Body({ data }: { data: Disassembly }) {
  if (data.problem)
    return (
      <Message title="The machine code is not here">
        <p>{data.problem}.</p>
        {data.remedy && <p>To see it, {data.remedy}.</p>}
      </Message>
    );
  return <Listing data={data} />;
}

export function DisassemblyView({ onHottest }: { onHottest: () => void }) {
  const data = code.value;
  const error = disassembly.error.value;
  if (error && error.body.code !== 'not_found') return <Failure error={error} />;
  if (error || (!data && !disassembly.loading.value))
    return (
      <Message title="No machine code">
        <p>{error ? `${error.message}.` : 'Choose a line with samples to see its instructions.'}</p>
      </Message>
    );
  if (!data) return <Message title="Loading the machine code" busy />;
  const { next, first } = data;
  return (
    <>
      <div class="code-bar">
        <Copies data={data} />
        <span class="spacer" />
        {data.note && <span class="note">{data.note}</span>}
        {first > 0 && (
          <Button title="Show the function from its beginning" onClick={() => (codeFrom.value = first)}>
            Beginning
          </Button>
        )}
        {next > 0 && (
          <Button title="Show what follows" onClick={() => (codeFrom.value = next)}>
            Next part
          </Button>
        )}
        {!data.problem && (
          <Button title="Go to the hottest instruction (H)" onClick={onHottest}>
            Hottest instruction
          </Button>
        )}
      </div>
      <Body data={data} />
    </>
  );
}
