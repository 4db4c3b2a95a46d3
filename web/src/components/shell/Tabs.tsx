// The views of a session.
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
};

function move(event: KeyboardEvent, at: number): void {
  const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
  if (step === 0) return;
  const next = tabs[(at + step + tabs.length) % tabs.length]!;
  openTab(next);
  document.getElementById(`tab-${next}`)?.focus();
  event.preventDefault();
}

export function Tabs() {
  return (
    <div class="tabs" role="tablist" aria-label="Views">
      {tabs.map((name, i) => {
        // A saved page has only one session.
        if (isSaved && name === 'sessions') return null;
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
            title={`${tabNames[name]} (${i + 1})`}
            onClick={() => openTab(name)}
            onKeyDown={(event) => move(event, i)}
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
