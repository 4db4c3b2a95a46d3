// Which language a source file is coloured as; each is a file of its own that is loaded when first needed.
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

// Headers of C++'s library have no ending at all; of other unknown files nothing is guessed.
export function grammarOf(file: string): Grammar | null {
  const name = file.slice(file.lastIndexOf('/') + 1);
  const dot = name.lastIndexOf('.');
  if (dot < 0) return /\/c\+\+\//.test(file) ? 'cpp' : null;
  return byEnding[name.slice(dot + 1).toLowerCase()] ?? null;
}

// The files of the package have several dialects each; what only re-exports one is bundled with that one alone.
const modes: Record<Grammar, () => Promise<{ mode: StreamParser<unknown> }>> = {
  cpp: () => import('./modes/cpp'),
  rust: () => import('./modes/rust'),
  go: () => import('./modes/go'),
  python: () => import('./modes/python'),
  javascript: () => import('./modes/javascript'),
};

const known = new Map<Grammar, Language>();

// Tokenizers, not grammars: they are a tenth of the size, and begin to color a long file near to what is shown.
export async function languageOf(file: string): Promise<Language | null> {
  const grammar = grammarOf(file);
  if (!grammar) return null;
  const language = known.get(grammar) ?? StreamLanguage.define((await modes[grammar]()).mode);
  known.set(grammar, language);
  return language;
}
