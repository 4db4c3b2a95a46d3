// How stacks are unwound and how many are whole; the panel lists each process.
import type { Session, UnwindProcess } from '../../api/types';
import { session } from '../../store/session';
import { bytes, count, percent } from '../../text/format';
import { endings, modesOf, modeWords, settingsOf, truncationRemedies, wholeness, wholeShare } from '../../text/stacks';
import { Popover } from '../widgets/Popover';

const LOSSY_BELOW = 0.95;

function Remedies() {
  return (
    <ul class="remedies">
      {truncationRemedies.map(({ cause, remedy }) => (
        <li key={remedy}>
          {cause}: <code>{remedy}</code>
        </li>
      ))}
    </ul>
  );
}

function Endings({ shown }: { shown: Session }) {
  const totals = shown.unwind_totals;
  return (
    <ul class="loss-list">
      {endings
        .filter(({ key }) => totals[key] > 0)
        .map(({ key, name, why }) => (
          <li key={key}>
            <div class="loss-head">
              <strong class="ending">{name}</strong>
              <span class={key === 'truncated' || key === 'stopped' ? 'is-lossy' : 'faint'}>
                {count(totals[key])} ({percent(totals[key] / Math.max(1, totals.samples), 2)})
              </span>
            </div>
            <div class="faint">{why}</div>
            {key === 'truncated' && <Remedies />}
          </li>
        ))}
    </ul>
  );
}

function Process({ process }: { process: UnwindProcess }) {
  const samples = Math.max(1, process.samples);
  const copied = process.stack_bytes / samples;
  return (
    <li data-pid={process.pid}>
      <div class="loss-head">
        <strong class="ellipsis">
          {process.comm || 'unnamed'} <span class="faint">{process.pid}</span>
        </strong>
        <span class="mode" title={modeWords[process.mode]}>
          {process.mode}
        </span>
      </div>
      {process.why && <div class="why">{process.why}</div>}
      <div class="faint">
        {count(process.samples)} {process.samples === 1 ? 'stack' : 'stacks'}
        {process.samples > 0 && `: ${wholeness(process)}; ${(process.frames / samples).toFixed(0)} frames a stack`}
        {copied >= 1 && `, ${bytes(copied)} copied`}
      </div>
    </li>
  );
}

export function StacksItem() {
  const shown = session.value;
  if (!shown?.unwind) return null;
  const totals = shown.unwind_totals;
  const processes = shown.unwind_processes ?? [];
  const unlisted = totals.processes - processes.length;
  const settings = settingsOf(shown);
  const text = wholeness(totals);
  return (
    <Popover
      id="status-stacks"
      class={`status-item ${totals.samples > 0 && totals.open_end === 0 && wholeShare(totals) < LOSSY_BELOW ? 'is-lossy' : ''}`}
      side="above"
      panelClass="pop-wide stacks-panel"
      title="How stacks are found, and how many of them are whole"
      label={
        <span class="status-cut">
          <span class="status-name">Stacks</span> {modesOf(shown)}
          {text && <span class="status-extra"> · {text}</span>}
        </span>
      }
    >
      {() => (
        <div class="pop-body" id="stacks-panel">
          <h4>
            Stacks of {count(totals.processes)} {totals.processes === 1 ? 'process' : 'processes'}
          </h4>
          <div class="faint">
            Requested: {shown.unwind}
            {settings && `; ${settings}`}.
          </div>
          {totals.samples === 0 ? (
            <p class="faint">No user stack was taken yet.</p>
          ) : (
            <>
              <ul class="loss-list process-stacks">
                {processes.map((process, i) => (
                  <Process key={`${process.pid}/${i}`} process={process} />
                ))}
                {unlisted > 0 && <li class="faint">and {count(unlisted)} processes more, with fewer samples</li>}
              </ul>
              <h4>All together</h4>
              <Endings shown={shown} />
            </>
          )}
        </div>
      )}
    </Popover>
  );
}
