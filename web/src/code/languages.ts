// The language for coloring a source file. Each language is a separate chunk, loaded when it is first needed.
import { StreamLanguage, type Language, type StreamParser } from '@codemirror/language';

type Grammar = 'cpp' | 'rust' | 'go' | 'python' | 'javascript';

const byEnding: Record<string, Grammar> = {
  c: 'cpp',
  h: 'cpp',
  cc: 'cpp',
  hh: 'cpp',
  cpp: 'cpp',
  hpp: 'cpp',
  cxx: 'cpp',
  hxx: 'cpp',
  'c++': 'cpp',
  inc: 'cpp',
  inl: 'cpp',
  ipp: 'cpp',
  tcc: 'cpp',
  cu: 'cpp',
  m: 'cpp',
  mm: 'cpp',
  rs: 'rust',
  go: 'go',
  py: 'python',
  pyx: 'python',
  js: 'javascript',
  mjs: 'javascript',
  cjs: 'javascript',
  jsx: 'javascript',
  ts: 'javascript',
  tsx: 'javascript',
};

// Headers of the C++ library have no file name extension. Other unknown files have no language.
export function grammarOf(file: string): Grammar | null {
  const name = file.slice(file.lastIndexOf('/') + 1);
  const dot = name.lastIndexOf('.');
  if (dot < 0) return /\/c\+\+\//.test(file) ? 'cpp' : null;
  return byEnding[name.slice(dot + 1).toLowerCase()] ?? null;
}

// Each file of the package contains several dialects. A module that re-exports only one of them keeps its bundle small.
const modes: Record<Grammar, () => Promise<{ mode: StreamParser<unknown> }>> = {
  cpp: () => import('./modes/cpp'),
  rust: () => import('./modes/rust'),
  go: () => import('./modes/go'),
  python: () => import('./modes/python'),
  javascript: () => import('./modes/javascript'),
};

const known = new Map<Grammar, Language>();

// Tokenizers, not grammars: they have a tenth of the size, and start coloring near the visible part of a long file.
export async function languageOf(file: string): Promise<Language | null> {
  const grammar = grammarOf(file);
  if (!grammar) return null;
  const language = known.get(grammar) ?? StreamLanguage.define((await modes[grammar]()).mode);
  known.set(grammar, language);
  return language;
}
