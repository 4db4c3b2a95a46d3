// Connects to agents that listen: an address to dial, and the state of each dialed address.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Dial } from '../../api/types';
import { cancelDial, dial, dialProblem, dials, readDials } from '../../store/dials';
import { parseAddress } from '../../text/address';
import { Button } from '../widgets/Button';

const LOOK_MS = 1000;
const states: Record<Dial['state'], string> = {
  connecting: 'Connecting',
  waiting: 'Trying again',
  connected: 'Connected',
};

function DialEntry({ entry }: { entry: Dial }) {
  const soon = entry.state === 'waiting' ? ` in ${Math.ceil(entry.next_in_ms / 1000)} s` : '';
  return (
    <li class={`dial dial-${entry.state}`}>
      <div class="dial-head">
        <strong class="mono">
          {entry.host}:{entry.port}
        </strong>
        <span class="faint" role="status">
          {states[entry.state]}
          {soon}
          {entry.state !== 'connected' && entry.attempts > 1 && ` · ${entry.attempts} attempts`}
        </span>
        <span class="spacer" />
        <Button
          title={entry.state === 'connected' ? `Disconnect ${entry.host}` : `Stop connecting to ${entry.host}`}
          onClick={() => void cancelDial(entry.host, entry.port)}
        >
          {entry.state === 'connected' ? 'Disconnect' : 'Cancel'}
        </Button>
      </div>
      {entry.problem && <p class="is-lossy">{entry.problem}</p>}
    </li>
  );
}

export function ConnectOut() {
  const address = useSignal('');
  const code = useSignal('');
  const parsed = parseAddress(address.value);
  useEffect(() => {
    void readDials();
    const timer = window.setInterval(() => void readDials(), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  const go = async () => {
    if (!parsed) return;
    const [sentAddress, sentCode] = [address.value, code.value];
    // Text that is typed before the answer arrives belongs to the next agent.
    address.value = code.value = '';
    const accepted = await dial(parsed.host, parsed.port, sentCode.trim());
    if (!accepted && !address.value && !code.value) [address.value, code.value] = [sentAddress, sentCode];
  };
  return (
    <>
      <form
        class="fix"
        onSubmit={(event) => {
          event.preventDefault();
          void go();
        }}
      >
        <label>
          <span>
            Or reach an agent that runs with <code>--listen</code>
          </span>
          <input
            class="field mono"
            type="text"
            placeholder="board.local:9999"
            spellcheck={false}
            value={address.value}
            aria-invalid={address.value !== '' && !parsed}
            onInput={(event) => (address.value = event.currentTarget.value)}
          />
        </label>
        <label>
          <span>Its pairing code, which it printed</span>
          <input
            class="field mono pair-code"
            type="text"
            name="pair"
            placeholder="empty: the last code used"
            autocomplete="off"
            spellcheck={false}
            value={code.value}
            onInput={(event) => (code.value = event.currentTarget.value)}
          />
        </label>
        <Button title="Connect to this agent" disabled={!parsed}>
          Connect
        </Button>
      </form>
      {dialProblem.value && (
        <p class="note note-error" role="alert">
          {dialProblem.value}
        </p>
      )}
      {dials.value.length > 0 && (
        <ul class="dials" aria-label="Connections to agents">
          {dials.value.map((entry) => (
            <DialEntry key={`${entry.host}:${entry.port}`} entry={entry} />
          ))}
        </ul>
      )}
    </>
  );
}
