// Weights beside the lines of the editor: self and total in gutters, heat behind the line, and inlined functions.
import {
  RangeSet,
  RangeSetBuilder,
  StateEffect,
  StateField,
  type EditorState,
  type Extension,
} from '@codemirror/state';
import {
  Decoration,
  EditorView,
  GutterMarker,
  ViewPlugin,
  WidgetType,
  gutter,
  lineNumbers,
  type DecorationSet,
  type ViewUpdate,
} from '@codemirror/view';
import type { InlinedCall, Source, SourceLine } from '../api/types';
import { count, percent, weight } from '../text/format';
import { heatOf } from '../text/heat';

export interface Shown {
  source: Source;
  chosen: number; // line; 0: none
  linked: ReadonlySet<number>; // lines of the marked instruction
  open: ReadonlySet<number>; // lines whose inlined functions are shown
}

export interface Handlers {
  choose: (line: number) => void;
  toggle: (line: number) => void;
  follow: (call: InlinedCall) => void;
}

export const setShown = StateEffect.define<Shown>();

const nothing: Shown = {
  source: {
    file: '',
    resolved: '',
    session: '',
    event: '',
    unit: '',
    total: { samples: 0, weight: 0 },
    lines: [],
    inlined: [],
    first_line: 1,
    line_count: 0,
    hottest: 0,
    note: '',
  },
  chosen: 0,
  linked: new Set(),
  open: new Set(),
};

export const shownField = StateField.define<Shown>({
  create: () => nothing,
  update: (value, transaction) =>
    transaction.effects.reduce((last, effect) => (effect.is(setShown) ? effect.value : last), value),
});

const changed = (update: ViewUpdate) => update.startState.field(shownField) !== update.state.field(shownField);

// Line numbers of the editor begin at 1, those of the answer at first_line.
const numberAt = (state: EditorState, position: number) =>
  state.doc.lineAt(position).number + state.field(shownField).source.first_line - 1;
const lineAt = (state: EditorState, position: number): SourceLine | undefined =>
  state.field(shownField).source.lines[state.doc.lineAt(position).number - 1];

class Weight extends GutterMarker {
  constructor(
    private readonly text: string,
    private readonly bar: number, // percent of the column
    private readonly title: string,
  ) {
    super();
  }
  override eq(other: Weight): boolean {
    return other.text === this.text && other.bar === this.bar && other.title === this.title;
  }
  override toDOM(): Node {
    const cell = document.createElement('span');
    cell.className = 'heat-cell';
    cell.title = this.title;
    if (this.bar > 0) {
      const bar = cell.appendChild(document.createElement('span'));
      bar.className = 'source-bar';
      bar.style.width = `${this.bar}%`;
    }
    cell.appendChild(document.createElement('span')).textContent = this.text;
    return cell;
  }
}

class Fold extends GutterMarker {
  constructor(private readonly open: boolean) {
    super();
  }
  override eq(other: Fold): boolean {
    return other.open === this.open;
  }
  override toDOM(): Node {
    const mark = document.createElement('span');
    mark.className = 'inline-mark';
    mark.textContent = this.open ? '▾' : '▸';
    mark.title = this.open ? 'Hide what was inlined here' : 'Show what was inlined here (I)';
    return mark;
  }
}

const titleOf = (line: SourceLine, unit: string) =>
  `self ${weight(line.weight, unit)} (${count(line.samples)} samples), total ${weight(line.total, unit)} (${count(line.total_samples)} samples)`;

function weightGutter(kind: 'self' | 'total', highest: (state: EditorState) => number): Extension {
  return gutter({
    class: `source-${kind}`,
    lineMarker: (view, block) => {
      const line = lineAt(view.state, block.from);
      const own = kind === 'self' ? line?.percent : line?.total_percent;
      if (!line || !own) return null;
      const most = highest(view.state);
      return new Weight(
        percent(own / 100),
        kind === 'self' && most > 0 ? Math.round((100 * own) / most) : 0,
        titleOf(line, view.state.field(shownField).source.unit),
      );
    },
    lineMarkerChange: changed,
    initialSpacer: () => new Weight('100.0%', 0, ''),
  });
}

// One list for both the gutter and the widgets.
function callsAt(shown: Shown): Map<number, InlinedCall[]> {
  const calls = new Map<number, InlinedCall[]>();
  for (const call of shown.source.inlined) calls.set(call.line, [...(calls.get(call.line) ?? []), call]);
  return calls;
}
const callsField = StateField.define<Map<number, InlinedCall[]>>({
  create: (state) => callsAt(state.field(shownField)),
  update: (value, transaction) =>
    transaction.startState.field(shownField).source === transaction.state.field(shownField).source
      ? value
      : callsAt(transaction.state.field(shownField)),
});

