// What works on an agent's machine, according to its replies, in the order of importance. Pure.
export interface Finding {
  code: string;
  name: string;
  works: boolean;
  text: string;
  remedy: string;
}

export interface Capabilities {
  events: readonly string[];
  unwind: readonly string[];
  findings: readonly Finding[];
  perf: boolean;
  maxFrequency: number;
  pmus: readonly string[];
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];

function findingOf(value: unknown): Finding | null {
  if (typeof value !== 'object' || value === null) return null;
  const v = value as Record<string, unknown>;
  const text = (name: string) => (typeof v[name] === 'string' ? (v[name] as string) : '');
  return {
    code: text('code'),
    name: text('name'),
    works: v['works'] === true,
    text: text('text'),
    remedy: text('remedy'),
  };
}

// Parses the reply to `reprobe`, the `capabilities` of `status`, or those of a hello.
export function capabilitiesOf(value: unknown): Capabilities {
  const v = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  const findings = Array.isArray(v['findings'])
    ? v['findings'].map(findingOf).filter((one): one is Finding => one !== null)
    : [];
  return {
    events: texts(v['record_events']),
    unwind: texts(v['unwind_modes']),
    findings,
    perf: v['perf_events'] !== false,
    maxFrequency: typeof v['max_frequency'] === 'number' ? v['max_frequency'] : 0,
    pmus: texts(v['pmus']),
  };
}

// Events that fail for the same reason, with the same remedy, share one line.
export interface FindingLine {
  works: boolean;
  text: string;
  remedy: string;
  names: readonly string[];
}

const withoutName = (finding: Finding) => (finding.name ? finding.text.replaceAll(finding.name, '…') : finding.text);

export function findingLines(findings: readonly Finding[]): FindingLine[] {
  const lines = new Map<string, FindingLine & { names: string[] }>();
  for (const finding of findings) {
    const key = `${finding.works}/${withoutName(finding)}/${finding.remedy}`;
    const known = lines.get(key);
    if (known) {
      if (finding.name) known.names.push(finding.name);
    } else {
      lines.set(key, {
        works: finding.works,
        text: finding.text,
        remedy: finding.remedy,
        names: finding.name ? [finding.name] : [],
      });
    }
  }
  return [...lines.values()].map((line) =>
    line.names.length > 1 ? { ...line, text: line.text.replace(line.names[0]!, line.names.join(', ')) } : line,
  );
}

// Failures are first, those with a remedy before the others.
export function ordered(lines: readonly FindingLine[]): FindingLine[] {
  const rank = (line: FindingLine) => (line.works ? 2 : line.remedy ? 0 : 1);
  return [...lines].sort((a, b) => rank(a) - rank(b));
}
