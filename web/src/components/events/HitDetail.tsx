// The chosen hit: time, thread, values and the whole stack.
import type { TracedHit } from '../../api/types';
import { escapePattern } from '../../model/pattern';
import { addWords, chosenHit, detailOpen } from '../../store/hits';
import { showMoment, startedAt } from '../../store/timeline';
import { copy } from '../../store/ui';
import { openCallers, openSource, setView, view } from '../../store/view';
import { count } from '../../text/format';
import { filterWord, hitTime } from '../../text/hits';
import { wallClock } from '../../timeline/axis';
import { Button } from '../widgets/Button';
import { Icon } from '../widgets/Icon';

function close(): void {
  detailOpen.value = false;
  document.querySelector<HTMLElement>('.rows.hits')?.focus();
}

function FilterButton({ name, value }: { name: string; value: string }) {
  const word = filterWord(name, '=', value);
  return (
    <button
      type="button"
      class="hit-filter"
      title={`Show only hits with ${word}`}
      aria-label={`Show only hits with ${word}`}
      onClick={() => addWords([word])}
    >
      <Icon name="filter" />
    </button>
  );
}

function Facts({ hit }: { hit: TracedHit }) {
  const facts: [name: string, text: string, field?: string, value?: string][] = [
    ['Thread', `${hit.comm} ${hit.tid}`, 'tid', String(hit.tid)],
    ['Process', String(hit.pid), 'pid', String(hit.pid)],
    ['CPU', String(hit.cpu), 'cpu', String(hit.cpu)],
  ];
  return (
    <dl class="hit-facts">
      <dt>Time</dt>
      <dd>
        <span class="mono">{hitTime(hit.time_ms)} s</span>{' '}
        <span class="faint">{wallClock(startedAt.value + hit.time_ms, 1)}</span>
      </dd>
      {facts.map(([name, text, field, value]) => (
        <>
          <dt>{name}</dt>
          <dd>
            {text} <FilterButton name={field!} value={value!} />
          </dd>
        </>
      ))}
      {hit.weight > 1 && (
        <>
          <dt>Weight</dt>
          <dd>{count(hit.weight)}</dd>
        </>
      )}
    </dl>
  );
}

function Values({ hit }: { hit: TracedHit }) {
  if (hit.values.length === 0) return <p class="faint">This event has no fields.</p>;
  return (
    <dl class="hit-facts" id="hit-values">
      {hit.values.map(({ name, text }) => (
        <>
          <dt class="mono">{name}</dt>
          <dd class="mono">
            {text} <FilterButton name={name} value={text} />
          </dd>
        </>
      ))}
    </dl>
  );
}

function Stack({ hit }: { hit: TracedHit }) {
  if (hit.stack.length === 0) return <p class="faint">The hit has no stack.</p>;
  return (
    <ol class="hit-stack">
      {hit.stack.map(({ name, module }, i) => (
        <li key={i}>
          <button
            type="button"
            class="link ellipsis"
            title={`${name}: show in the flame graph of ${hit.event}`}
            onClick={() => setView({ tab: 'flame', event: hit.event, search: `^${escapePattern(name)}$` })}
          >
            {name}
          </button>
          <span class="faint ellipsis">{module}</span>
          <span class="row-actions">
            <button
              type="button"
              title="Callers and callees"
              aria-label={`Callers and callees of ${name}`}
              onClick={() => openCallers(name, module)}
            >
              <Icon name="flip" />
            </button>
            <button
              type="button"
              title="Source and assembly"
              aria-label={`Source and assembly of ${name}`}
              onClick={() => openSource('', 0, name, module)}
            >
              <Icon name="code" />
            </button>
          </span>
        </li>
      ))}
    </ol>
  );
}

function Body() {
  const hit = chosenHit.data.value;
  if (!hit || hit.number !== view.value.hit?.number) {
    const error = chosenHit.error.value;
    return (
      <p class="faint" role="status">
        {error ? error.message : chosenHit.loading.value || hit ? 'Loading…' : 'This hit is no longer in memory.'}
      </p>
    );
  }
  return (
    <>
      <h3 class="hit-title">{hit.event}</h3>
      <div class="button-group">
        <Button
          icon="clock"
          id="show-moment"
          title="Show this moment on the time axis"
          onClick={() => showMoment(hit.time_ms)}
        >
          Show on the time axis
        </Button>
        <Button
          icon="copy"
          title="Copy the stack"
          onClick={() => void copy(hit.stack.map(({ name }) => name).join('\n'), 'Stack copied')}
        />
      </div>
      <Facts hit={hit} />
      <h4>Values</h4>
      <Values hit={hit} />
      <h4>Stack, innermost first</h4>
      <Stack hit={hit} />
    </>
  );
}

export function HitDetail() {
  return (
    <aside
      class="hit-detail"
      aria-label="Details of the hit"
      tabIndex={0}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        event.stopPropagation();
        close();
      }}
    >
      <div class="hit-close">
        <Button icon="close" kind="ghost" title="Close the details (Esc)" onClick={close} />
      </div>
      <Body />
    </aside>
  );
}
