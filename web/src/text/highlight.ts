// A light touch of colour for source of the C family, Rust and their like: comments, strings, numbers and the commonest words.
// Works line by line; only a block comment carries over from the line before.
export type TokenKind = 'plain' | 'comment' | 'string' | 'number' | 'word' | 'directive';
export interface Token {
  kind: TokenKind;
  text: string;
}

const words = new Set(
  (
    'alignas alignof asm async auto await bool break case catch char class co_await co_return co_yield concept const const_cast ' +
    'constexpr consteval constinit continue crate decltype default defer delete do double dyn dynamic_cast else enum explicit export extern false ' +
    'final float fn for friend func go goto if impl import in inline int interface let long loop match mod mut mutable namespace new ' +
    'noexcept nullptr operator override package private protected pub public range register reinterpret_cast requires return self short ' +
    'signed sizeof static static_assert static_cast struct super switch template this thread_local throw trait true try type typedef ' +
    'typeid typename union unsafe unsigned use using var virtual void volatile where while yield'
  ).split(' '),
);

const pattern =
  /(\/\/.*$)|(\/\*.*?(?:\*\/|$))|("(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\]){1,8}')|(\b0[xX][\da-fA-F']+\w*|\b\d[\d.']*(?:[eE][+-]?\d+)?\w*)|([A-Za-z_]\w*)|(^\s*#\s*\w+)/g;

const LONGEST = 2000; // a generated line is shown as it is

export function highlightLine(line: string, inComment: boolean): { tokens: Token[]; inComment: boolean } {
  if (line.length > LONGEST) return { tokens: [{ kind: 'plain', text: line }], inComment };
  const tokens: Token[] = [];
  let at = 0;
  if (inComment) {
    const end = line.indexOf('*/');
    if (end < 0) return { tokens: line ? [{ kind: 'comment', text: line }] : [], inComment: true };
    at = end + 2;
    tokens.push({ kind: 'comment', text: line.slice(0, at) });
    inComment = false;
  }
  const put = (kind: TokenKind, text: string) => {
    const last = tokens.at(-1);
    if (!text) return;
    if (last && last.kind === kind) last.text += text;
    else tokens.push({ kind, text });
  };
  pattern.lastIndex = at;
  for (let match = pattern.exec(line); match; match = pattern.exec(line)) {
    put('plain', line.slice(at, match.index));
    const text = match[0];
    if (match[1] !== undefined) put('comment', text);
    else if (match[2] !== undefined) {
      put('comment', text);
      inComment = !text.endsWith('*/') || text.length < 4;
    } else if (match[3] !== undefined) put('string', text);
    else if (match[4] !== undefined) put('number', text);
    else if (match[5] !== undefined) put(words.has(text) ? 'word' : 'plain', text);
    else put('directive', text);
    at = match.index + text.length;
  }
  put('plain', line.slice(at));
  return { tokens, inComment };
}

// For each line, whether it begins inside a block comment.
export function commentStarts(lines: readonly string[]): boolean[] {
  let inside = false;
  return lines.map((line) => {
    const before = inside;
    if (inside ? line.includes('*/') : line.includes('/*')) inside = highlightLine(line, inside).inComment;
    return before;
  });
}
