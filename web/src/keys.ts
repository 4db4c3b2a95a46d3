// Keyboard shortcuts of the whole page. They are inactive during text input and in dialogs.
import { frozen } from './store/data';
import { walk, zoomOut } from './store/flame';
import { connectedAgents } from './store/live';
import { currentId, isLive } from './store/session';
import { followNow, panAxis, showAllTime, stepRange, zoomAxis, zoomToRange } from './store/timeline';
import { toggleTheme } from './store/theme';
import { dialog } from './store/ui';
import { tabs } from './model/view_state';
import { openTab, tab } from './store/view';

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input:not([type=checkbox]), textarea, select');
}

function focusSearch(): boolean {
  const field = document.querySelector<HTMLInputElement>('dialog[open] [data-search], .main [data-search]');
  field?.focus();
  field?.select();
  return field !== null;
}

// Keys of the time axis, which work in every view.
function timeKey(key: string): boolean {
  if (!currentId.value || tab.value === 'sessions') return false;
  if (key === '+' || key === '=') zoomAxis(0.5);
  else if (key === '-') zoomAxis(2);
  else if (key === '0') showAllTime();
  else if (key === ',') panAxis(-0.25);
  else if (key === '.') panAxis(0.25);
  else if (key === '[') stepRange(-1);
  else if (key === ']') stepRange(1);
  else if (key === 'z') zoomToRange();
  else if (key === 'l') followNow();
  else return false;
  return true;
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey) return;
  if ((event.ctrlKey || event.metaKey) && event.key === 'f') {
    if (focusSearch()) event.preventDefault();
    return;
  }
  if (event.ctrlKey || event.metaKey || typing(event.target) || dialog.value.kind !== 'none') return;
  const flame = tab.value === 'flame';
  const byNumber = tabs[Number(event.key) - 1];
  if (byNumber) openTab(byNumber);
  else if (event.key === '/') focusSearch();
  else if (event.key === '?') dialog.value = { kind: 'help' };
  else if (event.key === 't') toggleTheme();
  else if (event.key === 'g') dialog.value = { kind: 'wizard' };
  else if (event.key === 'f' && isLive.value) frozen.value = !frozen.value;
  else if (event.key === 'p' && connectedAgents.value[0])
    dialog.value = { kind: 'process', agent: connectedAgents.value[0].id };
  else if (timeKey(event.key)) {
    // done
  } else if (flame && (event.key === 'Escape' || event.key === 'Backspace')) zoomOut();
  else if (flame && event.key === 'n') walk(1);
  else if (flame && event.key === 'N') walk(-1);
  else return;
  event.preventDefault();
}

export function listenForKeys(): void {
  addEventListener('keydown', onKey);
}
