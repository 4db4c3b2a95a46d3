// How the page, the server and the agents are connected: one word, with details in a panel.
import type { Agent } from '../../api/types';
import { logOut } from '../../store/actions';
import { agents, connectedAgents, status, streamState } from '../../store/live';
import { savedFile } from '../../store/saved';
import { clock, duration } from '../../text/format';
import { Button } from '../widgets/Button';
import { PairedAgents } from './PairedAgents';
import { Popover } from '../widgets/Popover';
import { TargetLine } from './TargetLine';

const states: Record<Agent['state'], string> = { idle: 'idle', profiling: 'recording', paused: 'paused', away: 'away' };

function summary(): { tone: string; text: string } {
  if (savedFile.value) return { tone: 'wait', text: `Saved ${clock(savedFile.value.made)}` };
  if (streamState.value === 'lost') return { tone: 'bad', text: 'Reconnecting' };
  if (streamState.value === 'connecting') return { tone: 'wait', text: 'Connecting' };
  const count = connectedAgents.value.length;
  if (count === 0) return { tone: 'wait', text: 'No agent' };
  if (connectedAgents.value.some((agent) => agent.link === 'insecure')) return { tone: 'bad', text: 'Not encrypted' };
  return { tone: 'good', text: count === 1 ? 'Connected' : `${count} agents` };
}

function AgentEntry({ agent }: { agent: Agent }) {
  const platform = (agent.hello as { platform?: { hostname?: string; arch?: string; kernel?: string } }).platform ?? {};
  return (
    <li>
      <div class="loss-head">
        <strong>{platform.hostname || agent.address}</strong>
        <span class="faint">{agent.connected ? states[agent.state] : 'away'}</span>
        {agent.connected && agent.link === 'encrypted' && <span class="faint">encrypted</span>}
        {agent.connected && agent.link === 'insecure' && (
          <span class="is-insecure">not encrypted: others can read and change it</span>
        )}
      </div>
      <div class="faint">
        {[platform.arch, platform.kernel, agent.address].filter(Boolean).join(' · ')}
        {agent.target && ` · ${agent.target}`}
        {agent.latency_ms !== null && ` · ${duration(Math.max(0, agent.latency_ms))}`}
      </div>
    </li>
  );
}

// A user who waits for a target to connect sees its failed attempt and the reason.
export function LastTurnedAway() {
  const last = status.value?.turned_away?.[0];
  if (!last) return null;
  return (
    <p class="is-lossy" data-turned-away title={new Date(last.time).toLocaleString()}>
      {clock(last.time)}: {last.address} was turned away: {last.reason}.
    </p>
  );
}

function SavedNote() {
  return (
    <div class="pop-body">
      <h4>A saved page</h4>
      <p>
        One view of a recording, saved as a file. It works without a server. Other time ranges, threads and events,
        sources and assembly are on the server that it came from.
      </p>
    </div>
  );
}

function ThisBrowser() {
  return (
    <>
      <h4>This browser</h4>
      <div class="loss-head">
        <span class="faint">Logged in with the page&apos;s token.</span>
        <span class="spacer" />
        <Button id="log-out" title="Log out; this browser then needs the token again" onClick={() => void logOut()}>
          Log out
        </Button>
      </div>
    </>
  );
}

export function Connection() {
  const { tone, text } = summary();
  return (
    <Popover
      id="connection"
      class={`connection connection-${tone}`}
      panelClass="pop-wide"
      align="end"
      title="Connection to the server and its agents"
      label={
        <>
          <span class="dot" />
          <span role="status">{text}</span>
        </>
      }
    >
      {() =>
        savedFile.value ? (
          <SavedNote />
        ) : (
          <div class="pop-body">
            <h4>Agents</h4>
            {streamState.value === 'lost' && (
              <p class="is-lossy">
                The server does not answer. The page shows the last data received, and continues when the server is
                back.
              </p>
            )}
            {agents.value.length === 0 ? (
              <p class="faint">No agent is connected.</p>
            ) : (
              <ul class="loss-list">
                {agents.value.map((agent) => (
                  <AgentEntry key={agent.id} agent={agent} />
                ))}
              </ul>
            )}
            <LastTurnedAway />
            {status.value && (
              <>
                <h4>On a target</h4>
                <TargetLine />
                <PairedAgents />
                {status.value.token_required && <ThisBrowser />}
              </>
            )}
          </div>
        )
      }
    </Popover>
  );
}
