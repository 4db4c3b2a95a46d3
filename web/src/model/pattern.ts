// Regular expressions that a user enters in a search box.

export interface Pattern {
  test: (text: string) => boolean;
  error: string; // why the text is not a regular expression (the search then uses the literal text); empty: no error
  plain: string | null; // literal text, lowercase if `ignoreCase`; null: a regular expression
  ignoreCase: boolean;
}

// Ignores case unless the text contains a capital letter.
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
