// Puts the flame pane on the page and keeps it in step with the store.
import { effect, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { FlamePane, type Hit } from '../flame/pane';
import type { FlameTree } from '../flame/tree';
import { matches, pane, tree, zoomTo } from '../store/flame';
import { theme } from '../store/theme';
import { openSource, view, zoom } from '../store/view';
import { percent } from '../text/format';
import { HoverCard } from './HoverCard';

const describe = (shown: FlameTree, hit: Hit | null) =>
  hit && hit.node < shown.size
    ? `${shown.names[shown.name[hit.node]!]}, ${percent(shown.total[hit.node]! / shown.total[0]!)} of all`
    : '';

export function FlameCanvas({ shown }: { shown: FlameTree }) {
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const hit = useSignal<Hit | null>(null);

  useEffect(() => {
    const made = new FlamePane(scroller.current!, spacer.current!, canvas.current!, {
      zoom: zoomTo,
      hover: (now) => {
        if (now !== hit.peek()) hit.value = now;
      },
      open: (node) => {
        const t = made.currentTree();
        openSource(t.files[t.file[node]!] ?? '', t.line[node]!);
      },
    });
    pane.value = made;
    const stops = [
      effect(() => {
        if (tree.value) made.setTree(tree.value);
        made.setMatches(matches.value?.isMatch ?? null);
      }),
      effect(() => made.setZoom(zoom.value)),
      effect(() => made.setLook({ theme: theme.value, upright: view.value.upright })),
    ];
    return () => {
      for (const stop of stops) stop();
      made.dispose();
      pane.value = null;
    };
  }, []);

  return (
    <div class="flame-pane">
      <div
        class="flame-scroller"
        ref={scroller}
        tabIndex={0}
        role="application"
        aria-label="Flame graph. Arrow keys walk the frames, space zooms, Enter opens the source."
      >
        <div class="flame-spacer" ref={spacer}>
          <canvas class="flame-canvas" ref={canvas} />
        </div>
      </div>
      <HoverCard hit={hit} tree={shown} />
      <div class="visually-hidden" aria-live="polite">
        {describe(shown, hit.value)}
      </div>
    </div>
  );
}
