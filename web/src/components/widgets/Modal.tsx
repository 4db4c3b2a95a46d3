// A dialog over the page. The browser keeps the focus inside and closes the dialog on Escape.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { closeDialog } from '../../store/ui';
import { Button } from './Button';

interface Props {
  title: string;
  class?: string;
  children: ComponentChildren;
  footer?: ComponentChildren;
}

export function Modal({ title, class: className = '', children, footer }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const pressedBeside = useRef(false);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={`modal ${className}`}
      aria-label={title}
      onClose={closeDialog}
      onPointerDown={(event) => (pressedBeside.current = event.target === dialog.current)}
      // A press inside that is released outside, for example to select text, also causes a click on the dialog.
      onClick={(event) => event.target === dialog.current && pressedBeside.current && closeDialog()}
    >
      <header class="modal-head">
        <h2>{title}</h2>
        <Button icon="close" title="Close" kind="ghost" onClick={closeDialog} />
      </header>
      <div class="modal-body">{children}</div>
      {footer && <footer class="modal-foot">{footer}</footer>}
    </dialog>
  );
}
