// The flame graph on the screen: a canvas that stays in view inside a scroller as tall as the stacks are deep. Holds what is
// momentary (window, animation, hover, cursor); what lasts is told to it and reported back through callbacks.
import type { Theme } from '../store/theme';
import type { Contrast } from '../store/baseline';
import type { Colouring } from '../store/url';
import { boxAt, BoxType, layOut, newBoxes } from './layout';
import { Minimap } from './minimap';
import { Painter, ROW } from './painter';
import { panned, wholeSpan, widened, type Span } from './span';
import { emptyTree, largestChild, nodeAt, pathOf, type FlameTree } from './tree';

export interface PaneEvents {
  zoom(path: string[]): void;
  open(node: number): void; // its source
  callers(node: number): void;
  menu(hit: Hit): void;
  span(span: Span): void; // the person moved the window within the zoomed frame
  hover(hit: Hit | null): void;
}

// What is under the pointer or the keyboard's cursor. x, y: CSS pixels in the window of the pane.
export interface Hit {
  node: number;
  type: number;
  x: number;
  y: number;
}

export interface DrawnFrame {
  name: string;
  label: string; // what is written on it, as far as there is room
  module: string;
  kind: string;
  depth: number;
  x: number;
  y: number;
  width: number;
  height: number;
  self: number;
  total: number;
  step: number | null; // of the colour of a change
}

const ANIMATION_MS = 150;
// A gesture of the wheel is over when nothing came for so long.
const GESTURE_MS = 250;
// A canvas is of bounded size: of deeper stacks paper has the outer frames.
const PAPER_ROWS = 400;
const WHEEL_ZOOM = 0.0018; // share a pixel of the wheel, as an exponent
const kindNames = ['user', 'kernel', 'jit', 'inlined', 'unknown'];
const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');

export class FlamePane {
  private tree: FlameTree = emptyTree;
  private path: readonly string[] = [];
  private zoomed = 0;
  private from = 0;
  private to = 0;
  private animation: { from: number; to: number; started: number } | null = null;
  private readonly boxes = newBoxes();
  private readonly painter: Painter;
  private readonly sizer: ResizeObserver;
  private scheduled = 0;
  private theme: Theme = 'dark';
  private upright = false;
  private matches: Uint8Array | null = null;
  private cursor = -1;
  private hovered = -1;
  private pointer: { x: number; y: number } | null = null;
  private width = 0;
  private height = 0;
  private atBottom = true; // upright: the root is in view
  private colouring: Colouring = 'kind';
  private contrast: Contrast = 'red-blue';
  private span: Span = wholeSpan;
  private gesture = 0;
  private readonly minimap: Minimap;
  private onPaper = false;

