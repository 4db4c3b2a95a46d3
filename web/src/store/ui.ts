// The open dialog and short messages, which are not part of the address.
import { signal } from '@preact/signals';
import type { Session } from '../api/types';

export type Dialog =
  | { kind: 'none' }
  | { kind: 'process'; agent: string }
  | { kind: 'help' }
  | { kind: 'settings' }
  | { kind: 'wizard' }
  | { kind: 'change'; agent: string }
  | { kind: 'delete'; session: Session };

export const dialog = signal<Dialog>({ kind: 'none' });
export const closeDialog = () => (dialog.value = { kind: 'none' });
// For late answers: a dialog that was opened meanwhile stays open.
export const closeIfOpen = (shown: Dialog) => void (dialog.peek() === shown && closeDialog());

export interface Toast {
  id: number;
  text: string;
  kind: 'info' | 'error';
}
export const toasts = signal<readonly Toast[]>([]);
let nextToast = 1;

export function toast(text: string, kind: Toast['kind'] = 'info'): void {
  const id = nextToast++;
  toasts.value = [...toasts.value.slice(-3), { id, text, kind }];
  setTimeout(() => dismiss(id), kind === 'error' ? 9000 : 4000);
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((entry) => entry.id !== id);
}

export async function copy(text: string, what = 'Copied'): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without a secure connection the page has no clipboard API, but execCommand still works.
    const area = document.createElement('textarea');
    area.value = text;
    area.style.position = 'fixed';
    area.style.opacity = '0';
    (document.querySelector('dialog[open]') ?? document.body).append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    if (!done) {
      toast('The browser does not allow copying here', 'error');
      return;
    }
  }
  toast(what);
}
