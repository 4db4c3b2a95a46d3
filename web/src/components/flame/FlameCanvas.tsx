// Mounts a flame pane and updates it when its frames change.
import { effect, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { hitIn, type Hit } from '../../flame/drawn';
import { FlamePane } from '../../flame/pane';
import { wholeSpan } from '../../model/span';
import type { FlameTree } from '../../flame/tree';
import { showCallersOf, showSourceOf, type Frames } from '../../store/frames';
import { printing } from '../../store/printing';
import { theme } from '../../store/theme';
import { view } from '../../store/view';
import { percent } from '../../text/format';
import { FrameMenu } from './FrameMenu';
import { HoverCard } from './HoverCard';

// A hit belongs to the tree that was shown at that time. Newer data may have arrived since.
interface Pointed {
  hit: Hit;
  tree: FlameTree;
}
const nowIn = (shown: FlameTree, pointed: Pointed | null) => pointed && hitIn(shown, pointed.tree, pointed.hit);

const describe = (shown: FlameTree, hit: Hit | null) =>
  hit ? `${shown.labels[shown.label[hit.node]!]}, ${percent(shown.total[hit.node]! / shown.total[0]!)} of all` : null;

interface Props {
  shown: FlameTree;
  frames: Frames;
  label?: string;
}

export function FlameCanvas({ shown, frames, label = 'Flame graph' }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const pointed = useSignal<Pointed | null>(null);
  const menu = useSignal<Pointed | null>(null);

  useEffect(() => {
    const made = new FlamePane(scroller.current!, spacer.current!, canvas.current!, {
      zoom: frames.zoomTo,
      hover: (hit) => (pointed.value = hit && { hit, tree: made.currentTree() }),
      open: (node) => showSourceOf(made.currentTree(), node),
      callers: (node) => showCallersOf(made.currentTree(), node),
      menu: (hit) => {
        pointed.value = null;
        menu.value = { hit, tree: made.currentTree() };
      },
      span: frames.setSpan,
    });
    frames.pane.value = made;
    const stops = [
      effect(() =>
        made.setLook({
          theme: theme.value,
          upright: frames.upright.value,
          colouring: view.value.colouring,
          contrast: view.value.contrast,
        }),
      ),
      effect(() => {
        if (frames.tree.value) made.setTree(frames.tree.value, frames.isMatch.value);
      }),
      effect(() => {
        made.setZoom(frames.zoom.value);
        made.setSpan(frames.span.value ?? wholeSpan);
      }),
      effect(() => made.setPrinting(printing.value)),
    ];
    return () => {
      for (const stop of stops) stop();
      made.dispose();
      frames.pane.value = null;
    };
  }, []);

  const hit = nowIn(shown, pointed.value);
  const chosen = nowIn(shown, menu.value);
  return (
    <div class="flame-pane">
      <div
        class="flame-scroller"
        ref={scroller}
        tabIndex={0}
        role="application"
        aria-label={`${label}. Arrow keys walk the frames, Enter zooms, Escape goes back, S opens the source, Shift+F10 the menu.`}
      >
        <div class="flame-spacer" ref={spacer}>
          <canvas class="flame-canvas" ref={canvas} />
        </div>
      </div>
      {chosen ? (
        <FrameMenu
          at={chosen}
          tree={shown}
          frames={frames}
          close={() => {
            menu.value = null;
            scroller.current?.focus({ preventScroll: true });
          }}
        />
      ) : (
        <HoverCard hit={hit} tree={shown} inverted={frames.inverted.value} />
      )}
      <div class="visually-hidden" aria-live="polite">
        {describe(shown, hit)}
      </div>
    </div>
  );
}
