// Draws boxes on a canvas. It handles colors and text, but neither input events nor data.
import type { Theme } from '../model/theme';
import type { Contrast } from '../model/baseline';
import type { Colouring } from '../model/view_state';
import { heatColour, heatStep, HEAT_STEPS, kinds, moduleColour, palette, shadeOf } from './colour';
import { diffPalette, DIFF_STEPS } from './difference';
import { contextOf, newCanvas, type AnyCanvas, type AnyContext } from './canvas';
import { BoxType, type Boxes } from './layout';
import { isMissingName, missingCallers } from './missing';
import { faded, over, pixelOf, Scanlines } from './scanlines';
import { ROW, rowTop, type Look, type Rows } from './scene';
import type { FlameTree } from './tree';
import { TextFit } from './text_fit';

const GAP = 1;
const PAD = 5;
const TEXT_FROM = 22; // narrower boxes get no name
const FONT = '12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const DIMMED = 0.22;
const MARK = 13; // width of the arrow that marks a change
const INLINED = kinds.indexOf('inlined');
const MARK_FROM = 46; // narrower boxes get no arrow

interface Ink {
  text: string;
  ancestor: number; // opacity of the ancestors of the zoomed frame
  ancestorText: string;
  outline: string;
  hover: string;
  small: string;
  hatch: string;
  edge: string;
}

const inks: Record<Theme, Ink> = {
  dark: {
    text: '#14110d',
    ancestor: 0.42,
    ancestorText: '#e3e8ee',
    outline: '#ffffff',
    hover: 'rgba(255,255,255,0.28)',
    small: 'rgba(224,170,110,0.30)',
    hatch: 'rgba(200,208,220,0.40)',
    edge: 'rgba(20,24,30,0.55)',
  },
  light: {
    text: '#1b1815',
    ancestor: 0.6,
    ancestorText: '#1b1815',
    outline: '#10151c',
    hover: 'rgba(255,255,255,0.42)',
    small: 'rgba(190,120,50,0.30)',
    hatch: 'rgba(70,80,95,0.42)',
    edge: 'rgba(60,50,40,0.30)',
  },
};

export class Painter {
  private readonly context: AnyContext;
  private colours: number[][] = []; // as pixel values, like moduleColours, heat and changes
  private theme: Theme = 'dark';
  private ratio = 1;
  private names: readonly string[] = [];
  private shades = new Uint8Array(0); // by name: shade + 1; 0: not computed yet
  private modules: readonly string[] = [];
  private moduleColours: number[] = [];
  private heat: number[] = [];
  private changes: number[] = [];
  private contrast: Contrast = 'red-blue';
  private hottest = -1; // largest self weight; below 0: not computed yet
  private mayMiss = new Uint8Array(0); // by name: 1 if its frames may be placeholders (missing.ts)
  private known: FlameTree | null = null;
  private readonly fitting: TextFit;
  private pattern: CanvasPattern | null = null;
  private image: ImageData | null = null;
  private lines: Scanlines | null = null; // a view of the image's bytes

  constructor(private readonly canvas: AnyCanvas) {
    const context = contextOf(canvas);
    this.context = context;
    this.fitting = new TextFit((text) => {
      context.font = FONT;
      return context.measureText(text).width;
    });
  }

  // The backing store has the resolution of the screen, so that the picture is sharp.
  resize(width: number, height: number, ratio: number): void {
    this.ratio = ratio;
    const w = Math.max(1, Math.round(width * ratio));
    const h = Math.max(1, Math.round(height * ratio));
    if (this.canvas.width !== w || this.canvas.height !== h) {
      this.canvas.width = w;
      this.canvas.height = h;
      this.pattern = null;
    }
  }

  // Updates the state that depends only on the tree.
  setTree(tree: FlameTree): void {
    if (tree === this.known) return;
    this.known = tree;
    this.names = tree.labels;
    this.shades = new Uint8Array(tree.names.length);
    this.mayMiss = Uint8Array.from(tree.names, (name) => (isMissingName(name) ? 1 : 0));
    this.modules = tree.modules;
    this.hottest = -1;
    this.setColours();
  }

  private setColours(): void {
    this.colours = palette(this.theme).map((shades) => shades.map(pixelOf));
    this.moduleColours = this.modules.map((module) => pixelOf(moduleColour(module, this.theme)));
    this.changes = diffPalette(this.theme, this.contrast).map(pixelOf);
    this.heat = Array.from({ length: HEAT_STEPS }, (_, step) => pixelOf(heatColour(step, this.theme)));
  }

