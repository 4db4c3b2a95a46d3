// The number of lost samples, with reasons.
import { losses } from '../../store/live';
import { session } from '../../store/session';
import { percent } from '../../text/format';
import { amountText, lossWords, lostText, sumLosses, type LossSum } from '../../text/loss';
import { Popover } from '../widgets/Popover';

function Reason({ sum, whole }: { sum: LossSum; whole: number }) {
  const words = lossWords[sum.reason] ?? lossWords.unknown;
  const lessDetail = sum.reason === 'thread_state_unknown' ? '' : 'with less detail';
  const part = sum.lost ? `(${percent(sum.count / whole, 2)})` : lessDetail;
  return (
    <li>
      <div class="loss-head">
        <strong>{words.name}</strong>
        <span class={sum.lost ? 'is-lossy' : 'faint'}>
          {amountText(sum)} {part}
        </span>
      </div>
      <div class="faint">{words.why}</div>
    </li>
  );
}

export function LossItem() {
  const shown = session.value;
  if (!shown) return null;
  const sums = sumLosses(losses.value.get(shown.id) ?? shown.losses ?? []);
  const lost = Math.max(
    shown.lost,
    sums.filter((sum) => sum.lost).reduce((all, sum) => all + sum.count, 0),
  );
  const whole = Math.max(1, shown.samples + lost);
  return (
    <Popover
      id="status-lost"
      class={`status-item ${lost > 0 || shown.lost_at_least ? 'is-lossy' : ''}`}
      side="above"
      title="Samples that are not shown, by reason"
      label={
        <>
          <span class="status-name">Lost</span> {lostText(lost, shown.lost_at_least)}{' '}
          {!shown.lost_at_least && <span class="status-extra">({percent(lost / whole, 2)})</span>}
        </>
      }
    >
      {() => (
        <div class="pop-body">
          <h4>Lost samples</h4>
          {shown.lost_at_least && (
            <p>The session file is damaged. The number of samples in the unreadable part is unknown.</p>
          )}
          {sums.length === 0 && shown.lost_at_least ? null : sums.length === 0 ? (
            <p class="faint">
              {lost > 0 ? 'No reasons were recorded.' : 'Nothing was lost. Every sample that the kernel took is shown.'}
            </p>
          ) : (
            <ul class="loss-list">
              {sums.map((sum) => (
                <Reason key={`${sum.reason}${sum.lost}`} sum={sum} whole={whole} />
              ))}
            </ul>
          )}
        </div>
      )}
    </Popover>
  );
}
