// The pairing keys of agents, with a button to withdraw each.
import { useEffect } from 'preact/hooks';
import { pairedKeys, pairingProblem, watchKeys, withdrawKey } from '../../store/pairing';
import { clock } from '../../text/format';
import { Button } from '../widgets/Button';

export function PairedAgents() {
  useEffect(watchKeys, []);
  const used = pairedKeys.value.filter((key) => key.used || key.address || key.connected);
  if (used.length === 0) return null;
  return (
    <>
      <h4>Paired</h4>
      <ul class="loss-list" aria-label="Paired agents">
        {used.map((key) => (
          <li key={key.id} data-key={key.id}>
            <div class="loss-head">
              <strong class="mono">{key.address || key.used_from || key.id}</strong>
              <span class="faint">
                {key.connected ? 'connected' : key.used ? `last ${clock(key.used)}` : 'never connected'}
              </span>
              <span class="spacer" />
              <Button
                title={`Withdraw key ${key.id}: this agent can no longer connect`}
                onClick={() => void withdrawKey(key.id)}
              >
                Withdraw
              </Button>
            </div>
          </li>
        ))}
      </ul>
      {pairingProblem.value && (
        <p class="note note-error" role="alert">
          {pairingProblem.value}
        </p>
      )}
    </>
  );
}
