// The flame graph on the screen: a canvas that stays in view while its scroller scrolls through all rows. It holds the temporary
// state (window, hover, cursor) and builds scenes from it, which the RenderWorker draws. Callers set the view state; the pane
// reports changes to it through callbacks.
import type { Contrast } from '../model/baseline';
import type { Theme } from '../model/theme';
import type { Colouring } from '../model/view_state';
import { framesOf, hitAt, nodeIn, type Drawn, type DrawnFrame, type Hit } from './drawn';
import { actionOf, stepFrom } from './keyboard';
import { BoxType } from './layout';
import { workerClient, type CanvasHandle } from './worker_client';
import { Minimap } from './minimap';
import { ROW, rowTop, type Rows, type Scene, type Seen } from './scene';
import { panned, wholeSpan, widened, type Span } from '../model/span';
import { PrintCanvas, pngOf } from './snapshot';
import { pathOf, type FlameTree } from './tree';
import { Viewport } from './viewport';

export interface PaneEvents {
  zoom(path: string[]): void;
  open(node: number): void; // opens the source of a frame
  callers(node: number): void;
  menu(hit: Hit): void;
  span(span: Span): void; // the user moved the window within the zoomed frame
  hover(hit: Hit | null): void;
}

// A zoom or pan gesture ends after this time without an event.
const GESTURE_MS = 250;
// Browsers limit the size of a canvas, so a printout of deeper stacks contains only the outer frames.
const PAPER_ROWS = 400;
const WHEEL_ZOOM = 0.0018; // exponent of the zoom factor per pixel of the wheel
const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');

export class FlamePane {
  private readonly view = new Viewport();
  private readonly canvasHandle: CanvasHandle;
  private readonly minimap: Minimap;
  private readonly sizer: ResizeObserver;
  private onCanvas: Drawn | null = null;
  private drawing: FlameTree; // the tree of the last scene
  private scheduled = 0;
  private late = false; // a scene is due, but the previous one is still being drawn
  private look: { theme: Theme; upright: boolean; colouring: Colouring; contrast: Contrast } = {
    theme: 'dark',
    upright: false,
    colouring: 'kind',
    contrast: 'red-blue',
  };
  private matches: Uint8Array | null = null;
  private cursor = -1;
  private hovered = -1;
  private pointer: { x: number; y: number } | null = null;
  private width = 0;
  private height = 0;
  private scrolled = 0;
  private content = 0; // height of the content in CSS pixels
  private atBottom = true; // if upright: the root is in view
  private gesture = 0;
  private printCanvas: PrintCanvas | null = null;

  constructor(
    private readonly scroller: HTMLElement,
    private readonly spacer: HTMLElement,
    private readonly canvas: HTMLCanvasElement,
    private readonly events: PaneEvents,
  ) {
    this.drawing = this.view.tree;
    this.minimap = new Minimap(scroller);
    this.canvasHandle = workerClient().attachCanvas(canvas, this.minimap.canvas, (seen) => this.drew(seen));
    this.sizer = new ResizeObserver(() => this.measure());
    this.sizer.observe(scroller);
    scroller.addEventListener('scroll', () => {
      this.scrolled = scroller.scrollTop;
      this.atBottom = this.scrolled + scroller.clientHeight >= scroller.scrollHeight - 4;
      this.redraw();
    });
    scroller.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    canvas.addEventListener('contextmenu', (event) => {
      const hit = this.hit(event.offsetX, event.offsetY);
      if (!hit) return;
      event.preventDefault();
      this.cursor = hit.node;
      this.redraw();
      this.events.menu(hit);
    });
    canvas.addEventListener('pointermove', (event) => {
      this.pointer = { x: event.offsetX, y: event.offsetY };
      this.track();
    });
    canvas.addEventListener('pointerleave', () => {
      this.pointer = null;
      this.track();
    });
    canvas.addEventListener('click', (event) => this.click(event));
    canvas.addEventListener('dblclick', (event) => {
      const hit = this.hit(event.offsetX, event.offsetY);
      if (hit && hit.type === BoxType.frame && hit.node > 0) this.events.open(hit.node);
    });
    scroller.addEventListener('keydown', (event) => this.key(event));
    this.measure();
  }

