// Callers and callees of a function: two half flame graphs around it, and its direct neighbors.
import { signal } from '@preact/signals';
import type { Neighbour } from '../../api/types';
import type { CallersHead } from '../../flame/messages';
import { compilePattern } from '../../model/pattern';
import { calleesHalf, callersHalf, sandwich } from '../../store/callers';
import { callers, functions } from '../../store/data';
import type { Frames } from '../../store/frames';
import { openCallers, view } from '../../store/view';
import { count, percent, weight } from '../../text/format';
import { ExportMenu } from '../widgets/ExportMenu';
import { FlameCanvas } from './FlameCanvas';
import { Failure, Message } from '../widgets/Message';
import { NotRefreshed } from '../widgets/NotRefreshed';
import { SearchBox } from '../widgets/SearchBox';
import { Share } from '../widgets/Share';
import { ShapeMenu } from './ShapeMenu';

const OFFERED = 200;
const sought = signal('');

// Functions to choose from: those that match, or the heaviest ones.
function Chooser() {
  const all = functions.data.value?.functions ?? [];
  const pattern = compilePattern(sought.value);
  const fitting = pattern ? all.filter((row) => pattern.test(row.name)) : all;
  const offered = fitting.slice(0, OFFERED);
  return (
    <ul class="chooser" aria-label="Functions">
      {offered.map((row) => (
        <li key={`${row.name}\n${row.module}`}>
          <button type="button" title={row.name} onClick={() => choose(row.name, row.module)}>
            <span class={`swatch kind-${row.kind}`} />
            <span class="ellipsis">{row.name}</span>
            <span class="faint">{percent(row.total_percent / 100)}</span>
          </button>
        </li>
      ))}
      {fitting.length > offered.length && (
        <li class="faint chooser-rest">{count(fitting.length - offered.length)} more; search for them</li>
      )}
      {offered.length === 0 && <li class="faint chooser-rest">No function fits.</li>}
    </ul>
  );
}

function choose(name: string, module: string): void {
  sought.value = '';
  openCallers(name, module);
}

function Neighbours({ title, rows, answer }: { title: string; rows: readonly Neighbour[]; answer: CallersHead }) {
  return (
    <section class="neighbours">
      <h3>{title}</h3>
      <div class="neighbours-scroll" tabIndex={0} role="region" aria-label={title}>
        <table>
          <thead>
            <tr>
              <th scope="col">Function</th>
              <th scope="col" class="cell-number">
                Of {answer.name.length > 24 ? 'it' : answer.name}
              </th>
              <th scope="col" class="cell-number">
                {answer.unit === 'ns' ? 'Time' : answer.unit}
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={`${row.name}\n${row.module}`}>
                <td>
                  <button
                    type="button"
                    class="neighbour"
                    title={`${row.name} (${row.module})`}
                    onClick={() => choose(row.name, row.module)}
                  >
                    <span class={`swatch kind-${row.kind}`} />
                    <span class="ellipsis">{row.name}</span>
                  </button>
                </td>
                <td class="cell-number">
                  <Share
                    value={answer.function_total.weight > 0 ? row.weight / answer.function_total.weight : 0}
                    tone="total"
                  />
                </td>
                <td class="cell-number" title={`${count(row.samples)} samples`}>
                  {weight(row.weight, answer.unit)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {rows.length === 0 && <p class="faint">None.</p>}
      </div>
    </section>
  );
}

function Half({ frames, label }: { frames: Frames; label: string }) {
  const shown = frames.tree.value;
  return (
    <section class="half" aria-label={label}>
      <h3 class="half-title">{label}</h3>
      {shown && shown.total[0]! > 0 && <FlameCanvas shown={shown} frames={frames} label={label} />}
    </section>
  );
}

function Chosen({ answer }: { answer: CallersHead }) {
  const all = answer.total.weight;
  const share = (value: number) => (all > 0 ? percent(value / all) : '–');
  return (
    <>
      <div class="subbar" id="callers-of">
        <span class={`swatch kind-${answer.kind}`} />
        <strong class="ellipsis" title={answer.name}>
          {answer.name}
        </strong>
        <span class="faint">{answer.module}</span>
        <span class="spacer" />
        <span>
          Self {weight(answer.function_self.weight, answer.unit)} ({share(answer.function_self.weight)}) · total{' '}
          {weight(answer.function_total.weight, answer.unit)} ({share(answer.function_total.weight)}) ·{' '}
          {count(answer.function_total.samples)} samples
        </span>
      </div>
      <div class="sandwich">
        <div class="sandwich-tables">
          <Neighbours title="Direct callers" rows={answer.direct_callers} answer={answer} />
          <Neighbours title="Direct callees" rows={answer.direct_callees} answer={answer} />
        </div>
        <div class="sandwich-halves">
          <Half frames={callersHalf} label="Callers" />
          <Half frames={calleesHalf} label="Callees" />
        </div>
      </div>
    </>
  );
}

function Body() {
  const error = callers.error.value ?? functions.error.value;
  if (view.value.callersOf === '' || sought.value !== '') {
    if (functions.data.value) return <Chooser />;
    return error ? <Failure error={error} /> : <Message title="Loading the functions" busy />;
  }
  const data = sandwich.value;
  if (!data) return error ? <Failure error={error} /> : <Message title="Loading callers and callees" busy />;
  if (data.answer) return <Chosen answer={data.answer} />;
  return (
    <Message title="Not in these stacks">
      <p>
        No stack of this view contains {data.name}. Choose a longer time or other threads, or search for another
        function.
      </p>
    </Message>
  );
}

export function CallersView() {
  return (
    <section class={`view callers-view ${callers.loading.value ? 'is-stale' : ''}`}>
      <div class="toolbar">
        <SearchBox
          value={sought.value}
          placeholder="Choose a function"
          error={compilePattern(sought.value)?.error}
          onInput={(text) => (sought.value = text)}
        />
        <span class="faint">Every stack counts once, by the outermost call of the function.</span>
        <span class="spacer" />
        <NotRefreshed of={callers} />
        <ShapeMenu />
        <ExportMenu />
      </div>
      <Body />
    </section>
  );
}
