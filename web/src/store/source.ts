// The source file that is shown, and its line.
import { computed, signal } from '@preact/signals';
import { api, orEmpty } from '../api/client';
import { dataVersion } from './data';
import { createQuery } from './query';
import { currentId, filter } from './session';
import { tab, view } from './view';

const keyOf = () => (currentId.value && tab.value === 'source' ? JSON.stringify(filter.value) : null);

export const sourceFiles = createQuery({
  key: keyOf,
  version: dataVersion,
  scope: () => currentId.value,
  fetch: (abort) => orEmpty(api.sourceFiles(filter.peek(), abort)),
  intervalMs: 1000,
  rows: true,
});

// If a function was requested instead of a file, its code determines the location (code.ts sets it).
export const placeOfCode = signal({ file: '', line: 0 });
const byCode = computed(() => view.value.file === '' && view.value.codeOf !== '');
export const sourceFile = computed(
  () => view.value.file || (byCode.value ? placeOfCode.value.file : sourceFiles.data.value?.files[0]?.file) || '',
);

export const source = createQuery({
  key: () => {
    const key = keyOf();
    return key && sourceFile.value ? `${key}${sourceFile.value}` : null;
  },
  version: dataVersion,
  scope: () => `${currentId.value}/${sourceFile.value}`,
  fetch: (abort) => api.source(filter.peek(), sourceFile.peek(), abort),
  intervalMs: 700,
});

// The chosen line, or else the hottest one.
export const sourceLine = computed(() => {
  const data = source.data.value;
  if (view.value.line > 0) return view.value.line;
  if (byCode.value) return placeOfCode.value.line;
  return data && data.file === sourceFile.value ? data.hottest : 0;
});
