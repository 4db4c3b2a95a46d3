// Source and machine code side by side, each with weights. Lines and instructions are linked.
import { goToHottestInstruction, hot } from '../../store/code';
import { source, sourceFile, sourceFiles } from '../../store/source';
import { setView, view } from '../../store/view';
import { count } from '../../text/format';
import { Button } from '../widgets/Button';
import { DisassemblyView } from './DisassemblyView';
import { ExportMenu } from '../widgets/ExportMenu';
import { FilePicker } from './FilePicker';
import { Failure, Message } from '../widgets/Message';
import { goToHottest, SourceEditor, stepHot } from './SourceEditor';
import { SourceMissing } from './SourceMissing';

function Body() {
  const data = source.data.value;
  const error = source.error.value ?? (sourceFiles.data.value || view.value.codeOf ? null : sourceFiles.error.value);
  if (data && data.file === sourceFile.value) return <SourceEditor data={data} />;
  if (error?.body.code === 'not_found' && sourceFile.value)
    return <SourceMissing key={sourceFile.value} file={sourceFile.value} error={error} />;
  if (error) return <Failure error={error} />;
  if (sourceFile.value || sourceFiles.loading.value) return <Message title="Loading the source" busy />;
  return (
    <Message title="No source lines">
      <p>
        {view.value.codeOf
          ? 'The debug info of this function names no source file.'
          : 'None of the sampled frames has a known source file.'}{' '}
        Build the program with <code>-g</code>, or give the server the unstripped file with <code>--binary</code>.
      </p>
    </Message>
  );
}

export function SourceView() {
  const data = source.data.value;
  const lines = hot.value;
  const { split } = view.value;
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
              <Button title="Go to the hottest line (H)" onClick={goToHottest}>
                Hottest
              </Button>
              <Button icon="up" title="Previous hot line (K)" onClick={() => stepHot(-1)} />
              <Button icon="down" title="Next hot line (J)" onClick={() => stepHot(1)} />
            </div>
          </>
        )}
        <Button
          title={split ? 'Show the source alone' : 'Show the machine code beside the source'}
          pressed={split}
          onClick={() => setView({ split: !split })}
        >
          Assembly
        </Button>
        {data && <ExportMenu />}
      </div>
      <div class={`code-panes ${split ? 'code-split' : ''}`}>
        <div class="code-pane" aria-label="Source">
          <Body />
        </div>
        {split && (
          <div class="code-pane">
            <DisassemblyView onHottest={goToHottestInstruction} />
          </div>
        )}
      </div>
    </section>
  );
}
