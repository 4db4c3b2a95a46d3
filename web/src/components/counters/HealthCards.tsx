// Health of the machine, the target and the agent, from the newest health frames. Missing values are shown as a dash.
import type { ComponentChildren } from 'preact';
import { health } from '../../store/health';
import { level, type Level } from '../../text/counters';
import { bytes, duration, percent } from '../../text/format';

function Card({
  name,
  level: grade = 'ok',
  why,
  children,
}: {
  name: string;
  level?: Level;
  why?: string;
  children: ComponentChildren;
}) {
  return (
    <div
      class={`health-card health-${grade}`}
      data-health={name}
      title={why ?? (grade === 'ok' ? undefined : `${name}: ${grade}`)}
    >
      <span class="faint">{name}</span>
      <span class="health-value">{children}</span>
    </div>
  );
}

const none = (
  <span class="faint" title="Not available on this machine">
    –
  </span>
);
const share = (value: number | null | undefined) =>
  value === null || value === undefined ? none : percent(value / 100);
const kib = (value: number | undefined) => (value === undefined ? none : bytes(value * 1024));

export function HealthCards() {
  const data = health.data.value;
  if (!data || !data.system) return null;
  const { system, processes = [], agent } = data;
  const target = processes.reduce((sum, process) => sum + (process.cpu_pct ?? 0), 0);
  const oom = processes.reduce((most, process) => Math.max(most, process.oom_score ?? 0), 0);
  return (
    <div class="health" aria-label="Health of the machine">
      <Card name="CPU" level={level('cpu', system.cpu?.overall_pct)}>
        {share(system.cpu?.overall_pct)} <span class="faint">of {system.cpu?.num_cores ?? '?'}</span>
      </Card>
      <Card name="Memory" level={level('mem', system.mem?.used_pct)}>
        {kib(system.mem?.used_kb)} <span class="faint">of {kib(system.mem?.total_kb)}</span>
      </Card>
      <Card name="Load">{system.load?.avg_1m?.toFixed(2) ?? none}</Card>
      <Card name="Temperature" level={level('temp', system.temp_c)}>
        {system.temp_c === undefined ? none : `${system.temp_c} °C`}
      </Card>
      <Card name="Up">{system.uptime_sec === undefined ? none : duration(system.uptime_sec * 1000)}</Card>
      {processes.length > 0 && (
        <>
          <Card name="Target's CPU">{share(target)}</Card>
          <Card
            name="Target's memory"
            level={level('oom', oom)}
            why={`OOM score ${oom} of 1,000: how likely the kernel kills it when memory runs out`}
          >
            {bytes(processes.reduce((sum, process) => sum + (process.rss_kb ?? 0), 0) * 1024)}
          </Card>
        </>
      )}
      {agent && (
        <Card name="Agent">
          {share(agent.cpu_pct)} <span class="faint">{kib(agent.rss_kb)}</span>
        </Card>
      )}
    </div>
  );
}
