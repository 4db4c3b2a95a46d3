// Machine code beside the source: the shown function, the marked parts, and what clicks do.
import { computed, effect, signal } from '@preact/signals';
import { api, orEmpty } from '../api/client';
import type { CodeParams, Disassembly, InlinedCall } from '../api/types';
import { arrowsOf, piecesOf } from '../code/arrows';
import { hottestIndex, indexAt, instructionsAt, linesAt, placeIn, sourceOf } from '../code/listing';
import { hotLines } from '../text/heat';
import { dataVersion } from './data';
import { createQuery } from './query';
import { currentId, filter } from './session';
import { placeOfCode, source, sourceFile, sourceLine } from './source';
import { setView, tab, view } from './view';

// Where the shown part of a long function begins; null for the default part.
export const codeFrom = signal<number | null>(null);

const wanted = computed<CodeParams | null>(() => {
  const { codeOf, codeModule, address } = view.value;
  const where = { at: address, from: codeFrom.value };
  if (codeOf) return { function: codeOf, module: codeModule, ...where };
  const line = sourceLine.value;
  return sourceFile.value && line > 0 ? { file: sourceFile.value, line, ...where } : null;
});

// The address range of the last answer.
let range = { start: 0, end: 0 };

export const disassembly = createQuery<Disassembly | null>({
  key: () => {
    const params = wanted.value;
    if (!currentId.value || tab.value !== 'source' || !view.value.split || !params) return null;
    // A marked address inside the shown code needs no new request.
    const inside = params.at !== null && params.at >= range.start && params.at < range.end;
    return JSON.stringify([filter.value, { ...params, at: inside ? range.start : params.at }]);
  },
  version: dataVersion,
  scope: () => currentId.value,
  fetch: async (abort) => {
    const answer = await orEmpty(api.disassembly(filter.peek(), wanted.peek()!, abort));
    const copy = answer?.copies[answer.chosen];
    range = copy ? { start: copy.address, end: copy.address + copy.size } : { start: 0, end: 0 };
    return answer;
  },
  intervalMs: 700,
});

export const code = disassembly.data;
export const markedIndex = computed(() =>
  code.value && view.value.address !== null ? indexAt(code.value, view.value.address) : -1,
);
export const arrows = computed(() =>
  code.value ? arrowsOf(code.value.instructions.target, code.value.instructions.flow) : [],
);
export const pieces = computed(() => piecesOf(arrows.value, code.value?.instructions.address.length ?? 0));

effect(() => {
  const place = code.value ? sourceOf(code.value) : null;
  const { file, line } = place ?? { file: '', line: 0 };
  const old = placeOfCode.peek();
  if (old.file !== file || old.line !== line) placeOfCode.value = { file, line };
});

// Instructions of the chosen line; lines of the marked instruction.
export const linkedInstructions = computed(() => {
  const line = sourceLine.value;
  return code.value && line > 0 ? instructionsAt(code.value, sourceFile.value, line) : new Set<number>();
});
export const linkedLines = computed(() =>
  code.value && markedIndex.value >= 0 ? linesAt(code.value, markedIndex.value, sourceFile.value) : new Set<number>(),
);

export const hot = computed(() => hotLines(source.data.value?.lines ?? []));

// Marks the instructions of a source line. If the shown code has none, the code at that line is shown instead.
export function chooseLine(line: number): void {
  if (line <= 0) return;
  const shown = code.peek();
  const here = shown !== null && instructionsAt(shown, sourceFile.peek(), line).size > 0;
  const copy = shown?.copies[shown.chosen];
  // Keep the shown function, even if the line has code of others.
  const keep =
    here && copy && copy.name !== '' ? { codeOf: copy.name, codeModule: copy.module } : { codeOf: '', codeModule: '' };
  if (!here) codeFrom.value = null;
  setView({ line, file: sourceFile.peek(), address: here && copy ? copy.address : null, ...keep }, 'replace');
}

export function chooseInstruction(index: number): void {
  const shown = code.peek();
  const address = shown?.instructions.address[index];
  if (!shown || address === undefined) return;
  const copy = shown.copies[shown.chosen]!;
  const place = placeIn(shown, index, sourceFile.peek());
  const where = place ? { file: place.file, line: place.line } : {};
  setView({ address, ...where, ...(copy.name ? { codeOf: copy.name, codeModule: copy.module } : {}) }, 'replace');
}

// Goes to the target of a jump, or to the function that a call calls.
export function followInstruction(index: number): void {
  const shown = code.peek();
  if (!shown) return;
  const { target, target_name: names } = shown.instructions;
  if (target[index]! >= 0) chooseInstruction(target[index]!);
  else if (names[index]! > 0)
    openCode(shown.strings[names[index]!]!.replace(/\+0x[0-9a-f]+$/, ''), shown.copies[shown.chosen]!.module);
}

export function openCode(name: string, module: string): void {
  codeFrom.value = null;
  setView({ tab: 'source', codeOf: name, codeModule: module, address: null, file: '', line: 0 });
}

export function chooseCopy(index: number): void {
  const shown = code.peek();
  const copy = shown?.copies[index];
  if (!shown || !copy) return;
  codeFrom.value = null;
  setView({
    address: copy.address,
    ...(copy.name && !copy.inlined ? { codeOf: copy.name, codeModule: copy.module } : {}),
  });
}

export function goToHottestInstruction(): void {
  const shown = code.peek();
  const index = shown ? hottestIndex(shown) : -1;
  if (index >= 0) chooseInstruction(index);
}

export function openInlined(call: InlinedCall): void {
  if (call.file) setView({ file: call.file, line: call.function_line });
}
