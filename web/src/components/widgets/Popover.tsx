// A button that opens a small panel. The panel closes on Escape, on a click elsewhere and when it loses the focus.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

interface Props {
  label: ComponentChildren;
  title: string;
  class?: string;
  name?: string; // for a label without text
  panelClass?: string;
  align?: 'start' | 'end';
  side?: 'above' | 'below';
  id?: string;
  children: (close: () => void) => ComponentChildren;
}

export function Popover({
  label,
  title,
  name,
  class: className = '',
  panelClass = '',
  align = 'start',
  side = 'below',
  id,
  children,
}: Props) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const close = () => {
    setOpen(false);
    if (root.current?.contains(document.activeElement)) button.current?.focus();
  };

  useEffect(() => {
    if (!open) return undefined;
    const outside = (event: PointerEvent) => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener('pointerdown', outside);
    return () => document.removeEventListener('pointerdown', outside);
  }, [open]);

  return (
    <div
      class="popover"
      ref={root}
      onKeyDown={(event) => {
        if (open && event.key === 'Escape') {
          event.stopPropagation();
          close();
        }
      }}
      onFocusOut={(event) => {
        const to = event.relatedTarget;
        if (to instanceof Node && !root.current?.contains(to)) setOpen(false);
      }}
    >
      <button
        type="button"
        id={id}
        ref={button}
        class={className}
        title={title}
        aria-label={name}
        aria-haspopup="true"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        {label}
      </button>
      {open && <div class={`popover-panel popover-${align} popover-${side} ${panelClass}`}>{children(close)}</div>}
    </div>
  );
}
