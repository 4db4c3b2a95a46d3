// Counter values of the chosen range, in the style of perf stat, and the health of the machine.
import type { ComponentChildren } from 'preact';
import type { Counter, CounterGroup } from '../../api/types';
import { countBy } from '../../store/actions';
import { counters, countersBy, type CountersBy } from '../../store/data';
import { saveFile } from '../../store/save';
import { agentOfSession, isLive, session } from '../../store/session';
import { togglePlot } from '../../store/timeline';
import { copy } from '../../store/ui';
import { view } from '../../store/view';
import {
  counterRate,
  counterRows,
  counterValue,
  csv,
  derivedText,
  shareCounted,
  sparkPath,
  statusWord,
} from '../../text/counters';
import { duration, percent } from '../../text/format';
import { Button } from '../widgets/Button';
import { ExportMenu } from '../widgets/ExportMenu';
import { HealthCards } from './HealthCards';
import { HealthPanels } from './HealthPanels';
import { NotRefreshed } from '../widgets/NotRefreshed';
import { Failure, Message } from '../widgets/Message';

const SPARK = { width: 120, height: 20 };
const scopes: Record<CountersBy, string> = { total: 'Whole target', thread: 'By thread', cpu: 'By CPU' };

// The sparkline toggles the plot on the time axis, which covers the whole target.
function PlotSwitch({ name, children }: { name: string; children: ComponentChildren }) {
  const id = `counter:${name}`;
  const drawn = view.value.plots.includes(id);
  return (
    <button
      type="button"
      class="spark-button"
      aria-pressed={drawn}
      title={drawn ? `Remove ${name} from the time axis` : `Draw ${name} on the time axis`}
      onClick={() => togglePlot(id)}
    >
      {children}
    </button>
  );
}

function Row({ counter, whole }: { counter: Counter; whole: boolean }) {
  const word = statusWord(counter.status);
  const notes = counter.derived.map(derivedText).filter(Boolean);
  const spark = (
    <svg
      class="spark"
      width={SPARK.width}
      height={SPARK.height}
      viewBox={`0 -1 ${SPARK.width} ${SPARK.height + 2}`}
      aria-hidden="true"
    >
      <path d={sparkPath(counter.series, SPARK.width, SPARK.height)} />
    </svg>
  );
  return (
    <tr data-counter={counter.name}>
      <td class="strong">{counter.name}</td>
      <td class="cell-number" title={word?.why}>
        {word ? <span class="faint">{word.word}</span> : counterValue(counter.value ?? 0, counter.unit)}
      </td>
      <td class="cell-number">{word ? '' : counterRate(counter.per_second, counter.unit)}</td>
      <td>
        {notes.join(', ')}
        {counter.parts.map((part) => (
          <div key={part.part} class="faint">
            {part.part}: {statusWord(part.status)?.word ?? counterValue(part.value ?? 0, part.unit)}
          </div>
        ))}
      </td>
      <td class="cell-number" title="Of the time in which it should have counted; the value is extrapolated">
        {shareCounted(counter.percent_counted)}
      </td>
      <td class="cell-number" title="Weight of the samples, as a share of the count; the rest was lost or throttled">
        {counter.coverage_percent === undefined ? '' : percent(counter.coverage_percent / 100)}
      </td>
      <td>{!word && (whole ? <PlotSwitch name={counter.name}>{spark}</PlotSwitch> : spark)}</td>
    </tr>
  );
}

function title(group: CounterGroup): string {
  if (group.thread) return `${group.thread.comm} (${group.thread.tid})`;
  return group.cpu === undefined ? '' : `CPU ${group.cpu}`;
}

function Group({ group }: { group: CounterGroup }) {
  return (
    <>
      {title(group) && (
        <tr class="counter-group">
          <th colSpan={7} scope="rowgroup">
            {title(group)} <span class="faint">counted since {duration(group.first_ms)} of the session</span>
          </th>
        </tr>
      )}
      {group.counters.map((counter) => (
        <Row key={counter.name} counter={counter} whole={title(group) === ''} />
      ))}
    </>
  );
}

function Scopes() {
  const agent = agentOfSession.value;
  const choose = (by: CountersBy) => {
    countersBy.value = by;
    if (agent && isLive.value && by !== 'total') void countBy(agent.id, by);
  };
  return (
    <div class="segments" role="group" aria-label="Count for">
      {(Object.keys(scopes) as CountersBy[]).map((by) => (
        <button
          key={by}
          type="button"
          class="segment"
          aria-pressed={countersBy.value === by}
          onClick={() => choose(by)}
        >
          {scopes[by]}
        </button>
      ))}
    </div>
  );
}

function Table() {
  const data = counters.data.value;
  const error = counters.error.value;
  if (!data) return error ? <Failure error={error} /> : <Message title="Loading the counters" busy />;
  if (data.groups.length === 0 && countersBy.value === 'total')
    return (
      <Message title="Nothing was counted">
        The agent counts beside its samples unless it was started with --stat none.
      </Message>
    );
  if (data.groups.length === 0)
    return (
      <Message title={`Nothing was counted ${countersBy.value === 'thread' ? 'by thread' : 'by CPU'} yet`}>
        {isLive.value
          ? 'It is counted from now on; earlier values are unknown.'
          : 'It was not counted during this recording.'}
      </Message>
    );
  return (
    <div class="table-scroll">
      <table class="sessions counters">
        <thead>
          <tr>
            <th>Counter</th>
            <th class="cell-number">Value</th>
            <th class="cell-number">Rate</th>
            <th>Derived</th>
            <th class="cell-number">Counted</th>
            <th class="cell-number">Sampled</th>
            <th>Over time</th>
          </tr>
        </thead>
        <tbody>
          {data.groups.map((group) => (
            <Group key={title(group)} group={group} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Exports({ groups }: { groups: readonly CounterGroup[] }) {
  const rows = () =>
    counterRows(groups.map((group) => ({ title: title(group) || 'whole target', counters: group.counters })));
  const save = () => saveFile(`${session.value?.id ?? 'session'}-counters.csv`, 'text/csv', csv(rows()));
  return (
    <>
      <Button
        icon="copy"
        title="Copy the table"
        onClick={() =>
          void copy(
            rows()
              .map((row) => row.join('\t'))
              .join('\n'),
            'The table is copied',
          )
        }
      />
      <ExportMenu table={{ name: 'CSV', what: 'the table', save }} />
    </>
  );
}

export function CountersView() {
  const data = counters.data.value;
  const elapsed = data?.groups.reduce((most, group) => Math.max(most, group.elapsed_ms), 0) ?? 0;
  const chosen = view.value.start !== null || view.value.end !== null;
  return (
    <section class={`view counters-view ${counters.loading.value ? 'is-stale' : ''}`}>
      <HealthCards />
      <div class="toolbar">
        <Scopes />
        <span class="faint" role="status">
          {elapsed > 0 && `${duration(elapsed)} ${chosen ? 'of the chosen time' : 'since the start'}`}
          {data?.coarse_until_ms !== undefined && `; before ${duration(data.coarse_until_ms)} in larger steps`}
        </span>
        <span class="spacer" />
        <NotRefreshed of={counters} />
        {countersBy.value !== 'total' && isLive.value && agentOfSession.value && (
          <Button
            title="Close the counters of each thread and CPU"
            onClick={() => {
              countersBy.value = 'total';
              void countBy(agentOfSession.value!.id, 'none');
            }}
          >
            Stop counting by thread and CPU
          </Button>
        )}
        {data && data.groups.length > 0 && <Exports groups={data.groups} />}
      </div>
      <Table />
      <HealthPanels />
    </section>
  );
}
