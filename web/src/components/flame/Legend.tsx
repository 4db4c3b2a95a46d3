// The meaning of the colors.
import type { FlameTree } from '../../flame/tree';
import { heatColour, HEAT_STEPS, kindLabels, kinds, moduleColour } from '../../flame/colour';
import { diffPalette, DIFF_STEPS, type TreeDiff } from '../../flame/difference';
import { hasMissingCallers } from '../../flame/missing';
import { tree } from '../../store/flame';
import { theme } from '../../store/theme';
import { view } from '../../store/view';
import { scaleText } from '../../text/diff';

const MOST_MODULES = 4;

// The modules with the most self weight.
function heaviestModules(shown: FlameTree): string[] {
  const self = new Float64Array(shown.modules.length);
  for (let node = 1; node < shown.size; node++) self[shown.module[node]!]! += shown.self[node]!;
  const order = shown.modules.map((_, id) => id).filter((id) => shown.modules[id] && self[id]! > 0);
  return order
    .sort((a, b) => self[b]! - self[a]!)
    .slice(0, MOST_MODULES)
    .map((id) => shown.modules[id]!);
}

const Patch = ({ colour }: { colour: string }) => (
  <svg class="patch" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
    <rect width="10" height="10" fill={colour} />
  </svg>
);

const SHOWN_STEPS = [-8, -4, -1, 0, 1, 4, 8];

function Changes({ diff, unit }: { diff: TreeDiff; unit: string }) {
  const colours = diffPalette(theme.value, view.value.contrast);
  const end = scaleText(diff.scale, diff.normalise, unit);
  return (
    <li
      id="legend-changes"
      title="Change of a frame's total, view less baseline: ▼ shrank, ▲ grew. Between the ends by the root of the change."
    >
      ▼ −{end}
      {SHOWN_STEPS.map((step) => (
        <Patch key={step} colour={colours[step + DIFF_STEPS]!} />
      ))}
      +{end} ▲
    </li>
  );
}

function Colours({ shown }: { shown: FlameTree | null }) {
  if (shown?.diff) return <Changes diff={shown.diff} unit={shown.unit} />;
  if (view.value.colouring === 'module') {
    return (
      <>
        {shown &&
          heaviestModules(shown).map((module) => (
            <li key={module} class="legend-module" title={module}>
              <Patch colour={moduleColour(module, theme.value)} />
              <span class="ellipsis">{module}</span>
            </li>
          ))}
      </>
    );
  }
  if (view.value.colouring === 'heat') {
    return (
      <li title="Own weight of a frame">
        none
        {[0, 3, 6, 9, HEAT_STEPS - 1].map((step) => (
          <Patch key={step} colour={heatColour(step, theme.value)} />
        ))}
        hottest
      </li>
    );
  }
  return (
    <>
      {kinds.slice(0, 5).map((kind) => (
        <li key={kind}>
          <span class={`swatch kind-${kind}`} />
          {kindLabels[kind]}
        </li>
      ))}
    </>
  );
}

export function Legend() {
  const shown = tree.value;
  return (
    <ul class="legend" aria-label="Colors">
      <Colours shown={shown} />
      <li title="Callees too small to be loaded; zoom in to fetch them">
        <span class="swatch swatch-pruned" />
        Not loaded
      </li>
      {shown && hasMissingCallers(shown) && (
        <li title="Stacks whose outer callers could not be found">
          <span class="swatch swatch-truncated" />
          Callers missing
        </li>
      )}
    </ul>
  );
}