  private isMissing(tree: FlameTree, node: number): boolean {
    return this.mayMiss[tree.name[node]!] === 1 && missingCallers(tree, node) !== null;
  }

  private fillOf(tree: FlameTree, node: number, colouring: Colouring): number {
    if (tree.diff) return this.changes[tree.diff.step[node]! + DIFF_STEPS]!;
    if (colouring === 'module') return this.moduleColours[tree.module[node]!] ?? pixelOf(this.rootColour());
    if (colouring === 'heat') {
      if (this.hottest < 0) this.hottest = tree.self.reduce((most, self) => Math.max(most, self), 0);
      return this.heat[heatStep(tree.self[node]!, this.hottest)]!;
    }
    return this.colours[tree.kind[node]!]![this.shade(tree, tree.name[node]!)]!;
  }

  // Computes shades on first use, because most names of a large tree are never drawn.
  private shade(tree: FlameTree, name: number): number {
    const known = this.shades[name]!;
    if (known > 0) return known - 1;
    const shade = shadeOf(tree.names[name]!);
    this.shades[name] = shade + 1;
    return shade;
  }

  // `matches`: by node; null: no search.
  draw(tree: FlameTree, boxes: Boxes, look: Look & Rows, matches: Uint8Array | null): void {
    const c = this.context;
    const ratio = this.ratio;
    if (look.theme !== this.theme || look.contrast !== this.contrast) {
      this.theme = look.theme;
      this.contrast = look.contrast;
      this.setColours();
      this.pattern = null;
    }
    const ink = inks[look.theme];
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.font = FONT;
    c.textBaseline = 'middle';
    const lines = this.emptyLines();
    const special = this.drawBoxes(lines, tree, boxes, look, matches, ink);
    lines.finish();
    c.putImageData(this.image!, 0, 0);
    for (const i of special) this.drawSpecial(tree, boxes, i, look, matches, ink);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawNames(tree, boxes, look, matches, ink, tree.depth[look.zoomed] ?? 0);
    c.globalAlpha = 1;
  }

  private emptyLines(): Scanlines {
    const { width, height } = this.canvas;
    if (!this.image || !this.lines || this.image.width !== width || this.image.height !== height) {
      this.image = this.context.createImageData(width, height);
      this.lines = new Scanlines(width, height, this.image.data.buffer);
    }
    this.lines.begin();
    return this.lines;
  }

  // [left, width, top, height] in whole screen pixels, so that the edges of neighbors are not blurred.
  private place(boxes: Boxes, i: number, look: Rows): [number, number, number, number] {
    const ratio = this.ratio;
    const left = Math.round(boxes.x[i]! * ratio);
    const right = Math.round((boxes.x[i]! + boxes.width[i]!) * ratio);
    const gap = right - left > 3 * ratio ? Math.max(1, Math.round(ratio)) : 0;
    return [
      left,
      Math.max(1, right - left - gap),
      Math.round(rowTop(look, boxes.depth[i]!) * ratio),
      Math.round((ROW - GAP) * ratio),
    ];
  }

  private opacity(tree: FlameTree, boxes: Boxes, i: number, look: Look, matches: Uint8Array | null, ink: Ink): number {
    if (boxes.type[i] !== BoxType.frame) return matches ? 0.5 : 1;
    if (matches !== null && matches[boxes.node[i]!] === 0) return DIMMED;
    return boxes.depth[i]! < (tree.depth[look.zoomed] ?? 0) ? ink.ancestor : 1;
  }

  // Returns the boxes that drawSpecial() must complete, because they need more than one color.
  private drawBoxes(
    lines: Scanlines,
    tree: FlameTree,
    boxes: Boxes,
    look: Look & Rows,
    matches: Uint8Array | null,
    ink: Ink,
  ): number[] {
    const special: number[] = [];
    const small = pixelOf(ink.small);
    const root = pixelOf(this.rootColour());
    const edge = pixelOf(ink.edge);
    const mark = Math.round(3 * this.ratio);
    for (let i = 0; i < boxes.count; i++) {
      const type = boxes.type[i];
      if (type === BoxType.pruned) {
        special.push(i);
        continue;
      }
      const [left, width, top, height] = this.place(boxes, i, look);
      const opacity = this.opacity(tree, boxes, i, look, matches, ink);
      if (type === BoxType.small) {
        lines.fill(left, left + width, top, height, opacity < 1 ? faded(small, opacity) : small);
        continue;
      }
      const node = boxes.node[i]!;
      const missing = this.isMissing(tree, node);
      let fill = node === 0 || missing ? root : this.fillOf(tree, node, look.colouring);
      if (opacity < 1) fill = faded(fill, opacity);
      if (node === look.hovered) fill = over(pixelOf(ink.hover), fill);
      lines.fill(left, left + width, top, height, fill);
      if (tree.kind[node] === INLINED && width > 8 * this.ratio)
        lines.fill(left, left + mark, top, height, over(faded(edge, opacity), fill));
      if (missing || node === look.current) special.push(i);
    }
    return special;
  }

