// A note in a toolbar that the shown data are outdated, with the reason.
import type { Query } from '../../store/query';

export function NotRefreshed({ of }: { of: Pick<Query<unknown>, 'data' | 'error'> }) {
  const error = of.error.value;
  if (!error || of.data.value === null) return null;
  return (
    <span class="note note-error" role="status" title={error.message}>
      Not refreshed: {error.message}
    </span>
  );
}
