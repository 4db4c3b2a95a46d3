// Fallbacks of the agent and conditions that make the view misleading, each with its remedy.
// Dismissed notices stay hidden for this session.
import { computed, signal } from '@preact/signals';
import type { Notice } from '../../api/types';
import { warnings } from '../../store/data';
import { connectedAgents } from '../../store/live';
import { session } from '../../store/session';
import { copy } from '../../store/ui';
import { commandIn } from '../../text/remedy';
import { Button } from '../widgets/Button';
import { Icon } from '../widgets/Icon';

const expanded = signal(false);
const dismissed = signal<ReadonlySet<string>>(new Set());
// The text of a warning contains a share that changes with new data, so it is not part of the key.
const keyOf = (id: string, notice: Notice) =>
  warnings.data.value?.warnings.includes(notice) ? `${id}/${notice.code}` : `${id}/${notice.code}/${notice.text}`;

// Batches that the server cannot store stay with their agent, possibly before a session exists.
const waiting = computed(() =>
  connectedAgents.value
    .filter((agent) => agent.problem !== '' && (agent.session === '' || agent.session !== session.value?.id))
    .map((agent): Notice => ({ code: 'disk', text: `${agent.address}: ${agent.problem}`, remedy: '' })),
);

const shown = computed(() => {
  const id = session.value?.id ?? '';
  return [...waiting.value, ...(session.value?.notices ?? []), ...(warnings.data.value?.warnings ?? [])].filter(
    (notice) => !dismissed.value.has(keyOf(id, notice)),
  );
});

function dismiss(notices: readonly Notice[]): void {
  const id = session.value?.id ?? '';
  dismissed.value = new Set([...dismissed.value, ...notices.map((notice) => keyOf(id, notice))]);
}

export function Notices() {
  const open = expanded.value;
  const list = shown.value;
  if (list.length === 0) return null;
  const visible = open ? list : list.slice(0, 1);
  return (
    <section class="notices" aria-label="Notices">
      {visible.map((notice, i) => (
        <div class="notice" key={`${notice.code}${notice.text}`} role="status">
          <Icon name="warning" />
          <span class="notice-text">{notice.text}</span>
          {notice.remedy && (
            <span class="notice-remedy">
              <code>{notice.remedy}</code>
              <Button
                icon="copy"
                kind="ghost"
                title={`Copy: ${commandIn(notice.remedy)}`}
                onClick={() => void copy(commandIn(notice.remedy))}
              />
            </span>
          )}
          <span class="spacer" />
          {i === 0 && list.length > 1 && (
            <Button
              kind="ghost"
              title={open ? 'Show one notice' : 'Show all notices'}
              onClick={() => (expanded.value = !open)}
            >
              {open ? 'Show less' : `${list.length - 1} more`}
            </Button>
          )}
          <Button icon="close" kind="ghost" title="Dismiss" onClick={() => dismiss([notice])} />
        </div>
      ))}
    </section>
  );
}
