// The state of a session, as a word with a dot.
import type { Session } from '../../api/types';

const words: Record<Session['state'], string> = { live: 'Live', paused: 'Paused', waiting: 'Waiting', ended: 'Ended' };
const meanings: Record<Session['state'], string> = {
  live: 'Samples are coming in',
  paused: 'Paused; resume to continue',
  waiting: 'Its agent is disconnected and may continue it',
  ended: 'Finished; kept on disk',
};

export function StateBadge({ state }: { state: Session['state'] }) {
  return (
    <span class={`badge badge-${state}`} title={meanings[state]}>
      <span class="dot" />
      {words[state]}
    </span>
  );
}
