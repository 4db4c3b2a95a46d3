// Names of the types that the server sends, which `npm run types` generates from docs/openapi.yaml into types.gen.ts.
import type { components, paths } from './types.gen';

type Schemas = components['schemas'];
export type Status = Schemas['Status'];
export type Session = Schemas['Session'];
export type EventInfo = Schemas['EventInfo'];
export type Loss = Schemas['Loss'];
export type Notice = Schemas['Notice'];
export type Warnings = Schemas['Warnings'];
export type Module = Schemas['Module'];
export type ModuleState = Schemas['ModuleState'];
export type FoundBy = Schemas['FoundBy'];
export type Modules = Schemas['Modules'];
export type ModuleRow = Modules['modules'][number];
export type Upload = Schemas['Upload'];
export type Import = Schemas['Import'];
export type ModuleFetch = Schemas['ModuleFetch'];
export type UnwindMode = Schemas['UnwindMode'];
export type UnwindProcess = Schemas['UnwindProcess'];
export type UnwindCounts = Omit<Schemas['UnwindTotals'], 'processes'>;
export type Agent = Schemas['Agent'];
export type AgentEvents = Schemas['AgentEvents'];
export type FlameGraph = Schemas['FlameGraph'];
export type Functions = Schemas['Functions'];
export type FunctionRow = Functions['functions'][number];
export type Callers = Schemas['Callers'];
export type Diff = Schemas['Diff'];
export type FunctionDiffs = Schemas['FunctionDiffs'];
export type FunctionDiff = Schemas['FunctionDiff'];
export type Neighbour = Schemas['Neighbour'];
export type ThreadSummary = Schemas['ThreadSummary'];
export type ThreadStates = Schemas['ThreadStates'];
export type Scheduling = Schemas['Scheduling'];
export type Lengths = Schemas['Lengths'];
export type ThreadRow = ThreadSummary['threads'][number];
export type Timeline = Schemas['Timeline'];
export type Mark = Schemas['Mark'];
export type Counters = Schemas['Counters'];
export type CounterGroup = Counters['groups'][number];
export type Counter = CounterGroup['counters'][number];
export type Hits = Schemas['Hits'];
export type TracedEvent = Hits['events'][number];
export type TracedHit = Hits['hits'][number];
export type HitTable = Schemas['HitTable'];
export type HitGroup = HitTable['groups'][number];
export type HitBucket = HitTable['distribution'][number];
export type Source = Schemas['Source'];
export type SourceLine = Schemas['SourceLine'];
export type InlinedCall = Schemas['InlinedCall'];
export type Disassembly = Schemas['Disassembly'];
export type CodeCopy = Disassembly['copies'][number];
export type Config = Schemas['Config'];
export type Browse = Schemas['Browse'];
export type BrowseEntry = Browse['entries'][number];
export type Dial = Schemas['Dial'];
export type PairedKey = Schemas['PairedKey'];
export type Kind = Schemas['Kind'];
export type ErrorBody = Schemas['Error']['error'];

type Get<P extends keyof paths> = paths[P] extends {
  get: { responses: { 200: { content: { 'application/json': infer T } } } };
}
  ? T
  : never;
export type SessionList = Get<'/api/sessions'>;
export type KeepRules = SessionList['keep'];
export type SessionChange = NonNullable<
  paths['/api/sessions/{id}']['patch']['requestBody']
>['content']['application/json'];
export type SourceFiles = Get<'/api/source-files'>;
export type SourceFile = SourceFiles['files'][number];

export type HealthFrame = Schemas['HealthFrame'];
// Health frames, as described in docs/health.md. Values that a machine does not report are absent.
export interface SystemHealth {
  cpu?: { overall_pct?: number | null; num_cores?: number };
  mem?: { total_kb?: number; used_kb?: number; used_pct?: number };
  load?: { avg_1m?: number };
  temp_c?: number;
  uptime_sec?: number;
}
export interface ProcessHealth {
  pid: number;
  comm: string;
  cpu_pct?: number | null;
  rss_kb?: number;
  threads?: number;
  fds?: number;
  major_faults?: number;
  oom_score?: number;
}
export interface AgentHealth {
  cpu_pct?: number | null;
  rss_kb?: number;
}
export interface Health {
  system?: SystemHealth;
  processes?: ProcessHealth[];
  agent?: AgentHealth;
}

export type ConfigPatch = NonNullable<paths['/api/config']['patch']['requestBody']>['content']['application/json'];
export type CommandName = NonNullable<
  paths['/api/agent/command']['post']['requestBody']
>['content']['application/json']['cmd'];

// Which events of an agent are listed or described.
export type AgentEventParams = Omit<NonNullable<paths['/api/agent/events']['get']['parameters']['query']>, 'agent'>;

// The parameters of a view; every field is optional.
export interface ViewParams {
  session?: string;
  event?: string;
  start?: number | null;
  end?: number | null;
  pid?: readonly number[];
  tid?: readonly number[];
  container?: string;
  pod?: string;
  cgroup?: string;
}

// Which hits of a view, and how many functions of their stacks.
export interface HitsParams {
  filter?: string;
  limit: number;
  frames?: number;
}

// Selects machine code: of a function, or of the code at a line.
export type CodeParams = ({ function: string; module: string } | { file: string; line: number }) & {
  at: number | null;
  from: number | null;
};
// The baseline of a comparison, and the normalization.
export interface BaselineParams {
  session: string;
  start: number | null;
  end: number | null;
  pid: readonly number[];
  tid: readonly number[];
  normalise: 'total' | 'time';
}

// How a call tree is built from the stacks.
export interface ShapeParams {
  inverted: boolean;
  merge: 'function' | 'line' | 'address';
  collapse: boolean;
  hidden: readonly (readonly string[])[];
  group?: string; // none: no root frames
}

// An agent's reply to a command, unchanged. The interfaces below describe the fields that commands add.
export interface Reply {
  id: string;
  ok: boolean;
  error?: string;
  [field: string]: unknown;
}

export interface ProcessInfo {
  pid: number;
  ns_pid?: number;
  user?: string;
  comm: string;
  cmdline: string;
  cpu: number;
  container?: string;
}

// Events of /api/stream by name.
export interface StreamEvents {
  status: Status;
  event_types: { session: string; event_types: string[] };
  data_version: {
    session: string;
    data_version: number;
    total_samples: number;
    chunk_count: number;
    event_types: string[];
    newest_ns: number;
    reading?: Session['reading'];
  };
  agent: Agent;
  loss: { session: string; losses: Loss[]; lost: number };
  metrics: { session: string; health_version: number };
  sessions: Record<string, never>;
}
export type StreamName = keyof StreamEvents;
export const streamNames: readonly StreamName[] = [
  'status',
  'event_types',
  'data_version',
  'agent',
  'loss',
  'metrics',
  'sessions',
];
