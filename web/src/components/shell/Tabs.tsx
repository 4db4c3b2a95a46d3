// The views of a session.
import { hasHits } from '../../store/hits';
import { isSaved } from '../../store/saved';
import { sessionList } from '../../store/session';
import { tabs, type Tab } from '../../model/view_state';
import { openTab, tab } from '../../store/view';

export const tabNames: Record<Tab, string> = {
  flame: 'Flame graph',
  functions: 'Functions',
  callers: 'Callers',
  source: 'Source',
  threads: 'Threads',
  counters: 'Counters',
  modules: 'Modules',
  sessions: 'Sessions',
  events: 'Events',
};

// In the order on the page: the list of sessions is last. The numbers of `tabs` are keys.
const inOrder = [...tabs.filter((name) => name !== 'sessions'), 'sessions'] as const;
// A saved page has only one session. Few sessions have traced events.
const isShown = (name: Tab) =>
  name === 'sessions' ? !isSaved : name !== 'events' || hasHits.value || tab.value === 'events';

function move(event: KeyboardEvent, from: Tab): void {
  const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
  if (step === 0) return;
  const shown = inOrder.filter(isShown);
  const next = shown[(shown.indexOf(from) + step + shown.length) % shown.length]!;
  openTab(next);
  document.getElementById(`tab-${next}`)?.focus();
  event.preventDefault();
}

export function Tabs() {
  return (
    <div class="tabs" role="tablist" aria-label="Views">
      {inOrder.filter(isShown).map((name) => {
        const active = tab.value === name;
        return (
          <button
            key={name}
            id={`tab-${name}`}
            type="button"
            role="tab"
            class="tab"
            aria-selected={active}
            tabIndex={active ? 0 : -1}
            title={`${tabNames[name]} (${tabs.indexOf(name) + 1})`}
            onClick={() => openTab(name)}
            onKeyDown={(event) => move(event, name)}
          >
            {tabNames[name]}
            {name === 'sessions' && (sessionList.data.value?.total ?? 0) > 0 && (
              <span class="tab-count">{sessionList.data.value!.total}</span>
            )}
          </button>
        );
      })}
    </div>
  );
}
