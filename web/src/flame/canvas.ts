// Canvases, in the page or in a worker.
export type AnyCanvas = HTMLCanvasElement | OffscreenCanvas;
export type AnyContext = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

export function contextOf(canvas: AnyCanvas): AnyContext {
  const context = canvas.getContext('2d', { alpha: true }) as AnyContext | null;
  if (!context) throw new Error('this browser has no 2D canvas');
  return context;
}

export function newCanvas(width: number, height: number): AnyCanvas {
  if (typeof OffscreenCanvas === 'function') return new OffscreenCanvas(width, height);
  return Object.assign(document.createElement('canvas'), { width, height });
}
