// The tab with the flame graph: search, matches, the path to the zoomed frame, and the graph.
import { baselineKey, flame, frozen } from '../../store/data';
import { mainFrames, matches, pattern, setSearch, tree, walk, walkedMatch, zoomTarget } from '../../store/flame';
import { comparing, dropBaseline } from '../../store/compare';
import { isSaved } from '../../store/saved';
import { event, isLive } from '../../store/session';
import { groups, type Group } from '../../model/view_state';
import { isFiltered, search, setShape, setView, view, zoom } from '../../store/view';
import { changeText } from '../../text/diff';
import { count, percent, weightOf } from '../../text/format';
import { Breadcrumbs } from './Breadcrumbs';
import { Button } from '../widgets/Button';
import { Choice } from '../widgets/Choice';
import { NormaliseChoice, WidthChoice } from '../functions/DiffBar';
import { ExportMenu } from '../widgets/ExportMenu';
import { FlameCanvas } from './FlameCanvas';
import { Legend } from './Legend';
import { Failure, Message } from '../widgets/Message';
import { SearchBox } from '../widgets/SearchBox';
import { ShapeMenu } from './ShapeMenu';

function Matched() {
  const found = matches.value;
  const shown = tree.value;
  if (!found || !shown) return null;
  const root = zoomTarget.value.node;
  const share = shown.total[root]! > 0 ? found.weight / shown.total[root]! : 0;
  const place = walkedMatch.value;
  return (
    <div class="matched" role="status" id="matched">
      <strong>{percent(share)}</strong> matched
      <span class="faint">
        {place >= 0 ? `${place + 1} / ` : ''}
        {count(found.nodes.length)} {found.nodes.length === 1 ? 'frame' : 'frames'}
      </span>
      <Button
        icon="left"
        kind="ghost"
        title="Previous match (Shift+N)"
        disabled={found.nodes.length === 0}
        onClick={() => walk(-1)}
      />
      <Button
        icon="right"
        kind="ghost"
        title="Next match (N)"
        disabled={found.nodes.length === 0}
        onClick={() => walk(1)}
      />
    </div>
  );
}

function Toolbar() {
  const v = view.value;
  return (
    <div class="toolbar">
      <SearchBox
        value={search.value}
        placeholder="Search frames by regular expression"
        error={pattern.value?.error}
        onInput={setSearch}
        onStep={walk}
      />
      <Matched />
      <span class="spacer" />
      <Legend />
      {!isSaved && !comparing.value && (
        <label class="inline-field" title="What the root frames of the graph are">
          Group by
          <select
            id="group-by"
            class="field"
            value={v.group}
            onChange={(event) => setShape({ group: event.currentTarget.value as Group })}
          >
            {groups.map((one) => (
              <option key={one} value={one}>
                {one === 'cpu' ? 'CPU' : one}
              </option>
            ))}
          </select>
        </label>
      )}
      <Choice
        label="Order of frames"
        value={v.inverted ? 'bottom-up' : 'top-down'}
        options={[
          { value: 'top-down', text: 'Top-down', title: 'From the outermost frames to what they call' },
          { value: 'bottom-up', text: 'Bottom-up', title: 'From the innermost frames to their callers' },
        ]}
        onChoose={(order) => setShape({ inverted: order === 'bottom-up' })}
      />
      <ShapeMenu />
      <div class="button-group">
        <Button
          icon="flip"
          title={v.upright ? 'Put the root on top' : 'Put the root at the bottom'}
          pressed={v.upright}
          onClick={() => setView({ upright: !v.upright })}
        />
        <Button
          icon="sort"
          title={v.byWeight ? 'Order siblings by name' : 'Left-heavy: order siblings by weight'}
          pressed={v.byWeight}
          onClick={() => setView({ byWeight: !v.byWeight })}
        />
        {isLive.value && (
          <Button
            icon="freeze"
            title={frozen.value ? 'Follow new data again (F)' : 'Freeze what is shown (F)'}
            pressed={frozen.value}
            onClick={() => (frozen.value = !frozen.value)}
          />
        )}
        <ExportMenu />
      </div>
    </div>
  );
}

export function FlameView() {
  const shown = tree.value;
  const error = flame.error.value;
  // The old data are of another comparison, or of none.
  if (error && comparing.value && flame.data.value?.baseline !== baselineKey.value) {
    return (
      <Failure error={error}>
        <Button title="Show the profile alone again" onClick={dropBaseline}>
          Stop comparing
        </Button>
      </Failure>
    );
  }
  const empty =
    !shown || (shown.diff ? shown.diff.total[0] === 0 && shown.diff.baseTotal[0] === 0 : shown.total[0] === 0);
  if (empty) {
    if (error) return <Failure error={error} />;
    if (flame.loading.value) return <Message title="Loading the profile" busy />;
    if (shown && view.value.hidden.length > 0) {
      return (
        <Message title="All of it is hidden">
          <Button title="Show hidden subtrees again" onClick={() => setView({ hidden: [] })}>
            Show again
          </Button>
        </Message>
      );
    }
    return (
      <Message title={isFiltered.value ? 'No samples match the filter' : 'No samples yet'}>
        <p>
          {isFiltered.value
            ? 'Clear the time range or the thread filter to see more.'
            : isLive.value
              ? 'The graph appears with the first samples. A process that sleeps has none to show.'
              : 'Nothing was sampled in this recording.'}
        </p>
      </Message>
    );
  }
  const target = zoomTarget.value;
  const v = view.value;
  return (
    <section class={`view flame-view ${flame.loading.value ? 'is-stale' : ''}`}>
      <Toolbar />
      <div class="subbar">
        <Breadcrumbs path={zoom.value} />
        {v.hidden.length > 0 && (
          <span class="note" id="hidden-note">
            {v.hidden.length === 1 ? 'A subtree is' : `${v.hidden.length} subtrees are`} hidden with{' '}
            {v.hidden.length === 1 ? 'its' : 'their'} weight.{' '}
            <button type="button" class="link" onClick={() => setView({ hidden: [] })}>
              Show again
            </button>
          </span>
        )}
        {target.found < zoom.value.length && (
          <span class="note">The zoomed frame has no samples here; its nearest caller is shown.</span>
        )}
        {error && <span class="note note-error">Not refreshed: {error.message}</span>}
        <span class="spacer" />
        {shown.diff && <NormaliseChoice />}
        {shown.diff && <WidthChoice />}
        <span class="faint" id="flame-total">
          {weightOf(event.value?.name ?? '', shown.total[target.node]!, shown.unit)} ·{' '}
          {count(shown.samples[target.node]!)} samples
          {shown.diff && ` · ${changeText(shown.diff.change[target.node]!, shown.diff.normalise, shown.unit)}`}
          {target.node > 0 && ` · ${percent(shown.total[target.node]! / shown.total[0]!)} of all`}
        </span>
      </div>
      <FlameCanvas shown={shown} frames={mainFrames} />
    </section>
  );
}
