// Which colour means what.
import { kindLabels, kinds } from '../flame/colour';

export function Legend() {
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
    </ul>
  );
}
