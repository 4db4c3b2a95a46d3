// The first screen: how to connect a target, what to profile on a connected one, and earlier recordings.
import type { Agent } from '../../api/types';
import { connectedAgents } from '../../store/live';
import { sessions } from '../../store/session';
import { dialog } from '../../store/ui';
import { openSession } from '../../store/view';
import { clock, count, duration } from '../../text/format';
import { sessionTitle } from '../../text/sessions';
import { Button } from '../widgets/Button';
import { ConnectOut } from './ConnectOut';
import { LastTurnedAway } from './Connection';
import { TargetLine } from './TargetLine';

function Ready({ agent }: { agent: Agent }) {
  const platform = (agent.hello as { platform?: { hostname?: string; arch?: string; kernel?: string } }).platform ?? {};
  return (
    <li class="start-agent">
      <div>
        <strong>{platform.hostname || agent.address}</strong>
        <div class="faint">{[platform.arch, platform.kernel].filter(Boolean).join(' · ')}</div>
      </div>
      <Button
        icon="record"
        kind="primary"
        title="Choose a process to profile"
        onClick={() => (dialog.value = { kind: 'process', agent: agent.id })}
      >
        Choose a process
      </Button>
    </li>
  );
}

export function StartScreen() {
  const ready = connectedAgents.value;
  const recent = sessions.value.slice(0, 6);
  return (
    <div class="start">
      <div class="start-card">
        {ready.length > 0 ? (
          <>
            <h1>What do you want to profile?</h1>
            <ul class="start-agents">
              {ready.map((agent) => (
                <Ready key={agent.id} agent={agent} />
              ))}
            </ul>
          </>
        ) : (
          <>
            <h1>Connect a target</h1>
            <p>
              Run this line on the machine or board that you want to profile. Nothing else needs to be installed there.
            </p>
            <TargetLine />
            <p class="start-wait">
              <span class="dot" /> Waiting for an agent
            </p>
            <LastTurnedAway />
            <ConnectOut />
            <p>
              <Button
                title="From connecting to a flame graph, step by step"
                onClick={() => (dialog.value = { kind: 'wizard' })}
              >
                Guide me
              </Button>
            </p>
          </>
        )}
      </div>
      {recent.length > 0 && (
        <div class="start-card">
          <h2>Recent sessions</h2>
          <ul class="menu">
            {recent.map((entry) => (
              <li key={entry.id}>
                <button type="button" onClick={() => openSession(entry.id)}>
                  <span class="ellipsis strong">{sessionTitle(entry)}</span>
                  <span class="faint">
                    {clock(entry.started)} · {duration(entry.duration_ms)} · {count(entry.samples)} samples
                  </span>
                </button>
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}
