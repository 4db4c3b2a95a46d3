// The counters and health values that are plotted on the time axis.
import { MOST_PLOTS, plotChoices, plotMenuOpen, togglePlot } from '../../store/timeline';
import type { PlotKind } from '../../timeline/plots';
import { view } from '../../store/view';
import { Popover } from '../widgets/Popover';
import { useEffect } from 'preact/hooks';

function Choices({ title, kinds }: { title: string; kinds: readonly PlotKind[] }) {
  if (kinds.length === 0) return null;
  return (
    <fieldset class="plot-choices">
      <legend>{title}</legend>
      {kinds.map((kind) => (
        <label key={kind.id}>
          <input type="checkbox" checked={view.value.plots.includes(kind.id)} onChange={() => togglePlot(kind.id)} />{' '}
          {kind.name}
        </label>
      ))}
    </fieldset>
  );
}

function Panel() {
  useEffect(() => {
    plotMenuOpen.value = true;
    return () => void (plotMenuOpen.value = false);
  }, []);
  const choices = plotChoices.data.value;
  if (!choices) return <p class="faint">{plotChoices.error.value?.message ?? 'Loading …'}</p>;
  return (
    <>
      <div class="plot-groups">
        <Choices title="Counters, as rates" kinds={choices.filter((kind) => kind.id.startsWith('counter:'))} />
        <Choices title="Health" kinds={choices.filter((kind) => kind.id.startsWith('health:'))} />
      </div>
      <p class="faint">Up to {MOST_PLOTS} lines, each on a scale of its own, from 0 to its highest value in view.</p>
    </>
  );
}

export function PlotMenu() {
  return (
    <Popover
      label="Lines"
      title="Draw counters and health as lines"
      class="button button-plain"
      panelClass="plot-panel"
      id="plot-menu"
    >
      {() => <Panel />}
    </Popover>
  );
}