  // Draws hatching and outlines on top of a box.
  private drawSpecial(
    tree: FlameTree,
    boxes: Boxes,
    i: number,
    look: Look & Rows,
    matches: Uint8Array | null,
    ink: Ink,
  ): void {
    const c = this.context;
    const ratio = this.ratio;
    const [left, width, top, height] = this.place(boxes, i, look);
    c.globalAlpha = this.opacity(tree, boxes, i, look, matches, ink);
    if (boxes.type[i] === BoxType.pruned) {
      c.fillStyle = this.hatch(ink);
      c.fillRect(left, top, width, height);
    } else if (this.isMissing(tree, boxes.node[i]!)) {
      this.drawMissing(left, top, width, height, ink);
    }
    c.globalAlpha = 1;
    if (boxes.type[i] !== BoxType.frame || boxes.node[i] !== look.current) return;
    c.strokeStyle = ink.outline;
    c.lineWidth = 2 * ratio;
    c.strokeRect(left + ratio, top + ratio, Math.max(1, width - 2 * ratio), height - 2 * ratio);
  }

  private drawNames(
    tree: FlameTree,
    boxes: Boxes,
    look: Look & Rows,
    matches: Uint8Array | null,
    ink: Ink,
    zoomDepth: number,
  ): void {
    const c = this.context;
    const faint = look.theme === 'dark' ? '#98a2b0' : '#6a7380';
    for (let i = 0; i < boxes.count; i++) {
      if (boxes.type[i] !== BoxType.frame || boxes.width[i]! < TEXT_FROM) continue;
      const node = boxes.node[i]!;
      const dim = matches !== null && matches[node] === 0;
      const step = tree.diff && node > 0 ? tree.diff.step[node]! : 0;
      // The arrow shows the direction of the change without relying on color.
      const mark = step !== 0 && boxes.width[i]! >= MARK_FROM ? (step > 0 ? '▲' : '▼') : '';
      const indent = mark ? MARK : 0;
      const text = this.fitting.fit(this.names[tree.label[node]!] ?? '', boxes.width[i]! - 2 * PAD - indent);
      if (!text) continue;
      const plain = node === 0 || this.isMissing(tree, node);
      c.fillStyle =
        dim || plain
          ? plain && !dim
            ? this.rootText()
            : faint
          : boxes.depth[i]! < zoomDepth
            ? ink.ancestorText
            : ink.text;
      const middle = rowTop(look, boxes.depth[i]!) + (ROW - GAP) / 2 + 0.5;
      if (mark) c.fillText(mark, boxes.x[i]! + PAD, middle);
      c.fillText(text, boxes.x[i]! + PAD + indent, middle);
    }
  }

  // A placeholder is not a function, so it is hatched and has a dashed edge.
  private drawMissing(left: number, top: number, width: number, height: number, ink: Ink): void {
    const c = this.context;
    c.fillStyle = this.hatch(ink);
    c.fillRect(left, top, width, height);
    if (width < 6 * this.ratio) return;
    c.strokeStyle = this.rootText();
    c.lineWidth = Math.max(1, this.ratio);
    c.setLineDash([4 * this.ratio, 3 * this.ratio]);
    c.strokeRect(left + this.ratio / 2, top + this.ratio / 2, width - this.ratio, height - this.ratio);
    c.setLineDash([]);
  }

  private rootColour(): string {
    return this.theme === 'dark' ? '#2b323d' : '#d5dae1';
  }
  private rootText(): string {
    return this.theme === 'dark' ? '#d7dde5' : '#20262e';
  }

  private hatch(ink: Ink): CanvasPattern | string {
    if (this.pattern) return this.pattern;
    const size = Math.round(6 * this.ratio);
    const tile = newCanvas(size, size);
    const t = contextOf(tile);
    t.strokeStyle = ink.hatch;
    t.lineWidth = Math.max(1, this.ratio);
    for (const shift of [-size, 0, size]) {
      t.beginPath();
      t.moveTo(shift, size);
      t.lineTo(shift + size, 0);
      t.stroke();
    }
    this.pattern = this.context.createPattern(tile, 'repeat');
    return this.pattern ?? ink.small;
  }
}
