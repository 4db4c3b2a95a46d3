// The whole of a deep flame graph beside it, with the part that is in sight; a press goes there. The picture is made anew only
// when the tree or the zoom changed.
import type { Theme } from '../store/theme';
import type { Contrast } from '../store/baseline';
import { kinds, legendColour } from './colour';
import { diffPalette, DIFF_STEPS } from './difference';
import { BoxType, layOut, newBoxes } from './layout';
import { ROW } from './painter';
import type { FlameTree } from './tree';

export interface Overview {
  from: number; // weight at its edges
  to: number;
  rows: number;
  content: number; // CSS pixels that the scroller's content is high
  upright: boolean;
  theme: Theme;
  contrast: Contrast;
}

const WIDTH = 64;
// Less is quicker scrolled than looked at.
const WORTH = 1.5;

export class Minimap {
  private readonly root = document.createElement('div');
  private readonly canvas = document.createElement('canvas');
  private readonly frame = document.createElement('div');
  private readonly boxes = newBoxes();
  private drawn = '';
  private tree: FlameTree | null = null;

  constructor(private readonly scroller: HTMLElement) {
    this.root.className = 'minimap';
    this.root.hidden = true;
    this.root.setAttribute('aria-hidden', 'true'); // the scroller itself can be scrolled by keys
    this.frame.className = 'minimap-frame';
    this.root.append(this.canvas, this.frame);
    scroller.parentElement?.append(this.root);
    this.root.addEventListener('pointerdown', (event) => {
      this.root.setPointerCapture(event.pointerId);
      this.go(event);
    });
    this.root.addEventListener('pointermove', (event) => {
      if (this.root.hasPointerCapture(event.pointerId)) this.go(event);
    });
  }

  dispose(): void {
    this.root.remove();
  }

  draw(tree: FlameTree, view: Overview): void {
    const height = this.scroller.clientHeight;
    const shown = height > 0 && view.content > height * WORTH;
    if (this.root.hidden === shown) {
      this.root.hidden = !shown;
      this.scroller.classList.toggle('beside-minimap', shown);
    }
    if (!shown) return;
    const scale = height / view.content;
    this.frame.style.height = `${Math.max(6, height * scale)}px`;
    this.frame.style.transform = `translateY(${this.scroller.scrollTop * scale}px)`;
    const key = JSON.stringify([view, height]);
    if (key === this.drawn && tree === this.tree) return;
    this.drawn = key;
    this.tree = tree;
    this.paint(tree, view, height, scale);
  }

  private paint(tree: FlameTree, view: Overview, height: number, scale: number): void {
    const ratio = devicePixelRatio || 1;
    this.canvas.width = WIDTH * ratio;
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const c = this.canvas.getContext('2d');
    if (!c) return;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    layOut(tree, { from: view.from, to: view.to, width: WIDTH, firstRow: 0, lastRow: view.rows }, this.boxes);
    const changes = tree.diff ? diffPalette(view.theme, view.contrast) : null;
    const colours = kinds.map((kind) => legendColour(kind, view.theme));
    const row = ROW * scale;
    for (let i = 0; i < this.boxes.count; i++) {
      const depth = this.boxes.depth[i]!;
      const node = this.boxes.node[i]!;
      const coloured = this.boxes.type[i] === BoxType.frame && depth > 0;
      c.fillStyle = !coloured ? 'rgba(128,138,150,0.5)' : changes ? changes[tree.diff!.step[node]! + DIFF_STEPS]! : colours[tree.kind[node]!]!;
      const top = view.upright ? height - (depth + 1) * row : depth * row;
      c.fillRect(this.boxes.x[i]!, top, Math.max(0.5, this.boxes.width[i]!), Math.max(0.6, row));
    }
  }

  private go(event: PointerEvent): void {
    const place = (event.clientY - this.root.getBoundingClientRect().top) / this.scroller.clientHeight;
    this.scroller.scrollTop = place * this.scroller.scrollHeight - this.scroller.clientHeight / 2;
  }
}
