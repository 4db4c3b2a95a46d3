// The picture of the minimap: the whole zoomed frame in a narrow strip. It is redrawn only if its input changed.
import { contextOf, type AnyCanvas, type AnyContext } from './canvas';
import { kinds, legendColour } from './colour';
import { diffPalette, DIFF_STEPS } from './difference';
import { BoxType, layOut, newBoxes } from './layout';
import { ROW, type Scene } from './scene';
import type { FlameTree } from './tree';

export const OVERVIEW_WIDTH = 64;

export class OverviewPicture {
  private readonly boxes = newBoxes();
  private readonly context: AnyContext;
  private drawn = '';

  constructor(private readonly canvas: AnyCanvas) {
    this.context = contextOf(canvas);
  }

  draw(tree: FlameTree, scene: Scene): void {
    const { overview: view, height, content, ratio, upright, theme, contrast } = scene;
    if (!view) return;
    const key = JSON.stringify([view, tree.id, height, content, ratio, upright, theme, contrast]);
    if (key === this.drawn) return;
    this.drawn = key;
    this.canvas.width = Math.round(OVERVIEW_WIDTH * ratio);
    this.canvas.height = Math.round(height * ratio);
    const c = this.context;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    layOut(tree, { from: view.from, to: view.to, width: OVERVIEW_WIDTH, firstRow: 0, lastRow: view.rows }, this.boxes);
    const changes = tree.diff ? diffPalette(theme, contrast) : null;
    const colours = kinds.map((kind) => legendColour(kind, theme));
    const row = (ROW * height) / content;
    for (let i = 0; i < this.boxes.count; i++) {
      const depth = this.boxes.depth[i]!;
      const node = this.boxes.node[i]!;
      const coloured = this.boxes.type[i] === BoxType.frame && depth > 0;
      c.fillStyle = !coloured
        ? 'rgba(128,138,150,0.5)'
        : changes
          ? changes[tree.diff!.step[node]! + DIFF_STEPS]!
          : colours[tree.kind[node]!]!;
      const top = upright ? height - (depth + 1) * row : depth * row;
      c.fillRect(this.boxes.x[i]!, top, Math.max(0.5, this.boxes.width[i]!), Math.max(0.6, row));
    }
  }
}
