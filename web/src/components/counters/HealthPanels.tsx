// Processes, network, disks and threads of the machine, from health frames. Groups that the agent does not read can be
// switched on here.
import { useEffect } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import type { ProcessHealth } from '../../api/types';
import { health, healthDetail, metricsSettings, openHealthGroups } from '../../store/health';
import { changeMetrics } from '../../store/actions';
import { agentOfSession, isLive } from '../../store/session';
import { level } from '../../text/counters';
import { bytes, count, percent, short } from '../../text/format';
import { speeds, threadUse } from '../../text/health';

const dash = <span class="faint">–</span>;
const speed = (value: number | null | undefined, unit: (n: number) => string) =>
  value === null || value === undefined ? dash : `${unit(value)}/s`;

interface Column {
  name: string;
  numeric?: boolean;
}

function Table({
  columns,
  rows,
}: {
  columns: readonly Column[];
  rows: readonly { key: string; class?: string; cells: ComponentChildren[] }[];
}) {
  return (
    <table class="sessions health-table">
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.name} class={column.numeric ? 'cell-number' : ''}>
              {column.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.key} class={row.class}>
            {row.cells.map((cell, i) => (
              <td key={columns[i]!.name} class={columns[i]!.numeric ? 'cell-number' : ''}>
                {cell}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const numeric = (...names: string[]): Column[] => names.map((name) => ({ name, numeric: true }));

function Processes({ list }: { list: readonly ProcessHealth[] }) {
  return (
    <Table
      columns={[{ name: 'Process' }, ...numeric('CPU', 'Memory', 'Threads', 'Open files', 'Major faults', 'OOM score')]}
      rows={list.map((process) => ({
        key: String(process.pid),
        class: `health-row-${[level('cpu', process.cpu_pct), level('oom', process.oom_score)].sort((a, b) => order.indexOf(b) - order.indexOf(a))[0]}`,
        cells: [
          `${process.comm} (${process.pid})`,
          process.cpu_pct === null || process.cpu_pct === undefined ? dash : percent(process.cpu_pct / 100),
          process.rss_kb === undefined ? dash : bytes(process.rss_kb * 1024),
          process.threads ?? dash,
          process.fds ?? dash,
          process.major_faults === undefined ? dash : count(process.major_faults),
          process.oom_score ?? dash,
        ],
      }))}
    />
  );
}
const order = ['ok', 'warning', 'critical'];

function Network() {
  const rows = speeds(healthDetail.data.value?.network ?? [], 'interfaces', [
    'rx_bytes',
    'rx_packets',
    'rx_errors',
    'rx_drops',
    'tx_bytes',
    'tx_packets',
    'tx_errors',
  ]);
  return (
    <Table
      columns={[{ name: 'Interface' }, ...numeric('Received', 'Packets', 'Sent', 'Packets sent', 'Errors', 'Drops')]}
      rows={rows.map(({ name, values: v }) => ({
        key: name,
        cells: [
          name,
          speed(v['rx_bytes'], bytes),
          speed(v['rx_packets'], short),
          speed(v['tx_bytes'], bytes),
          speed(v['tx_packets'], short),
          speed(
            v['rx_errors'] === null && v['tx_errors'] === null ? null : (v['rx_errors'] ?? 0) + (v['tx_errors'] ?? 0),
            short,
          ),
          speed(v['rx_drops'], short),
        ],
      }))}
    />
  );
}

function Disks() {
  const rows = speeds(healthDetail.data.value?.disk ?? [], 'devices', [
    'read_bytes',
    'reads',
    'read_ms',
    'write_bytes',
    'writes',
    'write_ms',
  ]);
  return (
    <Table
      columns={[{ name: 'Disk' }, ...numeric('Read', 'Reads', 'Written', 'Writes')]}
      rows={rows.map(({ name, values: v }) => ({
        key: name,
        cells: [
          name,
          speed(v['read_bytes'], bytes),
          speed(v['reads'], short),
          speed(v['write_bytes'], bytes),
          speed(v['writes'], short),
        ],
      }))}
    />
  );
}

function Threads() {
  const rows = threadUse(healthDetail.data.value?.threads ?? []);
  return (
    <Table
      columns={[{ name: 'Thread' }, { name: 'State' }, ...numeric('CPU')]}
      rows={rows.slice(0, 64).map((thread) => ({
        key: `${thread.pid}/${thread.tid}`,
        cells: [
          `${thread.comm} (${thread.tid})`,
          thread.state,
          thread.cpuPercent === null ? dash : percent(thread.cpuPercent / 100),
        ],
      }))}
    />
  );
}

// A group that may have no frames, because the agent does not read it by default.
function Group({
  name,
  title,
  there,
  children,
}: {
  name: 'network' | 'disk' | 'threads';
  title: string;
  there: boolean;
  children: ComponentChildren;
}) {
  const agent = agentOfSession.value;
  const settings = metricsSettings.data.value;
  const live = isLive.value && agent !== null;
  return (
    <section class="health-group" data-health-group={name}>
      <h3>
        {title}
        {live && settings && (
          <label class="faint">
            <input
              type="checkbox"
              checked={settings[name]}
              onChange={(event) => void changeMetrics(agent.id, { [name]: event.currentTarget.checked })}
            />{' '}
            read by the agent
          </label>
        )}
      </h3>
      {there ? (
        children
      ) : (
        <p class="faint">
          {live
            ? settings?.[name]
              ? 'The first figures come with the next two rounds.'
              : 'The agent does not read this now.'
            : 'It was not read during this recording.'}
        </p>
      )}
    </section>
  );
}

export function HealthPanels() {
  useEffect(() => {
    openHealthGroups.value = true;
    return () => void (openHealthGroups.value = false);
  }, []);
  const detail = healthDetail.data.value;
  const processes = health.data.value?.processes ?? [];
  return (
    <div class="health-groups">
      {processes.length > 0 && (
        <section class="health-group" data-health-group="processes">
          <h3>Processes</h3>
          <Processes list={processes} />
        </section>
      )}
      <Group name="network" title="Network" there={(detail?.network.length ?? 0) > 0}>
        <Network />
      </Group>
      <Group name="disk" title="Disks" there={(detail?.disk.length ?? 0) > 0}>
        <Disks />
      </Group>
      <Group name="threads" title="Threads" there={(detail?.threads.length ?? 0) > 0}>
        <Threads />
      </Group>
    </div>
  );
}
