// Start, pause, resume and stop for the agent of the shown session, or for an idle agent.
import { setPaused, stopProfiling } from '../../store/actions';
import { connectedAgents } from '../../store/live';
import { agentOfSession } from '../../store/session';
import { dialog } from '../../store/ui';
import { Button } from '../widgets/Button';

export function RecordControls() {
  const agent = agentOfSession.value;
  const idle = connectedAgents.value.find((entry) => entry.state === 'idle');
  const target = agent ?? idle ?? connectedAgents.value[0];
  return (
    <div class="button-group" role="group" aria-label="Recording">
      {agent && agent.state === 'profiling' && (
        <Button id="pause" icon="pause" title="Pause the recording" onClick={() => void setPaused(agent.id, true)}>
          Pause
        </Button>
      )}
      {agent && agent.state === 'paused' && (
        <Button id="resume" icon="play" title="Resume recording" onClick={() => void setPaused(agent.id, false)}>
          Resume
        </Button>
      )}
      {agent && agent.state !== 'idle' && (
        <Button
          id="change"
          icon="sliders"
          title="Change rate, events, stacks or process of the recording that runs"
          onClick={() => (dialog.value = { kind: 'change', agent: agent.id })}
        >
          Change
        </Button>
      )}
      {agent && agent.state !== 'idle' && (
        <Button
          id="stop"
          icon="stop"
          title="Stop the recording; the session is kept"
          onClick={() => void stopProfiling(agent.id)}
        >
          Stop
        </Button>
      )}
      {target && (
        <Button
          id="profile"
          icon="record"
          kind={idle && !agent ? 'primary' : 'plain'}
          title="Choose a process to profile (P)"
          onClick={() => (dialog.value = { kind: 'process', agent: (idle ?? target).id })}
        >
          Profile
        </Button>
      )}
    </div>
  );
}