class Inlined extends WidgetType {
  constructor(
    private readonly calls: readonly InlinedCall[],
    private readonly follow: (call: InlinedCall) => void,
  ) {
    super();
  }
  override eq(other: Inlined): boolean {
    return other.calls === this.calls;
  }
  override toDOM(): HTMLElement {
    const list = document.createElement('div');
    list.className = 'inlined-calls';
    for (const call of this.calls) {
      const button = list.appendChild(document.createElement('button'));
      button.type = 'button';
      button.className = 'inlined-call';
      button.title = call.file ? `${call.file}:${call.function_line}` : 'Its source is not known';
      button.appendChild(document.createElement('span')).textContent = percent(call.total_percent / 100);
      button.appendChild(document.createElement('span')).textContent = call.name;
      button.addEventListener('click', () => this.follow(call));
    }
    return list;
  }
  override ignoreEvent(): boolean {
    return true;
  }
}

// Block widgets change the height of the document, so they must be in the state, not in the view.
function widgets(follow: (call: InlinedCall) => void): Extension {
  const build = (state: EditorState): DecorationSet => {
    const { open, source } = state.field(shownField);
    const calls = state.field(callsField);
    const builder = new RangeSetBuilder<Decoration>();
    for (const line of [...open].sort((a, b) => a - b)) {
      const index = line - source.first_line + 1;
      const found = calls.get(line);
      if (!found || index < 1 || index > state.doc.lines) continue;
      const { to } = state.doc.line(index);
      builder.add(to, to, Decoration.widget({ widget: new Inlined(found, follow), block: true, side: 1 }));
    }
    return builder.finish();
  };
  return StateField.define<DecorationSet>({
    create: build,
    update: (value, transaction) =>
      transaction.startState.field(shownField) === transaction.state.field(shownField)
        ? value
        : build(transaction.state),
    provide: (field) => EditorView.decorations.from(field),
  });
}

// CSS classes of the visible lines.
const lineClasses = ViewPlugin.fromClass(
  class {
    decorations: DecorationSet;
    constructor(view: EditorView) {
      this.decorations = this.build(view);
    }
    update(update: ViewUpdate): void {
      if (update.docChanged || update.viewportChanged || changed(update)) this.decorations = this.build(update.view);
    }
    build(view: EditorView): DecorationSet {
      const shown = view.state.field(shownField);
      const marks = [];
      for (const { from, to } of view.visibleRanges) {
        for (let at = from; at <= to; ) {
          const line = view.state.doc.lineAt(at);
          const number = line.number + shown.source.first_line - 1;
          const heat = heatOf(shown.source.lines[line.number - 1]?.percent ?? 0);
          const classes = ['source-line', `heat-${heat}`];
          if (number === shown.chosen) classes.push('line-chosen');
          if (shown.linked.has(number)) classes.push('line-linked');
          marks.push(
            Decoration.line({ class: classes.join(' '), attributes: { 'data-line': String(number) } }).range(line.from),
          );
          at = line.to + 1;
        }
      }
      return RangeSet.of(marks);
    }
  },
  { decorations: (plugin) => plugin.decorations },
);

export function heatGutters(handlers: Handlers): Extension {
  const most = new WeakMap<Source, number>();
  const highest = (state: EditorState) => {
    const { source } = state.field(shownField);
    let value = most.get(source);
    if (value === undefined)
      most.set(source, (value = source.lines.reduce((max, line) => Math.max(max, line.percent), 0)));
    return value;
  };
  return [
    shownField,
    callsField,
    lineNumbers({
      formatNumber: (number, state) => String(number + state.field(shownField).source.first_line - 1),
      domEventHandlers: { mousedown: (view, block) => (handlers.choose(numberAt(view.state, block.from)), true) },
    }),
    weightGutter('self', highest),
    weightGutter('total', () => 0),
    gutter({
      class: 'source-inlined',
      lineMarker: (view, block) => {
        const line = numberAt(view.state, block.from);
        return view.state.field(callsField).has(line) ? new Fold(view.state.field(shownField).open.has(line)) : null;
      },
      lineMarkerChange: changed,
      initialSpacer: () => new Fold(false),
      domEventHandlers: {
        mousedown: (view, block) => {
          const line = numberAt(view.state, block.from);
          if (view.state.field(callsField).has(line)) handlers.toggle(line);
          return true;
        },
      },
    }),
    widgets(handlers.follow),
    lineClasses,
  ];
}
