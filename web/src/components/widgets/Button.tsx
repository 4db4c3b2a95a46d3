// A button with an icon, a text, or both. Without a text, the title is its accessible name.
import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './Icon';

interface Props {
  icon?: IconName;
  title: string;
  onClick?: () => void; // without it, the button submits its form
  children?: ComponentChildren;
  kind?: 'plain' | 'primary' | 'danger' | 'ghost';
  pressed?: boolean;
  disabled?: boolean;
  id?: string;
}

export function Button({ icon, title, onClick, children, kind = 'plain', pressed, disabled, id }: Props) {
  return (
    <button
      type={onClick ? 'button' : 'submit'}
      id={id}
      class={`button button-${kind} ${children ? '' : 'button-icon'}`}
      title={title}
      aria-label={children ? undefined : title}
      aria-pressed={pressed}
      disabled={disabled}
      onClick={onClick}
    >
      {icon && <Icon name={icon} />}
      {children && <span>{children}</span>}
    </button>
  );
}
