// The name and weights of a frame, beside the pointer.
import { useLayoutEffect, useRef } from 'preact/hooks';
import { kindLabels, kinds } from '../../flame/colour';
import { BoxType } from '../../flame/layout';
import type { Hit } from '../../flame/drawn';
import type { FlameTree } from '../../flame/tree';
import { missingCallers } from '../../flame/missing';
import { presence, type TreeDiff } from '../../flame/difference';
import { event, session } from '../../store/session';
import { changeText } from '../../text/diff';
import { count, percent, weight, weightOf } from '../../text/format';
import { settingsOf, stoppedWhy, truncationRemedies } from '../../text/stacks';

interface Props {
  hit: Hit | null;
  tree: FlameTree;
  inverted: boolean;
}

const CURSOR_GAP = 14;

function Place({ tree, node }: { tree: FlameTree; node: number }) {
  const file = tree.files[tree.file[node]!] ?? '';
  if (!file) return null;
  const line = tree.line[node]!;
  return <div class="card-place">{line > 0 ? `${file}:${line}` : file}</div>;
}

// Explains frames that stand for missing callers, and the remedy.
function Truncated() {
  const shown = session.value;
  const settings = shown ? settingsOf(shown) : '';
  return (
    <div class="card-missing">
      <p>
        The callers of these stacks are missing: the stacks are deeper than what was recorded
        {settings && ` (${settings})`}.
      </p>
      <ul>
        {truncationRemedies.map(({ cause, remedy }) => (
          <li key={remedy}>
            {cause}: <code>{remedy}</code>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Incomplete() {
  return (
    <div class="card-missing">
      <p>The callers of these stacks are missing: {stoppedWhy}</p>
    </div>
  );
}

function Skipped() {
  return (
    <div class="card-missing">
      <p>
        One caller is missing here: the function had not set its frame pointer yet, or never does, so the frame pointers
        skip its caller.
      </p>
      <ul>
        <li>
          To see it, copy a part of each stack: <code>--unwind hybrid</code>
        </li>
      </ul>
    </div>
  );
}

function Unsampled() {
  return (
    <div class="card-missing">
      <p>
        These threads exited before their next sample. The kernel counted their CPU time, but not where they spent it.
      </p>
      <ul>
        <li>Run the agent as root or with cap_perfmon: it then samples whole CPUs</li>
        <li>
          Sample more often: <code>--frequency 999</code>
        </li>
      </ul>
    </div>
  );
}

const presenceWords = { both: '', new: 'New: the baseline has none of it.', gone: 'Gone: only the baseline has it.' };

// Values of both sides, the view first.
function Changes({ tree, diff, node, own }: { tree: FlameTree; diff: TreeDiff; node: number; own: string }) {
  const line = (
    name: string,
    view: Float64Array,
    base: Float64Array,
    samples: Float64Array,
    baseSamples: Float64Array,
    change: Float64Array,
  ) => (
    <tr>
      <th>{name}</th>
      <td title={`${count(samples[node]!)} samples`}>{weight(view[node]!, tree.unit)}</td>
      <td>{percent(diff.total[0]! > 0 ? view[node]! / diff.total[0]! : 0, 2)}</td>
      <td title={`${count(baseSamples[node]!)} samples`}>{weight(base[node]!, tree.unit)}</td>
      <td>{percent(diff.baseTotal[0]! > 0 ? base[node]! / diff.baseTotal[0]! : 0, 2)}</td>
      <td class="strong">{changeText(change[node]!, diff.normalise, tree.unit)}</td>
    </tr>
  );
  const said = presenceWords[presence(diff, node)];
  return (
    <>
      <table class="card-numbers card-changes">
        <thead>
          <tr>
            <th />
            <th colSpan={2}>Now</th>
            <th colSpan={2}>Baseline</th>
            <th>Change</th>
          </tr>
        </thead>
        <tbody>
          {line('Total', diff.total, diff.baseTotal, diff.samples, diff.baseSamples, diff.change)}
          {line(own, diff.self, diff.baseSelf, diff.selfSamples, diff.baseSelfSamples, diff.selfChange)}
        </tbody>
      </table>
      {said && <div class="card-parent">{said}</div>}
    </>
  );
}

function Frame({ tree, node, inverted }: { tree: FlameTree; node: number; inverted: boolean }) {
  const all = tree.total[0]!;
  const total = tree.total[node]!;
  const self = tree.self[node]!;
  const parent = tree.total[tree.parent[node]!]!;
  const kind = kinds[tree.kind[node]!] ?? 'unknown';
  const missing = missingCallers(tree, node);
  return (
    <>
      <div class="card-name">{tree.labels[tree.label[node]!]}</div>
      {missing === 'truncated' && <Truncated />}
      {missing === 'incomplete' && <Incomplete />}
      {missing === 'skipped' && <Skipped />}
      {missing === 'unsampled' && <Unsampled />}
      {node > 0 && !missing && (
        <div class="card-module">
          <span class={`kind kind-${kind}`}>{kindLabels[kind]}</span> {tree.modules[tree.module[node]!]}
        </div>
      )}
      <Place tree={tree} node={node} />
      {tree.diff ? (
        <Changes tree={tree} diff={tree.diff} node={node} own={inverted ? 'Begins here' : 'Self'} />
      ) : (
        <table class="card-numbers">
          <tbody>
            <tr>
              <th>Total</th>
              <td>{weightOf(event.value?.name ?? '', total, tree.unit)}</td>
              <td class="strong">{percent(total / all, 2)}</td>
              <td>{count(tree.samples[node]!)} samples</td>
            </tr>
            <tr>
              <th>{inverted ? 'Begins here' : 'Self'}</th>
              <td>{weightOf(event.value?.name ?? '', self, tree.unit)}</td>
              <td class="strong">{percent(self / all, 2)}</td>
              <td>{count(tree.selfSamples[node]!)} samples</td>
            </tr>
          </tbody>
        </table>
      )}
      {node > 0 && !missing && parent > 0 && (
        <div class="card-parent">
          {percent(total / parent, 1)} of {inverted ? 'what it calls here' : 'its caller'}
        </div>
      )}
    </>
  );
}

function Rest({ tree, hit }: { tree: FlameTree; hit: Hit }) {
  const caller = tree.names[tree.name[hit.node]!];
  if (hit.type === BoxType.small)
    return <div class="card-note">Frames too narrow to draw, called by {caller}. Click to zoom in.</div>;
  const share = percent(tree.hidden[hit.node]! / tree.total[0]!, 2);
  return (
    <div class="card-note">
      {count(tree.pruned[hit.node]!)} small callees of {caller}, {share} together, are not loaded. Click to fetch them.
    </div>
  );
}

export function HoverCard({ hit: at, tree, inverted }: Props) {
  const card = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = card.current;
    const bounds = element?.parentElement?.getBoundingClientRect();
    if (!element || !bounds || !at) return;
    const width = element.offsetWidth;
    const height = element.offsetHeight;
    let left = at.x + CURSOR_GAP;
    if (left + width > bounds.width - 8) left = Math.max(8, at.x - width - CURSOR_GAP);
    let top = at.y + CURSOR_GAP;
    if (top + height > bounds.height - 4) top = Math.max(4, at.y - height - CURSOR_GAP);
    element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  });
  if (!at) return null;
  return (
    <div class="card" ref={card} role="tooltip" id="frame-card">
      {at.type === BoxType.frame ? (
        <Frame tree={tree} node={at.node} inverted={inverted} />
      ) : (
        <Rest tree={tree} hit={at} />
      )}
    </div>
  );
}
