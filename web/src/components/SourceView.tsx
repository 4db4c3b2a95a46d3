// One source file with the weight of every line, and steps from one hot line to the next.
import { computed, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Source, SourceLine } from '../api/types';
import { hotLines, nextHot } from '../text/heat';
import { commentStarts, highlightLine } from '../text/highlight';
import { source, sourceFile, sourceFiles } from '../store/data';
import { setView, view } from '../store/view';
import { count, percent, weight } from '../text/format';
import { Button } from './Button';
import { ExportMenu } from './ExportMenu';
import { FilePicker } from './FilePicker';
import { Failure, Message } from './Message';
import { SourceMissing } from './SourceMissing';
import { VirtualRows } from './VirtualRows';

const ROW_HEIGHT = 20;

const scroll = signal({ index: -1, stamp: 0 });
const hot = computed(() => hotLines(source.data.value?.lines ?? []));
const comments = computed(() => commentStarts((source.data.value?.lines ?? []).map((line) => line.source)));

function show(data: Source, line: number): void {
  const index = data.lines.findIndex((entry) => entry.line === line);
  if (index >= 0) scroll.value = { index, stamp: scroll.value.stamp + 1 };
}

function goTo(line: number): void {
  if (line <= 0) return;
  setView({ line, file: sourceFile.value }, 'replace');
  const data = source.data.value;
  if (data) show(data, line);
}

const step = (direction: 1 | -1) => goTo(nextHot(hot.value, view.value.line || (source.data.value?.hottest ?? 0), direction));

function keys(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'h') goTo(source.data.value?.hottest ?? 0);
  else if (event.key === 'j') step(1);
  else if (event.key === 'k') step(-1);
  else return;
  event.preventDefault();
}

// Heat in five steps of the view's total; the scale is that of a whole profile, so that files can be compared.
function heatOf(share: number): number {
  return share >= 20 ? 5 : share >= 8 ? 4 : share >= 3 ? 3 : share >= 1 ? 2 : share > 0 ? 1 : 0;
}

function Line({ line, unit, inComment, chosen, hottest }: { line: SourceLine; unit: string; inComment: boolean; chosen: boolean; hottest: number }) {
  const { tokens } = highlightLine(line.source, inComment);
  const title =
    line.total > 0
      ? `self ${weight(line.weight, unit)} (${count(line.samples)} samples), total ${weight(line.total, unit)} (${count(line.total_samples)} samples)`
      : undefined;
  return (
    <div class={`row source-row heat-${heatOf(line.percent)} ${chosen ? 'row-selected' : ''}`} role="row" title={title} data-line={line.line} onClick={() => setView({ line: line.line, file: sourceFile.value }, 'replace')}>
      <span class="source-number" role="cell">
        {line.line}
      </span>
      <span class="source-heat" role="cell">
        {line.weight > 0 && (
          <>
            <span class="source-bar" style={{ width: `${(100 * line.percent) / hottest}%` }} />
            <span>{percent(line.percent / 100)}</span>
          </>
        )}
      </span>
      <span class="source-total faint" role="cell">
        {line.total > 0 && percent(line.total_percent / 100)}
      </span>
      <code class="source-code" role="cell">
        {tokens.map((token, i) => (token.kind === 'plain' ? token.text : <span key={i} class={`token-${token.kind}`}>{token.text}</span>))}
      </code>
    </div>
  );
}

function Lines({ data }: { data: Source }) {
  const v = view.value;
  const wanted = v.file === data.file && v.line > 0 ? v.line : 0;
  const most = data.lines.reduce((max, line) => Math.max(max, line.percent), 0);
  useEffect(() => show(data, wanted || data.hottest || data.first_line), [data.file, data.session, wanted]);
  return (
    <VirtualRows
      class="source"
      label={`Source of ${data.file}`}
      count={data.lines.length}
      rowHeight={ROW_HEIGHT}
      scrollTo={scroll.value}
      onKeyDown={keys}
      head={
        <div class="row row-head source-row" role="row">
          <span role="columnheader" class="source-number">Line</span>
          <span role="columnheader" class="source-heat">Self</span>
          <span role="columnheader" class="source-total">Total</span>
          <span role="columnheader" class="source-code">{data.resolved}</span>
        </div>
      }
      render={(index) => {
        const line = data.lines[index]!;
        return <Line key={line.line} line={line} unit={data.unit} inComment={comments.value[index] ?? false} chosen={line.line === wanted} hottest={most} />;
      }}
    />
  );
}

function Body() {
  const data = source.data.value;
  const error = source.error.value ?? (sourceFiles.data.value ? null : sourceFiles.error.value);
  if (data && data.file === sourceFile.value) return <Lines data={data} />;
  if (error?.body.code === 'not_found' && sourceFile.value) return <SourceMissing key={sourceFile.value} file={sourceFile.value} error={error} />;
  if (error) return <Failure error={error} />;
  if (source.loading.value || sourceFiles.loading.value) return <Message title="Loading the source" busy />;
  return (
    <Message title="No source lines">
      <p>
        None of the sampled frames knows its source file. Build the program with <code>-g</code>, or give the server the unstripped file with{' '}
        <code>--binary</code>.
      </p>
    </Message>
  );
}

export function SourceView() {
  const data = source.data.value;
  const lines = hot.value;
  return (
    <section class="view">
      <div class="toolbar">
        <FilePicker />
        {data?.note && <span class="note">{data.note}</span>}
        <span class="spacer" />
        {data && data.lines.length < data.line_count && (
          <span class="faint">
            lines {count(data.first_line)}–{count(data.first_line + data.lines.length - 1)} of {count(data.line_count)}
          </span>
        )}
        {lines.length > 0 && (
          <>
            <span class="faint">{count(lines.length)} hot lines</span>
            <div class="button-group">
              <Button title="Go to the hottest line (H)" onClick={() => goTo(data?.hottest ?? 0)}>
                Hottest
              </Button>
              <Button icon="up" title="Previous hot line (K)" onClick={() => step(-1)} />
              <Button icon="down" title="Next hot line (J)" onClick={() => step(1)} />
            </div>
          </>
        )}
        {data && <ExportMenu />}
      </div>
      <Body />
    </section>
  );
}
