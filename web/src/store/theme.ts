// Dark or light theme: the system's setting, unless the user chose one.
import { computed, effect, signal } from '@preact/signals';
import type { Theme } from '../model/theme';
import { printing } from './printing';

const STORAGE = 'flamewire-theme';
const stored = localStorage.getItem(STORAGE);
const chosen = signal<Theme | null>(stored === 'dark' || stored === 'light' ? stored : null);
const query = matchMedia('(prefers-color-scheme: light)');
const system = signal<Theme>(query.matches ? 'light' : 'dark');
query.addEventListener('change', () => (system.value = query.matches ? 'light' : 'dark'));

// Printed pages are light.
export const theme = computed<Theme>(() => (printing.value ? 'light' : (chosen.value ?? system.value)));

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});

export function toggleTheme(): void {
  const next = theme.value === 'dark' ? 'light' : 'dark';
  chosen.value = next === system.value ? null : next;
  if (chosen.value) localStorage.setItem(STORAGE, chosen.value);
  else localStorage.removeItem(STORAGE);
}
