// Regular expressions that a person writes into a search box.

export interface Pattern {
  test: (text: string) => boolean;
  error: string; // empty, or why the text is not a regular expression; it is then searched as it stands
  plain: string | null; // the text to look for, when it is not an expression; in small letters when case is ignored
  ignoreCase: boolean;
}

// Small letters match both cases, a capital only itself.
export function compilePattern(text: string): Pattern | null {
  if (!text) return null;
  const ignoreCase = text === text.toLowerCase();
  try {
    const expression = new RegExp(text, ignoreCase ? 'i' : '');
    return {
      test: (name) => expression.test(name),
      error: '',
      plain: escapePattern(text) === text ? text : null,
      ignoreCase,
    };
  } catch (error) {
    return {
      test: (name) => (ignoreCase ? name.toLowerCase() : name).includes(text),
      error:
        error instanceof Error
          ? error.message.replace(/^Invalid regular expression: /, '')
          : 'not a regular expression',
      plain: text,
      ignoreCase,
    };
  }
}

export const escapePattern = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
