// The command to run on a target, ready to paste.
import { useEffect } from 'preact/hooks';
import { status } from '../../store/live';
import { pairingProblem, targetCommand, watchCommand } from '../../store/pairing';
import { isLoopback } from '../../text/address';
import { CopyLine } from '../widgets/CopyLine';

export function TargetLine() {
  useEffect(watchCommand, []);
  if (!status.value) return <p class="faint">Waiting for the server…</p>;
  return (
    <>
      {targetCommand.value && <CopyLine text={targetCommand.value} />}
      {pairingProblem.value && (
        <p class="note note-error" role="alert">
          {pairingProblem.value}
        </p>
      )}
      <p class="faint">
        The code behind --pair is for one agent. Anyone who has it can connect as that agent, so keep it secret.
      </p>
      {isLoopback(status.value.agent_bind) && (
        <p class="faint">
          Agents of this machine alone reach the server (--bind {status.value.agent_bind}); for boards start it without
          that, or let it connect to them.
        </p>
      )}
      {status.value.insecure && (
        <p class="is-insecure" data-insecure>
          The server runs with --insecure: agents are accepted without encryption and without a code.
        </p>
      )}
    </>
  );
}
