// HOST, HOST:PORT, [IPV6] or [IPV6]:PORT. Pure.
export interface Address {
  host: string;
  port: number;
}

export const USUAL_PORT = 9999;

export function parseAddress(text: string): Address | null {
  const match = /^\s*(\[[^\]]+\]|[^\s:/]+)(?::(\d{1,5}))?\s*$/.exec(text);
  if (!match) return null;
  const port = Number(match[2] ?? USUAL_PORT);
  if (port < 1 || port > 65535) return null;
  return { host: match[1]!.replace(/^\[|\]$/g, ''), port };
}

// Whether an IP address is reachable only from the machine itself.
export const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.');
