// What became of asking the agent for a module's file, in words.
import type { ModuleFetch } from '../api/types';
import { bytes } from './format';

export function fetchText(fetch: ModuleFetch): string {
  if (!fetch) return '';
  const share = fetch.total_bytes > 0 ? `${Math.floor((100 * fetch.bytes) / fetch.total_bytes)} % of ${bytes(fetch.total_bytes)}` : '';
  switch (fetch.state) {
    case 'asked':
      return 'The agent is asked for its symbols.';
    case 'arriving':
      return `Its symbols come from the agent: ${share || bytes(fetch.bytes)}.`;
    case 'arrived':
      return `Its symbols came from the agent: ${bytes(fetch.total_bytes)}.`;
    case 'interrupted':
      return `Its symbols are on the way from the agent${share ? `, ${share} are here` : ''}: ${fetch.problem}. It goes on by itself.`;
    case 'refused':
      return `The agent has not sent its symbols: ${fetch.problem}.`;
  }
}
