// Single hits of traced events: a list with details, or a table of groups.
import {
  filterHits,
  followsHits,
  hasHits,
  hits,
  hitTable,
  newestHits,
  olderHits,
  tracedEvents,
} from '../../store/hits';
import { saveFile } from '../../store/save';
import { isSaved } from '../../store/saved';
import { isLive, session } from '../../store/session';
import { setView, view } from '../../store/view';
import { count } from '../../text/format';
import { groupKeys, groupsCsv, hitsCsv, missingHits, missingInTable, valueKeys } from '../../text/hits';
import { Button } from '../widgets/Button';
import { ExportMenu } from '../widgets/ExportMenu';
import { Icon } from '../widgets/Icon';
import { Message } from '../widgets/Message';
import { NotRefreshed } from '../widgets/NotRefreshed';
import { Popover } from '../widgets/Popover';
import { SearchBox } from '../widgets/SearchBox';
import { GroupTable } from './GroupTable';
import { HitList } from './HitList';

const examples: [words: string, meaning: string][] = [
  ['fd=3', 'the field fd is 3'],
  ['ret<0', 'also != <= > >=, for numbers'],
  ['next_comm~python', 'the text contains python'],
  ['comm="my task"', 'quotes enclose spaces'],
  ['function=vfs_write', 'the function is anywhere on the stack'],
  ['cpu=0 tid!=42', 'both must be true'],
  ['sshd', 'a part of the thread’s name, of a value or of the innermost function'],
];

function FilterHelp() {
  return (
    <Popover
      id="hit-filter-help"
      class="button button-ghost button-icon"
      panelClass="pop-wide"
      title="How to write a filter"
      name="How to write a filter"
      label={<Icon name="help" />}
    >
      {() => (
        <div class="pop-body">
          <h4>Words that a hit must match, all of them</h4>
          <dl class="hit-examples">
            {examples.map(([words, meaning]) => (
              <>
                <dt>
                  <code>{words}</code>
                </dt>
                <dd>{meaning}</dd>
              </>
            ))}
          </dl>
          <p class="faint">Names are the fields of the events, and comm, pid, tid, cpu, event and function.</p>
        </div>
      )}
    </Popover>
  );
}

function Select({
  id,
  label,
  value,
  options,
  none,
  choose,
}: {
  id: string;
  label: string;
  value: string;
  options: readonly string[];
  none: string;
  choose: (value: string) => void;
}) {
  // A value of the address that does not exist is shown, too.
  const all = value && !options.includes(value) ? [...options, value] : options;
  return (
    <label class="select hit-select">
      <span class="faint">{label}</span>
      <select id={id} value={value} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">{none}</option>
        {all.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <Icon name="down" />
    </label>
  );
}

function Choices() {
  const events = tracedEvents.value;
  const { hitEvent, hitsBy, hitsValue, hitFilter } = view.value;
  return (
    <>
      <SearchBox
        value={hitFilter}
        placeholder="Filter hits: fd=3 ret<0"
        onInput={(text) => filterHits({ hitFilter: text }, 'replace')}
      />
      <FilterHelp />
      <Select
        id="hit-event"
        label="Event"
        value={hitEvent}
        options={events.map((event) => event.name)}
        none={events.length > 1 ? `all ${events.length}` : 'all'}
        choose={(name) => filterHits({ hitEvent: name })}
      />
      <Select
        id="hits-by"
        label="Group by"
        value={hitsBy}
        options={groupKeys(events, hitEvent)}
        none="– list of hits"
        choose={(by) => setView({ hitsBy: by })}
      />
      {hitsBy && (
        <Select
          id="hits-value"
          label="Figures of"
          value={hitsValue}
          options={valueKeys(events, hitEvent)}
          none="– numbers of hits"
          choose={(value) => setView({ hitsValue: value })}
        />
      )}
    </>
  );
}

function ListState() {
  const data = hits.data.value;
  if (!data) return null;
  const all = data.matching === data.hits.length;
  const older = view.value.hitsUntil !== null;
  return (
    <>
      <span class="faint" role="status" id="hit-count">
        {all ? count(data.matching) : `${older ? '' : 'newest '}${count(data.hits.length)} of ${count(data.matching)}`}{' '}
        {data.matching === 1 ? 'hit' : 'hits'}
        {older && ' until then'}
      </span>
      {!all && (
        <Button title="Show the hits before these" id="older-hits" onClick={olderHits}>
          Older
        </Button>
      )}
      {(older || isLive.value) && (
        <Button
          icon="play"
          id="newest-hits"
          title={followsHits.value ? 'Follows new hits' : 'Show the newest hits, and follow'}
          pressed={followsHits.value}
          onClick={newestHits}
        >
          Newest
        </Button>
      )}
    </>
  );
}

function GroupState() {
  const groups = hitTable.data.value?.groups;
  if (!groups) return null;
  const sum = groups.reduce((all, group) => all + group.hits, 0);
  return (
    <span class="faint" role="status" id="hit-count">
      {count(groups.length)} {groups.length === 1 ? 'group' : 'groups'} of {count(sum)} {sum === 1 ? 'hit' : 'hits'}
    </span>
  );
}

// The table in sight as CSV.
function exported() {
  const id = session.value?.id ?? 'session';
  const table = view.value.hitsBy ? hitTable.data.value : null;
  const list = hits.data.value?.hits ?? [];
  return {
    name: 'CSV',
    what: view.value.hitsBy ? 'the groups' : 'the list as shown',
    save: () =>
      table
        ? saveFile(`${id}-groups.csv`, 'text/csv', groupsCsv(table))
        : saveFile(`${id}-hits.csv`, 'text/csv', hitsCsv(list)),
  };
}

export function EventsView() {
  const { hitsBy } = view.value;
  const query = hitsBy ? hitTable : hits;
  const error = query.data.value === null ? query.error.value : null;
  if (isSaved || (!hasHits.value && !query.loading.value && !error))
    return (
      <Message title={isSaved ? 'Not in this file' : 'No traced events'}>
        <p>
          {isSaved
            ? 'The hits of traced events need the server.'
            : 'To keep each hit with its values, write trace: before an event of the recording, for example trace:sched:sched_switch.'}
        </p>
      </Message>
    );
  const list = hits.data.value;
  const table = hitTable.data.value;
  const notes = hitsBy ? table && missingInTable(table) : list && missingHits(list);
  return (
    <section class={`view events-view ${query.loading.value ? 'is-stale' : ''}`}>
      <div class="toolbar">
        <Choices />
        <span class="spacer" />
        <NotRefreshed of={query} />
        {hitsBy ? <GroupState /> : <ListState />}
        <ExportMenu table={exported()} />
      </div>
      {(notes?.length ?? 0) > 0 && (
        <ul class="hit-notes" aria-label="What is missing">
          {notes!.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
      {error ? (
        <p class="note note-error pad" role="alert">
          {error.message}
        </p>
      ) : hitsBy ? (
        <GroupTable />
      ) : (
        <HitList />
      )}
    </section>
  );
}
