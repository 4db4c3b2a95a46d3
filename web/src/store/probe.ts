// Capabilities of each agent's machine: from its hello, and again on request. Kept until the agent disconnects.
import { signal } from '@preact/signals';
import { capabilitiesOf, type Capabilities } from '../text/capabilities';
import { agentStatus, reprobe, verifyPid, type PidCheck } from './actions';
import { agents } from './live';

const probed = signal<ReadonlyMap<string, Capabilities>>(new Map());
export const probing = signal(false);
export const probeProblem = signal('');

const keep = (agent: string, found: Capabilities) => (probed.value = new Map(probed.value).set(agent, found));
const words = (reason: unknown) => (reason instanceof Error ? reason.message : String(reason));

export function capabilitiesFor(agent: string): Capabilities {
  const known = probed.value.get(agent);
  if (known) return known;
  const hello = agents.value.find((entry) => entry.id === agent)?.hello as { capabilities?: unknown } | undefined;
  return capabilitiesOf(hello?.capabilities);
}

// Reads the capabilities. With `anew` the agent probes again, which it does only while it records nothing.
export async function look(agent: string, anew: boolean): Promise<void> {
  probing.value = true;
  try {
    keep(
      agent,
      anew ? capabilitiesOf(await reprobe(agent)) : capabilitiesOf((await agentStatus(agent))['capabilities']),
    );
    probeProblem.value = '';
  } catch (reason) {
    probeProblem.value = words(reason);
  }
  probing.value = false;
}

// Whether these processes may be sampled, and why not.
export const pidChecks = signal<readonly PidCheck[]>([]);
export async function checkPids(agent: string, pids: readonly number[]): Promise<void> {
  pidChecks.value = [];
  const refused = (pid: number) => (reason: unknown) => ({ pid, permitted: false, problem: words(reason) });
  // Sequential, because an agent accepts few commands at a time.
  for (const pid of pids) pidChecks.value = [...pidChecks.value, await verifyPid(agent, pid).catch(refused(pid))];
}
