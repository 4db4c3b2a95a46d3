// The minimap beside a deep flame graph. It shows the whole zoomed frame and marks the visible rows; a press scrolls there.
// The RenderWorker draws its picture (overview.ts).

// Show the minimap only if the content is more than this many times as high as the window. Otherwise scrolling is faster.
const WORTH = 1.5;

export class Minimap {
  readonly canvas = document.createElement('canvas');
  private readonly root = document.createElement('div');
  private readonly frame = document.createElement('div');
  private placed = '';

  constructor(private readonly scroller: HTMLElement) {
    this.root.className = 'minimap';
    this.root.hidden = true;
    this.root.setAttribute('aria-hidden', 'true'); // the keyboard scrolls the scroller itself
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

  // Places the minimap beside a window of `height` CSS pixels. False: the content is too low for a minimap.
  place(height: number, content: number, scrolled: number): boolean {
    const shown = height > 0 && content > height * WORTH;
    if (this.root.hidden === shown) {
      this.root.hidden = !shown;
      this.scroller.classList.toggle('beside-minimap', shown);
    }
    const placed = `${height}/${content}/${scrolled}`;
    if (!shown || placed === this.placed) return shown;
    this.placed = placed;
    const scale = height / content;
    this.canvas.style.height = `${height}px`;
    this.frame.style.height = `${Math.max(6, height * scale)}px`;
    this.frame.style.transform = `translateY(${scrolled * scale}px)`;
    return true;
  }

  private go(event: PointerEvent): void {
    const place = (event.clientY - this.root.getBoundingClientRect().top) / this.scroller.clientHeight;
    this.scroller.scrollTop = place * this.scroller.scrollHeight - this.scroller.clientHeight / 2;
  }
}
