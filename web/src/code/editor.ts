// The CodeMirror editor: a read-only source file with weights beside its lines. Loaded when the first source is shown.
import { syntaxHighlighting } from '@codemirror/language';
import { Compartment, EditorState } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { tagHighlighter, tags } from '@lezer/highlight';
import { heatGutters, setShown, type Handlers, type Shown } from './heat_gutter';
import { languageOf } from './languages';

const colours = tagHighlighter([
  { tag: tags.comment, class: 'token-comment' },
  { tag: [tags.string, tags.character, tags.regexp], class: 'token-string' },
  { tag: [tags.number, tags.bool, tags.null], class: 'token-number' },
  { tag: [tags.keyword, tags.modifier, tags.self], class: 'token-word' },
  { tag: [tags.typeName, tags.standard(tags.typeName), tags.className, tags.namespace], class: 'token-type' },
  { tag: [tags.processingInstruction, tags.meta, tags.macroName], class: 'token-directive' },
]);

export interface Editor {
  show(shown: Shown): void;
  scrollTo(line: number): void;
  focus(): void;
  destroy(): void;
}

export function createEditor(
  parent: HTMLElement,
  label: string,
  handlers: Handlers & { key: (event: KeyboardEvent) => boolean },
): Editor {
  const language = new Compartment();
  let shown: Shown | null = null;
  const view = new EditorView({
    parent,
    state: EditorState.create({
      extensions: [
        EditorState.readOnly.of(true),
        EditorState.tabSize.of(4),
        EditorView.editable.of(false),
        EditorView.contentAttributes.of({
          tabindex: '0',
          role: 'textbox',
          'aria-readonly': 'true',
          'aria-multiline': 'true',
          'aria-label': label,
        }),
        EditorView.domEventHandlers({
          keydown: (event) => handlers.key(event),
          click: (event, editor) => {
            const position = editor.posAtCoords(event, false);
            if (!(event.target as Element).closest('.cm-line') || !getSelection()?.isCollapsed) return;
            handlers.choose(editor.state.doc.lineAt(position).number + (shown?.source.first_line ?? 1) - 1);
          },
        }),
        syntaxHighlighting(colours),
        language.of([]),
        heatGutters(handlers),
      ],
    }),
  });

  // Keep the text if only the weights changed.
  const textOf = (next: Shown) => next.source.lines.map((line) => line.source).join('\n');
  const isSameText = (next: Shown) =>
    shown !== null &&
    shown.source.file === next.source.file &&
    shown.source.lines.length === next.source.lines.length &&
    shown.source.first_line === next.source.first_line &&
    (shown.source === next.source || view.state.doc.eq(view.state.toText(textOf(next))));

  return {
    show(next) {
      const other = shown?.source.file !== next.source.file;
      const text = isSameText(next) ? undefined : { from: 0, to: view.state.doc.length, insert: textOf(next) };
      shown = next;
      view.dispatch({ changes: text, effects: setShown.of(next) });
      if (!other) return;
      view.dispatch({ effects: language.reconfigure([]) });
      void languageOf(next.source.file).then((found) => {
        if (found && shown?.source.file === next.source.file)
          view.dispatch({ effects: language.reconfigure(found.extension) });
      });
    },
    scrollTo(line) {
      const index = line - (shown?.source.first_line ?? 1) + 1;
      if (index < 1 || index > view.state.doc.lines) return;
      view.dispatch({ effects: EditorView.scrollIntoView(view.state.doc.line(index).from, { y: 'center' }) });
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
