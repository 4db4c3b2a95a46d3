// What works on an agent's machine and what does not, each with its remedy, as the agent reported it.
import { useEffect } from 'preact/hooks';
import { agents } from '../../store/live';
import { capabilitiesFor, checkPids, look, pidChecks, probeProblem, probing } from '../../store/probe';
import { copy } from '../../store/ui';
import { findingLines, ordered, type FindingLine } from '../../text/capabilities';
import type { Picked } from '../../text/recording';
import { commandIn } from '../../text/remedy';
import { Button } from '../widgets/Button';
import { Icon } from '../widgets/Icon';

function Line({ line }: { line: FindingLine }) {
  return (
    <li class={line.works ? 'finding finding-works' : 'finding finding-fails'}>
      <Icon name={line.works ? 'check' : 'warning'} />
      <div>
        <span class="visually-hidden">{line.works ? 'Works: ' : 'Does not work: '}</span>
        <span class="why">{line.text}</span>
        {line.remedy && (
          <div class="notice-remedy">
            <code>{line.remedy}</code>
            <Button
              icon="copy"
              kind="ghost"
              title={`Copy: ${commandIn(line.remedy)}`}
              onClick={() => void copy(commandIn(line.remedy))}
            />
          </div>
        )}
      </div>
    </li>
  );
}

export function CapabilityList({ agent, picked }: { agent: string; picked: readonly Picked[] }) {
  const known = capabilitiesFor(agent);
  const busy = agents.value.find((entry) => entry.id === agent)?.state !== 'idle';
  const again = async (anew: boolean) => {
    await look(agent, anew);
    await checkPids(
      agent,
      picked.map((one) => one.pid),
    );
  };
  useEffect(() => {
    void again(false);
  }, [agent, picked.map((one) => one.pid).join()]);
  const lines: FindingLine[] = [];
  // If nothing can be profiled, the process is not the reason.
  const nothing = known.findings.some((finding) => finding.code === 'perf-events' && !finding.works);
  for (const { pid, comm } of picked) {
    const check = pidChecks.value.find((one) => one.pid === pid);
    if (check && !(nothing && !check.permitted && check.problem))
      lines.push({
        works: check.permitted,
        text: check.permitted
          ? `Process ${pid} (${comm}) can be profiled`
          : (check.problem ?? `process ${pid} is gone: choose another one`),
        remedy: '',
        names: [],
      });
  }
  lines.push(...findingLines(known.findings));
  if (known.events.length > 0)
    lines.push({ works: true, text: `Events: ${known.events.join(', ')}`, remedy: '', names: [] });
  if (known.unwind.length > 0)
    lines.push({ works: true, text: `Stacks: ${known.unwind.join(', ')}`, remedy: '', names: [] });
  if (known.maxFrequency > 0)
    lines.push({
      works: true,
      text: `At most ${known.maxFrequency.toLocaleString('en')} samples per second (kernel.perf_event_max_sample_rate)`,
      remedy: '',
      names: [],
    });
  return (
    <div class="capabilities">
      <div class="capabilities-head">
        <p class="faint">
          Each of these was tried by the agent. After a fix, try again; only changes to the agent itself need a restart.
        </p>
        <Button
          id="reprobe"
          title={busy ? 'The agent records: it tries again once it is stopped' : 'Let the agent try everything again'}
          disabled={probing.value || busy}
          onClick={() => void again(true)}
        >
          {probing.value ? 'Trying' : 'Try again'}
        </Button>
      </div>
      {probeProblem.value && (
        <p class="note note-error" role="alert">
          {probeProblem.value}
        </p>
      )}
      <ul class="findings" aria-label="What works there" aria-busy={probing.value}>
        {ordered(lines).map((line) => (
          <Line key={line.text} line={line} />
        ))}
      </ul>
    </div>
  );
}