  dispose(): void {
    this.sizer.disconnect();
    this.minimap.dispose();
    this.canvasHandle.close();
    clearTimeout(this.gesture);
    cancelAnimationFrame(this.scheduled);
  }

  // Sets a new tree and its search matches (by node; null: no search). The window follows the zoomed path without an animation.
  // The cursor stays on its frame.
  setTree(tree: FlameTree, matches: Uint8Array | null): void {
    const before = this.view.tree;
    if (tree === before && matches === this.matches) return;
    this.matches = matches;
    if (tree !== before) {
      this.view.setTree(tree);
      this.cursor = nodeIn(tree, before, this.cursor);
      this.hovered = nodeIn(tree, before, this.hovered);
      this.resizeContent();
    }
    // Without an animation, draw now instead of in the next animation frame, so that the worker can start earlier.
    if (this.view.isMoving) this.redraw();
    else this.draw(performance.now());
  }

  setZoom(path: readonly string[]): void {
    if (!this.view.setZoom(path, this.wayBegins())) return;
    this.resizeContent();
    this.redraw();
  }

  // Sets the part of the zoomed frame that is shown.
  setSpan(span: Span): void {
    if (span.from === this.view.span.from && span.to === this.view.span.to) return;
    this.view.setSpan(span, this.wayBegins());
    this.redraw();
  }

  setLook(look: { theme: Theme; upright: boolean; colouring: Colouring; contrast: Contrast }): void {
    const turned = look.upright !== this.look.upright;
    this.look = look;
    if (turned) {
      this.resizeContent();
      this.scrollBy(look.upright ? this.content : -this.content);
    }
    this.redraw();
  }

  // While printing, the graph is as wide as the paper and as tall as the stacks, at a higher resolution than on the screen.
  setPrinting(printing: boolean): void {
    if (printing === (this.printCanvas !== null)) return;
    this.printCanvas?.remove();
    this.printCanvas = printing ? new PrintCanvas(this.canvas) : null;
    this.view.jump();
    this.scrollBy(-this.content);
    this.scroller.style.height = printing ? `${Math.min(PAPER_ROWS, this.view.rows()) * ROW + 8}px` : '';
    this.measure();
  }

  // Moves the cursor to a frame and scrolls to it. Zooms out if the frame is outside of the window, and zooms in to one of its
  // ancestors if the frame is too narrow to see.
  reveal(node: number): void {
    const { tree, from, to, zoomed } = this.view;
    const pixels = (at: number) => (tree.total[at]! * this.width) / (to - from);
    this.cursor = node;
    const outside = tree.start[node]! + tree.total[node]! <= from || tree.start[node]! >= to;
    if (outside) this.events.zoom([]);
    else if (pixels(node) < 3) {
      let up = node;
      while (up > 0 && pixels(up) < 24) up = tree.parent[up]!;
      if (up !== zoomed) this.events.zoom(pathOf(tree, up));
    }
    this.scrollTo(node);
    this.redraw();
  }

  // The visible part as a PNG file.
  picture(): Promise<Blob | null> {
    return pngOf(this.view.tree, this.scene(), this.matches);
  }

  currentTree(): FlameTree {
    return this.view.tree;
  }
  // Whether frames() describes the latest tree and no animation is running.
  drawn(): boolean {
    return (
      !this.view.isMoving &&
      this.scheduled === 0 &&
      !this.canvasHandle.isBusy &&
      !this.late &&
      this.width > 0 &&
      this.onCanvas?.tree === this.view.tree
    );
  }

