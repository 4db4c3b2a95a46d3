// Addresses that the server dials until they are cancelled. Fetched only while they are shown.
import { signal } from '@preact/signals';
import { api } from '../api/client';
import type { Dial } from '../api/types';
import { refreshOverview } from './live';

export const dials = signal<readonly Dial[]>([]);
// Why the last address was refused, until another one is tried.
export const dialProblem = signal('');

function show(answer: { dials: Dial[] }): void {
  const connected = (list: readonly Dial[]) => list.filter((dial) => dial.state === 'connected').length;
  const before = connected(dials.value);
  dials.value = answer.dials;
  if (connected(dials.value) !== before) void refreshOverview();
}

async function act(work: () => Promise<{ dials: Dial[] }>): Promise<boolean> {
  dialProblem.value = '';
  try {
    show(await work());
    return true;
  } catch (error) {
    dialProblem.value = error instanceof Error ? error.message : String(error);
    return false;
  }
}

// Leaves dialProblem unchanged. Another part of the page reports that the server does not answer.
export const readDials = () => api.dials().then(show, () => undefined);
// Returns false if the address was refused, and sets dialProblem to the reason.
export const dial = (host: string, port: number, pair: string) => act(() => api.dial(host, port, pair));
export const cancelDial = (host: string, port: number) => act(() => api.cancelDial(host, port));
