// The command for a target, which contains the code of the next agent's pairing key; and the keys of paired agents.
// Both are fetched only while they are shown, and never kept elsewhere.
import { effect, signal } from '@preact/signals';
import { api } from '../api/client';
import type { PairedKey } from '../api/types';
import { connectedAgents, status } from './live';

export const targetCommand = signal('');
export const pairedKeys = signal<readonly PairedKey[]>([]);
export const pairingProblem = signal('');

async function take(work: () => Promise<void>): Promise<void> {
  try {
    await work();
    pairingProblem.value = '';
  } catch (error) {
    pairingProblem.value = error instanceof Error ? error.message : String(error);
  }
}

async function readCommand(): Promise<void> {
  if (!status.peek()) return;
  await take(async () => {
    targetCommand.value = (await api.nextPairing()).command;
  });
}

// Runs while the command is shown. An agent that connects uses up its code, and the next agent needs a new one.
export function watchCommand(): () => void {
  return effect(() => {
    void connectedAgents.value.length;
    void status.value?.agent_port;
    void readCommand();
  });
}

// Runs while the keys are shown.
export function watchKeys(): () => void {
  return effect(() => {
    void connectedAgents.value.length;
    void take(async () => {
      pairedKeys.value = (await api.pairing()).keys;
    });
  });
}
export const withdrawKey = (id: string) =>
  take(async () => {
    pairedKeys.value = (await api.withdrawKey(id)).keys;
  });