  // The frames on the canvas now.
  frames(): DrawnFrame[] {
    return this.onCanvas ? framesOf(this.onCanvas, this.lie()) : [];
  }

  // --- window ---

  // The start time of a new animation; null: the page is hidden or the user prefers reduced motion.
  private wayBegins(): number | null {
    return reducedMotion.matches || document.visibilityState === 'hidden' ? null : performance.now();
  }

  private lie(): Rows {
    return { upright: this.look.upright, content: this.content, scrolled: this.scrolled };
  }

  private resizeContent(): void {
    const content = Math.max(this.height, this.view.rows() * ROW + 8);
    if (content === this.content) return;
    this.content = content;
    this.spacer.style.height = `${content}px`;
    // The browser reduces scrollTop if the content shrinks. Read it only after a change, because reading it forces a layout.
    if (this.look.upright && this.atBottom) this.scroller.scrollTop = content;
    this.scrolled = this.scroller.scrollTop;
  }

  private scrollBy(pixels: number): void {
    this.scroller.scrollTop = this.scrolled + pixels;
    this.scrolled = this.scroller.scrollTop;
  }

  private measure(): void {
    const width = this.scroller.clientWidth;
    const height = this.scroller.clientHeight;
    this.width = width;
    this.height = height;
    const shown = this.printCanvas?.canvas ?? this.canvas;
    shown.style.width = `${width}px`;
    shown.style.height = `${height}px`;
    this.resizeContent();
    this.draw(performance.now());
  }

  private scrollTo(node: number): void {
    const top = rowTop(this.lie(), this.view.tree.depth[node]!);
    if (top < 0 || top > this.height - 2 * ROW) this.scrollBy(top - this.height / 3);
  }

  private redraw(): void {
    if (!this.scheduled) this.scheduled = requestAnimationFrame((now) => this.draw(now));
  }

  private scene(): Scene {
    const { tree, from, to, zoomed } = this.view;
    const ratio = this.printCanvas ? Math.max(2, devicePixelRatio) : devicePixelRatio || 1;
    const worth = this.minimap.place(this.height, this.content, this.scrolled);
    const overview = worth ? { ...this.view.whole(), rows: this.view.rows() } : null;
    return {
      ...this.look,
      ...this.lie(),
      tree: tree.id,
      from,
      to,
      zoomed,
      width: this.width,
      height: this.height,
      ratio,
      current: this.cursor,
      hovered: this.hovered,
      overview,
    };
  }

  private draw(now: number): void {
    cancelAnimationFrame(this.scheduled);
    this.scheduled = 0;
    if (this.printCanvas) {
      this.onCanvas = this.printCanvas.draw(this.view.tree, this.scene(), this.matches);
      return;
    }
    this.late = this.canvasHandle.isBusy;
    if (this.late) return;
    if (this.view.step(now)) this.redraw();
    this.drawing = this.view.tree;
    this.canvasHandle.draw(this.scene(), this.matches);
  }

  private drew(seen: Seen | null): void {
    if (seen && !this.printCanvas) this.onCanvas = { tree: this.drawing, boxes: seen.boxes };
    if (this.late) {
      this.late = false;
      this.redraw();
    }
    if (this.pointer) this.track();
  }

  // --- pointer and keys ---

  private hit(x: number, y: number): Hit | null {
    return this.onCanvas && hitAt(this.onCanvas, this.lie(), this.view.tree, x, y);
  }

  private track(): void {
    const hit = this.pointer ? this.hit(this.pointer.x, this.pointer.y) : null;
    const node = hit && hit.type === BoxType.frame ? hit.node : -1;
    this.canvas.style.cursor = hit ? 'pointer' : 'default';
    if (node !== this.hovered) {
      this.hovered = node;
      this.redraw();
    }
    this.events.hover(hit);
  }

