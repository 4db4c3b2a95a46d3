// Texts about sessions: title, tags, and the rules for deleting old ones.
import type { KeepRules, Session } from '../api/types';
import { bytes, count } from './format';

// The name that the user gave, or else the target.
export const sessionTitle = (session: Pick<Session, 'name' | 'target' | 'id'>): string =>
  session.name || session.target || session.id;

export const tagText = (key: string, value: string): string => `${key}=${value}`;

// Parses a typed tag, KEY=VALUE; null if it is invalid.
export function parseTag(text: string): [key: string, value: string] | null {
  const equals = text.indexOf('=');
  const key = text.slice(0, equals).trim();
  return equals < 0 || key === '' || key.includes(' ') ? null : [key, text.slice(equals + 1).trim()];
}

// '' if nothing is deleted automatically.
export function keepText(rules: KeepRules): string {
  const parts = [
    rules.count > 0 && `${count(rules.count)} ${rules.count === 1 ? 'session' : 'sessions'}`,
    rules.days > 0 && `${count(rules.days)} ${rules.days === 1 ? 'day' : 'days'}`,
    rules.size_bytes > 0 && bytes(rules.size_bytes),
  ].filter(Boolean);
  return parts.length === 0 ? '' : `kept: at most ${parts.join(', ')}`;
}

// "1–100 of 2,345"
export function pageText(offset: number, shown: number, total: number): string {
  return shown === 0 ? `none of ${count(total)}` : `${count(offset + 1)}–${count(offset + shown)} of ${count(total)}`;
}
