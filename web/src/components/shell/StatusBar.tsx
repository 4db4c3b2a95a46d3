// The status bar, which is always visible: samples, losses, and the cost of the agent.
import { liveSamples, rates, readings, status } from '../../store/live';
import { agentOfSession, isLive, session } from '../../store/session';
import { bytes, count, duration, percent, short } from '../../text/format';
import { LossItem } from './LossItem';
import { StacksItem } from './StacksItem';
import { SymbolsItem } from './SymbolsItem';

function Item({ name, value, title, id }: { name: string; value: string; title: string; id: string }) {
  return (
    <span class="status-item" title={title} id={id}>
      <span class="status-name">{name}</span> {value}
    </span>
  );
}

export function StatusBar() {
  const shown = session.value;
  const agent = agentOfSession.value;
  const stats = agent?.stats;
  const live = isLive.value;
  const reading = shown ? readings.value.get(shown.id) : undefined;
  const samples = Math.max(shown?.samples ?? 0, shown && live ? (liveSamples.value.get(shown.id) ?? 0) : 0);
  return (
    <footer class="status" aria-label="Status">
      <Item
        id="status-samples"
        name="Samples"
        value={shown ? count(samples) : '–'}
        title="Samples of this session, all events"
      />
      {reading !== undefined && (
        <Item
          id="status-reading"
          name="Reading"
          value={percent(reading)}
          title="The session's file is being read: more appears until all of it is there"
        />
      )}
      {shown && <LossItem />}
      {shown && <SymbolsItem />}
      {shown && <StacksItem />}
      {live && (
        <Item
          id="status-rate"
          name="Rate"
          value={`${short(rates.value.get(shown!.id) ?? 0)}/s`}
          title="Samples per second, over the last seconds"
        />
      )}
      <span class="spacer" />
      {shown && !live && (
        <Item
          id="status-duration"
          name="Duration"
          value={duration(shown.duration_ms)}
          title={shown.end_reason || 'Length of the recording'}
        />
      )}
      {live && (
        <>
          <Item
            id="status-agent"
            name="Agent"
            value={stats ? percent(stats.cpu_percent / 100) : '–'}
            title={
              stats
                ? `CPU of the agent itself, of one CPU. Memory ${bytes(stats.rss_bytes)}, ring buffers ${bytes(stats.ring_bytes)}, kept unsent ${bytes(stats.spool_bytes)}`
                : 'The agent has not reported yet'
            }
          />
          <Item
            id="status-latency"
            name="Latency"
            value={agent?.latency_ms === null || agent === null ? '–' : duration(Math.max(0, agent.latency_ms))}
            title="From the end of a batch on the target to its arrival here"
          />
        </>
      )}
      <span class="status-item faint" title={status.value ? `Data in ${status.value.data_dir}` : ''}>
        Flamewire {status.value?.version ?? ''}
      </span>
    </footer>
  );
}