  private click(event: MouseEvent): void {
    const hit = this.hit(event.offsetX, event.offsetY);
    if (!hit) return;
    this.cursor = -1;
    if (hit.node !== this.view.zoomed || hit.type === BoxType.pruned)
      this.events.zoom(pathOf(this.view.tree, hit.node));
    this.redraw();
  }

  private wheel(event: WheelEvent): void {
    const sideways = event.shiftKey
      ? event.deltaY || event.deltaX
      : Math.abs(event.deltaX) > Math.abs(event.deltaY)
        ? event.deltaX
        : 0;
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (event.ctrlKey || event.metaKey)
      this.zoomWindow(Math.exp(event.deltaY * lines * WHEEL_ZOOM), event.offsetX / this.width);
    else if (sideways !== 0 && this.view.span !== wholeSpan) this.moveWindow((sideways * lines) / this.width);
    else return;
    event.preventDefault();
  }

  // Zooms around a position in the window (0 left … 1 right).
  zoomWindow(factor: number, around: number): void {
    this.showSpan(widened(this.view.span, factor, Math.min(1, Math.max(0, around))));
  }

  // Moves the window by a share of its width.
  moveWindow(share: number): void {
    this.showSpan(panned(this.view.span, share));
  }

  private showSpan(span: Span): void {
    this.view.setSpan(span, null);
    this.redraw();
    clearTimeout(this.gesture);
    this.gesture = window.setTimeout(() => this.events.span(this.view.span), GESTURE_MS);
  }

  // The position of the cursor in the window (0 … 1), or the middle if the cursor is not visible.
  private cursorPlace(): number {
    if (this.cursor < 0) return 0.5;
    const { tree, from, to } = this.view;
    const place = (tree.start[this.cursor]! + tree.total[this.cursor]! / 2 - from) / (to - from);
    return place >= 0 && place <= 1 ? place : 0.5;
  }

  private key(event: KeyboardEvent): void {
    const action = actionOf(event, this.look.upright);
    if (!action) return;
    const { tree, zoomed, span } = this.view;
    const at = this.cursor >= 0 ? this.cursor : zoomed;
    const isWhole = span.from === 0 && span.to === 1;
    switch (action) {
      case 'zoom':
        this.events.zoom(pathOf(tree, at));
        break;
      case 'source':
        if (at > 0) this.events.open(at);
        break;
      case 'callers':
        if (at > 0) this.events.callers(at);
        break;
      case 'menu':
        this.menuAt(at);
        break;
      case 'closer':
        this.zoomWindow(0.5, this.cursorPlace());
        break;
      case 'farther':
        if (isWhole) this.events.zoom(pathOf(tree, tree.parent[zoomed]!));
        else this.zoomWindow(2, this.cursorPlace());
        break;
      case 'whole':
        if (isWhole) return;
        this.showSpan(wholeSpan);
        break;
      case 'home':
        this.move(0);
        this.events.zoom([]);
        break;
      default:
        this.move(stepFrom(tree, at, action));
    }
    event.preventDefault();
  }

  private menuAt(node: number): void {
    this.cursor = node;
    this.scrollTo(node);
    this.events.menu({ node, type: BoxType.frame, ...this.cornerOf(node) });
  }

  // The bottom left corner of a frame, kept inside of the window.
  private cornerOf(node: number): { x: number; y: number } {
    const { tree, from, to } = this.view;
    const x = ((tree.start[node]! - from) * this.width) / (to - from) + 8;
    return { x: Math.min(this.width - 20, Math.max(8, x)), y: rowTop(this.lie(), tree.depth[node]!) + ROW };
  }

  private move(node: number): void {
    if (node < 0) return;
    const { tree, from, to } = this.view;
    this.cursor = node;
    const left = tree.start[node]!;
    if (left < from || left + tree.total[node]! > to) this.events.zoom(pathOf(tree, tree.parent[node]!));
    this.scrollTo(node);
    this.redraw();
    this.events.hover({ node, type: BoxType.frame, ...this.cornerOf(node) });
  }
}
