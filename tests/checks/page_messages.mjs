// Prints the texts of the page that people can read, for messages.py: FOLDER FILE... -> {file: [text]} as JSON. FOLDER
// contains TypeScript.
//
// A text is the content of a JSX element with its inline elements, or a string literal or template; {} stands for
// values. A literal counts if a JSX element contains it, if it is the value of an attribute or property in WORDS_OF, or
// if it has two words: letter, space, letter. Types, imports, operands of comparisons, and matches of NOT_WORDS and
// NOT_MESSAGES do not count.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const [folder, ...files] = process.argv.slice(2);
const ts = createRequire(join(resolve(folder), 'package.json'))('typescript');

const INLINE = new Set(['a', 'b', 'code', 'em', 'i', 'kbd', 'strong']);
const WORDS_OF = new Set([
  'title',
  'label',
  'text',
  'placeholder',
  'aria-label',
  'alt',
  'hint',
  'name',
  'empty',
  'what',
  'help',
]);
const NOT_WORDS = /class$|^(d|viewBox|style|points|transform|href|font)$/i;
const NOT_MESSAGES = /^\((prefers-|max-|min-)|^\w+\(\{\}|^\d+px |\w+:not\(|^\.[\w-]+[, ]/; // CSS
const ENTITIES = { apos: "'", quot: '"', amp: '&', lt: '<', gt: '>', nbsp: ' ' };

function words(text) {
  return /[A-Za-z}][,.:;)'"]* [('"]*[A-Za-z{]/.test(text) && /[A-Za-z]{2}/.test(text.replaceAll('{}', ''));
}

function flat(node) {
  if (ts.isJsxText(node)) {
    const edge = (gap, at) => (at === 0 || at + gap.length === node.text.length ? '' : ' ');
    return node.text.replace(/\s*\n\s*/g, edge).replace(/&(\w+);/g, (all, name) => ENTITIES[name] ?? all);
  }
  if (ts.isJsxExpression(node)) {
    if (!node.expression) return '';
    return ts.isStringLiteralLike(node.expression) ? node.expression.text : '{}';
  }
  if (ts.isJsxElement(node) && INLINE.has(node.openingElement.tagName.getText()))
    return node.children.map(flat).join('');
  if (ts.isJsxElement(node) || ts.isJsxSelfClosingElement(node) || ts.isJsxFragment(node)) return '\n';
  return '';
}

function template(node) {
  return node.head.text + node.templateSpans.map((span) => `{}${span.literal.text}`).join('');
}

// 'a' + b + 'c' is one text.
function joined(node) {
  if (ts.isParenthesizedExpression(node)) return joined(node.expression);
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node)) return template(node);
  if (isPlus(node)) return joined(node.left) + joined(node.right);
  return '{}';
}

// The name of the attribute or property whose value is the literal; "shown" if a JSX element contains it.
function holder(node) {
  let up = node.parent;
  const passes = [ts.isJsxExpression, ts.isConditionalExpression, ts.isParenthesizedExpression, ts.isBinaryExpression];
  while (up && passes.some((is) => is(up))) up = up.parent;
  if (up && (ts.isJsxElement(up) || ts.isJsxFragment(up))) return 'shown';
  if (!up || !(ts.isJsxAttribute(up) || ts.isPropertyAssignment(up))) return '';
  const name = up.name.getText().replace(/['"]/g, '');
  return name === 'name' && (!/^['"][A-Z]/.test(node.getText()) || up.parent.parent.tagName?.getText() === 'Icon')
    ? ''
    : name;
}

function compared(node) {
  const parent = node.parent;
  return (
    ts.isBinaryExpression(parent) &&
    /^[=!<>]/.test(parent.operatorToken.getText()) &&
    parent.operatorToken.getText() !== '='
  );
}

function isPlus(node) {
  return ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken;
}

function collect(source) {
  const found = [];
  const add = (text) => {
    for (const line of text.split('\n')) if (/[A-Za-z]{2}/.test(line.replaceAll('{}', ''))) found.push(line);
  };
  const literal = (node, text) => {
    const name = holder(node);
    if (NOT_WORDS.test(name) || NOT_MESSAGES.test(text) || compared(node)) return;
    if (name === 'shown' || WORDS_OF.has(name) || words(text)) add(text);
  };
  const visit = (node, inText) => {
    if (ts.isImportDeclaration(node) || ts.isTypeNode(node) || ts.isExportDeclaration(node)) return;
    let within = false;
    if (ts.isJsxElement(node) || ts.isJsxFragment(node)) {
      const inline = ts.isJsxElement(node) && INLINE.has(node.openingElement.tagName.getText());
      within = node.children.some((child) => ts.isJsxText(child) && /[A-Za-z]/.test(child.text)) || (inText && inline);
      if (within && !(inText && inline)) add(node.children.map(flat).join(''));
    } else if (
      !isPlus(node.parent) &&
      (isPlus(node) || ts.isTemplateExpression(node) || ts.isStringLiteralLike(node))
    ) {
      literal(node, joined(node));
    }
    ts.forEachChild(node, (child) => visit(child, within));
  };
  ts.forEachChild(source, (child) => visit(child, false));
  return found;
}

const out = {};
for (const name of files) {
  const kind = name.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  out[name] = collect(ts.createSourceFile(name, readFileSync(name, 'utf8'), ts.ScriptTarget.Latest, true, kind));
}
console.log(JSON.stringify(out));
