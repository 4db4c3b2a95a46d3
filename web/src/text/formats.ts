// Export formats for other tools, as menus list them.
import type { SessionFormat } from '../api/client';

export const otherTools: readonly (readonly [format: SessionFormat, name: string, what: string])[] = [
  ['pprof', 'pprof', 'go tool pprof, and many others'],
  ['speedscope', 'speedscope', 'www.speedscope.app'],
  ['firefox', 'Firefox Profiler', 'profiler.firefox.com'],
  ['perfdata', 'perf.data', 'perf report, perf script'],
];
