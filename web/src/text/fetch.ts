// The result of fetching a module's file from the agent, or its debug info from a debuginfod server, as text.
import type { Module, ModuleFetch } from '../api/types';
import { bytes } from './format';

export function fetchText(fetch: ModuleFetch): string {
  if (!fetch) return '';
  const share =
    fetch.total_bytes > 0
      ? `${Math.floor((100 * fetch.bytes) / fetch.total_bytes)} % of ${bytes(fetch.total_bytes)}`
      : '';
  switch (fetch.state) {
    case 'asked':
      return 'Its symbols are being requested from the agent.';
    case 'arriving':
      return `Its symbols come from the agent: ${share || bytes(fetch.bytes)}.`;
    case 'arrived':
      return `Its symbols came from the agent: ${bytes(fetch.total_bytes)}.`;
    case 'interrupted':
      return `Its symbols are on the way from the agent${share ? `, ${share} are here` : ''}: ${fetch.problem}. It continues on its own.`;
    case 'refused':
      return `The agent has not sent its symbols: ${fetch.problem}.`;
  }
}

export function debuginfodText({ state, quality, debuginfod: fetch }: Module): string {
  if (!fetch || (fetch.state === 'arrived' && quality !== 'debug_info')) return '';
  switch (fetch.state) {
    case 'arrived':
      return `Its debug info came from debuginfod: ${bytes(fetch.bytes)}.`;
    case 'asked':
    case 'arriving':
      return state === 'fetching'
        ? `Debug info comes from debuginfod: ${fetch.total_bytes ? `${bytes(fetch.bytes)} of ${bytes(fetch.total_bytes)}` : 'asked'}.`
        : '';
    default:
      return `No debug info from debuginfod: ${fetch.problem}.`;
  }
}
