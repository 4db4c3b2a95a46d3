// Draws flame graphs for PNG files and for printing. A browser does not wait for a worker when it prints, so these are drawn
// immediately, in the page.
import { Picture } from './picture';
import type { Scene } from './scene';
import type { Drawn } from './drawn';
import type { FlameTree } from './tree';

// The visible part on the page's background. Null: the browser cannot create the picture.
export function pngOf(tree: FlameTree, scene: Scene, matches: Uint8Array | null): Promise<Blob | null> {
  const graph = document.createElement('canvas');
  new Picture(graph).draw(tree, scene, matches);
  const out = document.createElement('canvas');
  out.width = graph.width;
  out.height = graph.height;
  const c = out.getContext('2d');
  if (!c) return Promise.resolve(null);
  c.fillStyle = getComputedStyle(document.body).backgroundColor;
  c.fillRect(0, 0, out.width, out.height);
  c.drawImage(graph, 0, 0);
  return new Promise((resolve) => out.toBlob(resolve, 'image/png'));
}

// Replaces the canvas on the screen while printing.
export class PrintCanvas {
  readonly canvas = document.createElement('canvas');
  private readonly picture = new Picture(this.canvas);

  constructor(private readonly instead: HTMLCanvasElement) {
    this.canvas.className = 'flame-canvas';
    instead.before(this.canvas);
    instead.style.display = 'none';
  }

  draw(tree: FlameTree, scene: Scene, matches: Uint8Array | null): Drawn {
    return { tree, boxes: this.picture.draw(tree, scene, matches) };
  }

  remove(): void {
    this.canvas.remove();
    this.instead.style.display = '';
  }
}
