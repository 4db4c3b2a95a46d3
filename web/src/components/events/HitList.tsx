// The list of hits in the order of their times, newest last, beside the details of the chosen one.
import { effect, signal } from '@preact/signals';
import type { TracedHit } from '../../api/types';
import { chooseHit, detailOpen, followsHits, hits, scrolledHits } from '../../store/hits';
import { isFiltered, view } from '../../store/view';
import { duration } from '../../text/format';
import { eventText, hitTime, threadIds, valuesText } from '../../text/hits';
import { cell, head } from '../widgets/cells';
import { Message } from '../widgets/Message';
import { VirtualRows } from '../widgets/VirtualRows';
import { HitDetail } from './HitDetail';

const ROW_HEIGHT = 26;
const scroll = signal({ index: -1, stamp: 0 });
const scrollTo = (index: number) => (scroll.value = { index, stamp: scroll.peek().stamp + 1 });
const isChosen = (hit: TracedHit) => hit.number === view.value.hit?.number;

// A live list shows its end, and so does an older part, which continues the list above what was shown before.
effect(() => {
  const list = hits.data.value?.hits ?? [];
  const { hit, hitsUntil } = view.peek();
  const at = hit ? list.findIndex((one) => one.number === hit.number) : -1;
  if (at >= 0) scrollTo(at);
  else if (followsHits.peek() || (hitsUntil !== null && !hit)) scrollTo(list.length - 1);
});

function keys(event: KeyboardEvent): void {
  const list = hits.data.value?.hits ?? [];
  if (event.target !== event.currentTarget || list.length === 0) return;
  const at = list.findIndex(isChosen);
  const last = list.length - 1;
  const to: Record<string, number> = {
    // Without a choice, the first key press chooses what is in sight: the newest hit of a live list.
    ArrowDown: at < 0 ? (followsHits.value ? last : 0) : at + 1,
    ArrowUp: at < 0 ? last : at - 1,
    PageDown: at + 20,
    PageUp: at - 20,
    Home: 0,
    End: last,
  };
  if (event.key in to) {
    const next = Math.min(last, Math.max(0, to[event.key]!));
    chooseHit(list[next]);
    scrollTo(next);
  } else if (event.key === 'Enter' && at >= 0) {
    detailOpen.value = true;
    requestAnimationFrame(() => document.querySelector<HTMLElement>('.hit-detail')?.focus());
  } else if (event.key === 'Escape') detailOpen.value = false;
  else return;
  event.preventDefault();
}

function Row({ hit, before }: { hit: TracedHit; before: TracedHit | undefined }) {
  const values = valuesText(hit.values);
  const top = hit.stack[0];
  return (
    <div
      class={`row hit-row ${isChosen(hit) ? 'row-selected' : ''}`}
      role="row"
      aria-selected={isChosen(hit)}
      data-hit={hit.number}
      onClick={() => {
        detailOpen.value = true;
        chooseHit(hit);
      }}
    >
      {cell('cell-number mono', hitTime(hit.time_ms))}
      {cell('cell-number faint hit-since', before ? `+${duration(Math.max(0, hit.time_ms - before.time_ms))}` : '')}
      {cell(
        'hit-thread',
        <>
          <span class="ellipsis">{hit.comm}</span> <span class="faint">{threadIds(hit)}</span>
        </>,
        `${hit.comm}, thread ${hit.tid} of process ${hit.pid}`,
      )}
      {cell('cell-number hit-cpu', hit.cpu)}
      {cell('ellipsis hit-event', eventText(hit.event), hit.event)}
      <span class="cell ellipsis mono" role="cell" title={values}>
        {hit.values.map(({ name, text }) => (
          <span key={name} class="hit-value">
            <span class="faint">{name}=</span>
            {text}{' '}
          </span>
        ))}
        {hit.weight > 1 && <span class="faint">weight={hit.weight}</span>}
      </span>
      {cell('ellipsis hit-function', top?.name ?? '–', top && `${top.name} (${top.module})`)}
    </div>
  );
}

function Empty() {
  if (!hits.data.value && hits.loading.value) return <Message title="Loading the hits" busy />;
  const limited = isFiltered.value || view.value.hitFilter !== '' || view.value.hitEvent !== '';
  return <Message title={limited ? 'No hits match the filter' : 'No hits yet'} />;
}

export function HitList() {
  const list = hits.data.value?.hits ?? [];
  const { hit, hitEvent } = view.value;
  const open = hit !== null && detailOpen.value;
  return (
    <div class={`hits-body ${open ? 'hits-open' : ''} ${hitEvent ? 'hits-one' : ''}`}>
      {list.length === 0 ? (
        <Empty />
      ) : (
        <VirtualRows
          class="hits"
          label="Hits"
          count={list.length}
          rowHeight={ROW_HEIGHT}
          scrollTo={scroll.value}
          onKeyDown={keys}
          onScrolled={scrolledHits}
          head={
            <div class="row row-head hit-row" role="row">
              {head('cell-number', 'Time (s)', 'Seconds since the start of the session')}
              {head('cell-number hit-since', 'Since', 'Time since the hit above')}
              {head('', 'Thread', 'Name, process and thread')}
              {head('cell-number hit-cpu', 'CPU')}
              {head('hit-event', 'Event')}
              {head('', 'Values')}
              {head('hit-function', 'Function', 'The innermost one; all of them are in the details')}
            </div>
          }
          render={(index) => <Row key={list[index]!.number} hit={list[index]!} before={list[index - 1]} />}
        />
      )}
      {open && <HitDetail />}
    </div>
  );
}
