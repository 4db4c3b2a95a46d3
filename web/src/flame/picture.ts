// A canvas with a flame graph: lays out and draws a scene, in the page or in a worker.
import type { AnyCanvas } from './canvas';
import { layOut, newBoxes, type Boxes } from './layout';
import { Painter } from './painter';
import { visibleRows, type Scene } from './scene';
import type { FlameTree } from './tree';

export class Picture {
  private readonly painter: Painter;
  private readonly boxes = newBoxes();

  constructor(canvas: AnyCanvas) {
    this.painter = new Painter(canvas);
  }

  // Returns the drawn boxes, which the next call overwrites. `matches`: by node; null: no search.
  draw(tree: FlameTree, scene: Scene, matches: Uint8Array | null): Boxes {
    const { first, last } = visibleRows(scene, scene.height);
    layOut(tree, { from: scene.from, to: scene.to, width: scene.width, firstRow: first, lastRow: last }, this.boxes);
    this.painter.setTree(tree);
    this.painter.resize(scene.width, scene.height, scene.ratio);
    this.painter.draw(tree, this.boxes, scene, matches);
    return this.boxes;
  }
}
