// The menu of a frame. It opens at the pointer or, from the keyboard, at the frame.
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Hit } from '../../flame/drawn';
import { missingCallers } from '../../flame/missing';
import { pathOf, type FlameTree } from '../../flame/tree';
import { copyName, copyStack, nameOf, showCallersOf, showSourceOf, type Frames } from '../../store/frames';
import { setShape, view } from '../../store/view';

interface Props {
  at: Hit;
  tree: FlameTree;
  frames: Frames;
  close: () => void;
}

interface Item {
  id: string;
  text: string;
  keys?: string;
  off?: boolean;
  run: () => void;
}

function itemsOf({ at, tree, frames }: Props): Item[] {
  const { node } = at;
  const real = node > 0 && missingCallers(tree, node) === null;
  const path = pathOf(tree, node);
  const { hide } = frames;
  return [
    { id: 'focus', text: 'Focus on this frame', keys: 'Enter', run: () => frames.zoomTo(path) },
    ...(hide ? [{ id: 'hide', text: 'Hide this subtree', off: node === 0, run: () => hide(path) }] : []),
    {
      id: 'recursion',
      text: view.value.collapse ? 'Show recursion again' : 'Collapse recursion',
      run: () => setShape({ collapse: !view.value.collapse }),
    },
    { id: 'source', text: 'Show source and assembly', keys: 'S', off: !real, run: () => showSourceOf(tree, node) },
    { id: 'callers', text: 'Callers and callees', keys: 'C', off: !real, run: () => showCallersOf(tree, node) },
    { id: 'copy-name', text: 'Copy the name', run: () => copyName(tree, node) },
    { id: 'copy-stack', text: 'Copy the stack', off: node === 0, run: () => copyStack(frames, tree, node) },
  ];
}

export function FrameMenu(props: Props) {
  const { at, tree, close } = props;
  const root = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = root.current;
    const bounds = element?.parentElement?.getBoundingClientRect();
    if (!element || !bounds) return undefined;
    const left = Math.max(4, Math.min(at.x, bounds.width - element.offsetWidth - 8));
    const top = Math.max(4, Math.min(at.y, bounds.height - element.offsetHeight - 4));
    element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    element.querySelector<HTMLButtonElement>('button:not(:disabled)')?.focus({ preventScroll: true });
    const outside = (event: PointerEvent) => {
      if (!element.contains(event.target as Node)) close();
    };
    document.addEventListener('pointerdown', outside);
    return () => document.removeEventListener('pointerdown', outside);
  }, [at.x, at.y]);

  const key = (event: KeyboardEvent) => {
    const buttons = [...root.current!.querySelectorAll<HTMLButtonElement>('button:not(:disabled)')];
    const now = buttons.indexOf(document.activeElement as HTMLButtonElement);
    if (event.key === 'Escape' || event.key === 'Tab') close();
    else if (event.key === 'ArrowDown') buttons[(now + 1) % buttons.length]?.focus();
    else if (event.key === 'ArrowUp') buttons[(now - 1 + buttons.length) % buttons.length]?.focus();
    else if (event.key === 'Home') buttons[0]?.focus();
    else if (event.key === 'End') buttons.at(-1)?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div
      class="popover-panel frame-menu menu"
      ref={root}
      role="menu"
      id="frame-menu"
      aria-label={nameOf(tree, at.node)}
      onKeyDown={key}
    >
      {itemsOf(props).map((item) => (
        <button
          key={item.id}
          type="button"
          role="menuitem"
          data-item={item.id}
          disabled={item.off}
          onClick={() => {
            close();
            item.run();
          }}
        >
          <span>{item.text}</span>
          {item.keys && <kbd>{item.keys}</kbd>}
        </button>
      ))}
    </div>
  );
}
