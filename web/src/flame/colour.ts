// Colors of frames. Kinds differ in hue and in lightness, so that they are distinct with any color vision (after Okabe and Ito).
// The shade varies slightly with the name, so that neighbors are distinct.
import type { Kind } from '../api/types';
import type { Theme } from '../model/theme';

// In the order of their numbers in answers. A group is not code: it is the root frame of a process, thread, container or CPU.
export type FrameKind = Kind | 'group';
export const kinds: readonly FrameKind[] = ['user', 'kernel', 'jit', 'inlined', 'unknown', 'group'];
export const kindLabels: Record<FrameKind, string> = {
  user: 'User',
  kernel: 'Kernel',
  jit: 'JIT',
  inlined: 'Inlined',
  unknown: 'Unknown',
  group: 'Group',
};

interface Hue {
  hue: number;
  saturation: number;
  light: number; // lightness in the light theme, in percent
  dark: number; // lightness in the dark theme
  spread: number; // range of the hue between shades, in degrees
}

const hues: Record<FrameKind, Hue> = {
  user: { hue: 29, saturation: 88, light: 68, dark: 62, spread: 9 },
  kernel: { hue: 205, saturation: 62, light: 68, dark: 60, spread: 8 },
  jit: { hue: 325, saturation: 48, light: 74, dark: 66, spread: 6 },
  inlined: { hue: 49, saturation: 82, light: 76, dark: 70, spread: 5 },
  group: { hue: 150, saturation: 22, light: 78, dark: 56, spread: 0 },
  unknown: { hue: 220, saturation: 7, light: 76, dark: 58, spread: 0 },
};

const SHADES = 7;

export function shadeOf(name: string): number {
  let hash = 2166136261;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  return (hash >>> 0) % SHADES;
}

export function frameColour(kind: FrameKind, shade: number, theme: Theme): string {
  const { hue, saturation, light, dark, spread } = hues[kind];
  const step = (shade % SHADES) / (SHADES - 1) - 0.5;
  const lightness = (theme === 'dark' ? dark : light) + step * 9;
  return `hsl(${(hue + step * spread).toFixed(1)} ${theme === 'dark' ? saturation * 0.86 : saturation}% ${lightness.toFixed(1)}%)`;
}

// Modules have no order, so similar names get hues that are far apart.
export function moduleColour(module: string, theme: Theme): string {
  let hash = 2166136261;
  for (let i = 0; i < module.length; i++) hash = Math.imul(hash ^ module.charCodeAt(i), 16777619);
  const mixed = Math.imul(hash ^ (hash >>> 15), 2246822519) >>> 0;
  const hue = (mixed % 24) * 15;
  const lightness = (theme === 'dark' ? 64 : 72) + (((mixed >>> 8) % 3) - 1) * 6;
  return module ? `hsl(${hue} ${theme === 'dark' ? 42 : 55}% ${lightness}%)` : frameColour('unknown', 3, theme);
}

export const HEAT_STEPS = 12;
// From pale to saturated. Lightness decreases with each step, so that the scale is readable without hue.
export function heatColour(step: number, theme: Theme): string {
  const at = Math.min(1, Math.max(0, step / (HEAT_STEPS - 1)));
  const lightness = theme === 'dark' ? 82 - 24 * at : 93 - 33 * at;
  return `hsl(${(52 - 38 * at).toFixed(1)} ${(18 + 70 * at).toFixed(1)}% ${lightness.toFixed(1)}%)`;
}

// The square root makes a tenth of the hottest frame's weight differ visibly from zero.
export const heatStep = (self: number, hottest: number): number =>
  hottest > 0 ? Math.round(Math.sqrt(Math.min(1, self / hottest)) * (HEAT_STEPS - 1)) : 0;

// One color per kind and shade, so that drawing does not create strings.
export function palette(theme: Theme): string[][] {
  return kinds.map((kind) => Array.from({ length: SHADES }, (_, shade) => frameColour(kind, shade, theme)));
}

export const legendColour = (kind: FrameKind, theme: Theme): string => frameColour(kind, (SHADES - 1) / 2, theme);
