// Addresses that the server dials until they are cancelled. Asked for while something shows them.
import { signal } from '@preact/signals';
import { api } from '../api/client';
import type { Dial } from '../api/types';
import { refreshOverview } from './live';

export const dials = signal<readonly Dial[]>([]);
export const dialProblem = signal('');

async function take(work: () => Promise<{ dials: Dial[] }>): Promise<void> {
  try {
    const before = dials.value.filter((dial) => dial.state === 'connected').length;
    dials.value = (await work()).dials;
    dialProblem.value = '';
    if (dials.value.filter((dial) => dial.state === 'connected').length !== before) void refreshOverview();
  } catch (error) {
    dialProblem.value = error instanceof Error ? error.message : String(error);
  }
}

export const readDials = () => take(() => api.dials());
export const dial = (host: string, port: number, pair: string) => take(() => api.dial(host, port, pair));
export const cancelDial = (host: string, port: number) => take(() => api.cancelDial(host, port));
