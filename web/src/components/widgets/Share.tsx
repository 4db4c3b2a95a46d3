// A percentage with a bar behind it.
import { percent } from '../../text/format';

export function Share({ value, tone = 'self' }: { value: number; tone?: 'self' | 'total' }) {
  return (
    <span class={`share share-${tone}`}>
      <span class="share-bar" style={{ width: `${Math.min(100, Math.max(0, value * 100))}%` }} />
      <span class="share-text">{percent(value)}</span>
    </span>
  );
}
