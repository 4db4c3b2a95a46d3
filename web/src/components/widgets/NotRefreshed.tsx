// Says in a toolbar that the data in sight are older than they should be, and why.
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
