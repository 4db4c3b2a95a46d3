// The source file in CodeMirror, which is a separate chunk that is loaded when the first source is shown.
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Source } from '../../api/types';
import type { Editor } from '../../code/editor';
import { nextHot } from '../../text/heat';
import { chooseLine, hot, linkedLines, openInlined } from '../../store/code';
import { printing } from '../../store/printing';
import { source, sourceLine } from '../../store/source';
import { view } from '../../store/view';
import { Message } from '../widgets/Message';
import { PrintedSource } from './PrintedSource';

const openLines = signal<ReadonlySet<number>>(new Set());
const loaded = signal<typeof import('../../code/editor') | null>(null);

function toggle(line: number): void {
  const next = new Set(openLines.value);
  if (!next.delete(line)) next.add(line);
  openLines.value = next;
}

export const stepHot = (direction: 1 | -1) => chooseLine(nextHot(hot.value, sourceLine.peek(), direction));
export const goToHottest = () => chooseLine(source.data.value?.hottest ?? 0);

function key(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  if (event.key === 'h') goToHottest();
  else if (event.key === 'j') stepHot(1);
  else if (event.key === 'k') stepHot(-1);
  else if (event.key === 'i' && source.data.value?.inlined.some((call) => call.line === sourceLine.peek()))
    toggle(sourceLine.peek());
  else return false;
  event.preventDefault();
  return true;
}

export function SourceEditor({ data }: { data: Source }) {
  const parent = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const modules = loaded.value;
  const wanted = view.value.file === data.file || view.value.file === '' ? view.value.line || sourceLine.value : 0;

  useEffect(() => {
    if (!loaded.peek()) void import('../../code/editor').then((part) => (loaded.value = part));
  }, []);
  useEffect(() => {
    openLines.value = new Set();
    if (!modules || !parent.current) return undefined;
    const made = modules.createEditor(parent.current, `Source of ${data.file}`, {
      choose: chooseLine,
      toggle,
      follow: openInlined,
      key,
    });
    editor.current = made;
    return () => {
      editor.current = null;
      made.destroy();
    };
  }, [modules, data.file]);
  useEffect(() => {
    editor.current?.show({ source: data, chosen: wanted, linked: linkedLines.value, open: openLines.value });
  }, [modules, data, wanted, linkedLines.value, openLines.value]);
  useEffect(() => {
    editor.current?.scrollTo(wanted || data.hottest || data.first_line);
  }, [modules, data.file, data.session, wanted]);

  return (
    <>
      <div class="code-bar faint">
        <span class="ellipsis" title={data.resolved}>
          {data.resolved}
        </span>
        <span class="spacer" />
        <span>own share, with what it calls</span>
      </div>
      <div class="source-editor" ref={parent}>
        {!modules && <Message title="Loading the source" busy />}
      </div>
      {printing.value && <PrintedSource data={data} />}
    </>
  );
}
