// An inline text field: Enter or a change of focus saves the text, Escape restores the old one.
import { useRef, useState } from 'preact/hooks';

interface Props {
  value: string;
  label: string;
  maxLength: number;
  placeholder?: string;
  class?: string;
  // Returns whether the text was saved. If not, the field stays open after Enter.
  onTake: (text: string) => Promise<boolean>;
  onEnd: (byKey: boolean) => void;
}

export function LineEdit({ value, label, maxLength, placeholder, class: className = '', onTake, onEnd }: Props) {
  const [busy, setBusy] = useState(false);
  const ended = useRef(false);
  const end = (byKey: boolean) => {
    ended.current = true;
    onEnd(byKey);
  };
  const take = async (text: string, byKey: boolean) => {
    if (ended.current || busy) return;
    if (text.trim() === value) return end(byKey);
    setBusy(true);
    const taken = await onTake(text.trim());
    setBusy(false);
    if (taken || !byKey) end(byKey);
  };
  return (
    <input
      type="text"
      class={`line-edit ${className}`}
      ref={(element) => {
        if (!element || element.dataset['met']) return;
        element.dataset['met'] = 'yes';
        element.focus();
        element.select();
      }}
      aria-label={label}
      aria-busy={busy}
      placeholder={placeholder}
      maxLength={maxLength}
      spellcheck={false}
      autocomplete="off"
      defaultValue={value}
      onBlur={(event) => void take(event.currentTarget.value, false)}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key === 'Enter') void take(event.currentTarget.value, true);
        if (event.key === 'Escape') end(true);
      }}
    />
  );
}
