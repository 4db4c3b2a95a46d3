// Which colour means what.
import { kindLabels, kinds } from '../flame/colour';
import { hasMissingCallers } from '../flame/missing';
import { tree } from '../store/flame';

export function Legend() {
  const shown = tree.value;
  return (
    <ul class="legend" aria-label="Colours">
      {kinds.map((kind) => (
        <li key={kind}>
          <span class={`swatch kind-${kind}`} />
          {kindLabels[kind]}
        </li>
      ))}
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