  constructor(
    private readonly scroller: HTMLElement,
    private readonly spacer: HTMLElement,
    private readonly canvas: HTMLCanvasElement,
    private readonly events: PaneEvents,
  ) {
    this.painter = new Painter(canvas);
    this.minimap = new Minimap(scroller);
    this.sizer = new ResizeObserver(() => this.measure());
    this.sizer.observe(scroller);
    scroller.addEventListener('scroll', () => {
      this.atBottom = scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 4;
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
    clearTimeout(this.gesture);
    cancelAnimationFrame(this.scheduled);
  }

  // New data. The window follows the zoomed path without a jump; the cursor stays on its frame.
  setTree(tree: FlameTree): void {
    if (tree === this.tree) return;
    const cursorPath = this.cursor > 0 ? pathOf(this.tree, this.cursor) : null;
    this.tree = tree;
    this.matches = null;
    this.painter.setTree(tree);
    this.zoomed = nodeAt(tree, this.path).node;
    if (cursorPath) {
      const at = nodeAt(tree, cursorPath);
      this.cursor = at.found === cursorPath.length ? at.node : -1;
    }
    if (!this.animation) this.jump();
    this.resizeContent();
    this.redraw();
  }

  setZoom(path: readonly string[]): void {
    if (path.length === this.path.length && path.every((name, i) => name === this.path[i])) return;
    const before = this.zoomed;
    this.path = [...path];
    this.zoomed = nodeAt(this.tree, path).node;
    if (this.zoomed !== before) {
      this.span = wholeSpan;
      this.animate();
    }
    this.resizeContent();
    this.redraw();
  }

  // Which part of the zoomed frame is shown.
  setSpan(span: Span): void {
    if (span.from === this.span.from && span.to === this.span.to) return;
    this.span = span;
    this.animate();
    this.redraw();
  }

  setLook(look: { theme: Theme; upright: boolean; colouring: Colouring; contrast: Contrast }): void {
    this.theme = look.theme;
    this.colouring = look.colouring;
    this.contrast = look.contrast;
    if (look.upright !== this.upright) {
      this.upright = look.upright;
      this.resizeContent();
      this.scroller.scrollTop = look.upright ? this.scroller.scrollHeight : 0;
    }
    this.redraw();
  }

  // Of the paper's width and as tall as its stacks, sharper than on a screen; or back in its window.
  setPaper(onPaper: boolean): void {
    if (onPaper === this.onPaper) return;
    this.onPaper = onPaper;
    this.animation = null;
    this.jump();
    this.scroller.scrollTop = 0;
    this.scroller.style.height = onPaper ? `${Math.min(PAPER_ROWS, this.rows()) * ROW + 8}px` : '';
    this.measure();
  }

  setMatches(matches: Uint8Array | null): void {
    this.matches = matches;
    this.redraw();
  }

  // Walks to a frame: it becomes the cursor and is brought into view, zooming out when it is too small to see.
  reveal(node: number): void {
    this.cursor = node;
    const outside = this.tree.start[node]! + this.tree.total[node]! <= this.from || this.tree.start[node]! >= this.to;
    const tiny = (this.tree.total[node]! * this.width) / (this.to - this.from) < 3;
    if (outside) this.events.zoom([]);
    else if (tiny) {
      let up = node;
      while (up > 0 && (this.tree.total[up]! * this.width) / (this.to - this.from) < 24) up = this.tree.parent[up]!;
      if (up !== this.zoomed) this.events.zoom(pathOf(this.tree, up));
    }
    this.scrollTo(node);
    this.redraw();
  }

  // What is in sight, on the page's background.
  picture(): Promise<Blob | null> {
    const out = document.createElement('canvas');
    out.width = this.canvas.width;
    out.height = this.canvas.height;
    const c = out.getContext('2d');
    if (!c) return Promise.resolve(null);
    c.fillStyle = getComputedStyle(document.body).backgroundColor;
    c.fillRect(0, 0, out.width, out.height);
    c.drawImage(this.canvas, 0, 0);
    return new Promise((resolve) => out.toBlob(resolve, 'image/png'));
  }

  currentTree(): FlameTree {
    return this.tree;
  }
  zoomNode(): number {
    return this.zoomed;
  }
  // What frames() gives is the tree that was set last, at rest.
  drawn(): boolean {
    return this.animation === null && this.scheduled === 0 && this.width > 0;
  }

  // What is on the canvas now, in CSS pixels of the canvas.
  frames(): DrawnFrame[] {
    const out: DrawnFrame[] = [];
    const rowTop = this.rowPlaces();
    for (let i = 0; i < this.boxes.count; i++) {
      if (this.boxes.type[i] !== BoxType.frame) continue;
      const node = this.boxes.node[i]!;
      out.push({
        name: this.tree.names[this.tree.name[node]!]!,
        label: this.tree.labels[this.tree.label[node]!]!,
        module: this.tree.modules[this.tree.module[node]!] ?? '',
        kind: kindNames[this.tree.kind[node]!] ?? 'unknown',
        depth: this.boxes.depth[i]!,
        x: this.boxes.x[i]!,
        y: rowTop(this.boxes.depth[i]!),
        width: this.boxes.width[i]!,
        height: ROW - 1,
        self: this.tree.self[node]!,
        total: this.tree.total[node]!,
        step: this.tree.diff?.step[node] ?? null,
      });
    }
    return out;
  }

  // --- window ---

  private target(): { from: number; to: number } {
    const from = this.tree.start[this.zoomed]!;
    const total = this.tree.total[this.zoomed]!;
    return { from: from + this.span.from * total, to: from + this.span.to * total };
  }

  private jump(): void {
    ({ from: this.from, to: this.to } = this.target());
  }

  private animate(): void {
    if (reducedMotion.matches || document.visibilityState === 'hidden') {
      this.jump();
      return;
    }
    this.animation = { from: this.from, to: this.to, started: performance.now() };
  }

  private step(now: number): void {
    if (!this.animation) return;
    const progress = Math.min(1, Math.max(0, (now - this.animation.started) / ANIMATION_MS));
    const eased = 1 - (1 - progress) ** 3;
    const goal = this.target();
    this.from = this.animation.from + (goal.from - this.animation.from) * eased;
    this.to = this.animation.to + (goal.to - this.animation.to) * eased;
    if (progress < 1) this.redraw();
    else this.animation = null;
  }

  private rows(): number {
    return this.tree.depth[this.zoomed]! + this.tree.height[this.zoomed]! + 1;
  }

  private contentHeight(): number {
    return Math.max(this.height, this.rows() * ROW + 8);
  }

  private resizeContent(): void {
    this.spacer.style.height = `${this.contentHeight()}px`;
    if (this.upright && this.atBottom) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  private measure(): void {
    this.width = this.scroller.clientWidth;
    this.height = this.scroller.clientHeight;
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.resizeContent();
    this.draw(performance.now());
  }

  // y of a row on the canvas, which covers the scrolled part of the content.
  private rowTop(depth: number): number {
    const inContent = this.upright ? this.contentHeight() - (depth + 1) * ROW : depth * ROW;
    return inContent - this.scroller.scrollTop;
  }

  // The same for many rows: to ask an element where it is scrolled to costs more than to draw a box.
  private rowPlaces(): (depth: number) => number {
    const scrolled = this.scroller.scrollTop;
    const bottom = this.contentHeight() - ROW;
    return this.upright ? (depth) => bottom - depth * ROW - scrolled : (depth) => depth * ROW - scrolled;
  }

  private depthAt(y: number): number {
    const inContent = y + this.scroller.scrollTop;
    return Math.floor((this.upright ? this.contentHeight() - inContent : inContent) / ROW);
  }

  private scrollTo(node: number): void {
    const top = this.rowTop(this.tree.depth[node]!);
    if (top < 0 || top > this.height - 2 * ROW) this.scroller.scrollTop += top - this.height / 3;
  }

  private redraw(): void {
    if (!this.scheduled) this.scheduled = requestAnimationFrame((now) => this.draw(now));
  }

  private draw(now: number): void {
    cancelAnimationFrame(this.scheduled);
    this.scheduled = 0;
    this.step(now);
    const a = this.depthAt(0);
    const b = this.depthAt(this.height);
    layOut(
      this.tree,
      { from: this.from, to: this.to, width: this.width, firstRow: Math.max(0, Math.min(a, b)), lastRow: Math.max(a, b) },
      this.boxes,
    );
    this.painter.setTree(this.tree);
    this.painter.resize(this.width, this.height, this.onPaper ? Math.max(2, devicePixelRatio) : devicePixelRatio || 1);
    this.painter.draw(
      this.tree,
      this.boxes,
      { theme: this.theme, colouring: this.colouring, contrast: this.contrast, matches: this.matches, current: this.cursor, hovered: this.hovered, zoomed: this.zoomed },
      this.rowPlaces(),
    );
    this.minimap.draw(this.tree, { ...this.target(), rows: this.rows(), upright: this.upright, theme: this.theme, contrast: this.contrast, content: this.contentHeight() });
    if (this.pointer) this.track();
  }

  // --- pointer and keys ---

  private hit(x: number, y: number): Hit | null {
    const box = boxAt(this.boxes, this.depthAt(y), x);
    return box < 0 ? null : { node: this.boxes.node[box]!, type: this.boxes.type[box]!, x, y };
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
    if (hit.node !== this.zoomed || hit.type === BoxType.pruned) this.events.zoom(pathOf(this.tree, hit.node));
    this.redraw();
  }

  private wheel(event: WheelEvent): void {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (event.ctrlKey || event.metaKey) this.zoomWindow(Math.exp(event.deltaY * lines * WHEEL_ZOOM), event.offsetX / this.width);
    else if (sideways !== 0 && this.span !== wholeSpan) this.moveWindow((sideways * lines) / this.width);
    else return;
    event.preventDefault();
  }

  // Around a place of the window (0 left … 1 right).
  zoomWindow(factor: number, around: number): void {
    this.showSpan(widened(this.span, factor, Math.min(1, Math.max(0, around))));
  }

  // By a share of the window.
  moveWindow(share: number): void {
    this.showSpan(panned(this.span, share));
  }

  private showSpan(span: Span): void {
    this.span = span;
    this.animation = null;
    this.jump();
    this.redraw();
    clearTimeout(this.gesture);
    this.gesture = window.setTimeout(() => this.events.span(this.span), GESTURE_MS);
  }

  // Where the cursor is in the window; the middle when it is not in sight.
  private cursorPlace(): number {
    if (this.cursor < 0) return 0.5;
    const middle = this.tree.start[this.cursor]! + this.tree.total[this.cursor]! / 2;
    const place = (middle - this.from) / (this.to - this.from);
    return place >= 0 && place <= 1 ? place : 0.5;
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.cursor >= 0 ? this.cursor : this.zoomed;
    const tree = this.tree;
    const inward = this.upright ? 'ArrowUp' : 'ArrowDown';
    const outward = this.upright ? 'ArrowDown' : 'ArrowUp';
    switch (event.key) {
      case inward:
        this.move(largestChild(tree, at));
        break;
      case outward:
        this.move(at > 0 ? tree.parent[at]! : -1);
        break;
      case 'ArrowRight':
        this.move(tree.nextSibling[at]!);
        break;
      case 'ArrowLeft':
        this.move(this.previousSibling(at));
        break;
      case ' ':
      case 'Enter':
        this.events.zoom(pathOf(tree, at));
        break;
      case 's':
        if (at > 0) this.events.open(at);
        break;
      case 'c':
        if (at > 0) this.events.callers(at);
        break;
      case 'ContextMenu':
        this.menuAt(at);
        break;
      case 'F10':
        if (!event.shiftKey) return;
        this.menuAt(at);
        break;
      case '+':
      case '=':
        this.zoomWindow(0.5, this.cursorPlace());
        break;
      case '-':
        if (this.span.from === 0 && this.span.to === 1) this.events.zoom(pathOf(tree, tree.parent[this.zoomed]!));
        else this.zoomWindow(2, this.cursorPlace());
        break;
      case 'Escape':
        if (this.span.from === 0 && this.span.to === 1) return;
        this.showSpan(wholeSpan);
        break;
      case 'Home':
        this.move(0);
        this.events.zoom([]);
        break;
      default:
        return;
    }
    event.preventDefault();
  }

  private menuAt(node: number): void {
    this.cursor = node;
    this.scrollTo(node);
    this.events.menu({ node, type: BoxType.frame, ...this.cornerOf(node) });
  }

  // Where the frame's text begins, kept inside of the window.
  private cornerOf(node: number): { x: number; y: number } {
    const scale = this.width / (this.to - this.from);
    const x = (this.tree.start[node]! - this.from) * scale + 8;
    return { x: Math.min(this.width - 20, Math.max(8, x)), y: this.rowTop(this.tree.depth[node]!) + ROW };
  }

  private previousSibling(node: number): number {
    if (node === 0) return -1;
    let previous = -1;
    for (let child = this.tree.firstChild[this.tree.parent[node]!]!; child >= 0 && child !== node; child = this.tree.nextSibling[child]!)
      previous = child;
    return previous;
  }

  private move(node: number): void {
    if (node < 0) return;
    this.cursor = node;
    const left = this.tree.start[node]!;
    const right = left + this.tree.total[node]!;
    if (left < this.from || right > this.to) this.events.zoom(pathOf(this.tree, this.tree.parent[node]!));
    this.scrollTo(node);
    this.redraw();
    this.events.hover({ node, type: BoxType.frame, ...this.cornerOf(node) });
  }
}
