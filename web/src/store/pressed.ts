// Rows keep their place while one is pressed. If a new order moved them before the release, the browser would
// send the click to the row that is there by then, or to none.
const ROWS = '.rows-content, tbody, li';
// Rows of these lists also react to a double click, whose second press must reach the same row.
const DOUBLE = '.rows-content';
const DOUBLE_CLICK_MS = 500;

let pressed: Promise<void> | null = null;
let release = () => {};
let timer = 0;

// Resolves when no row is pressed.
export async function rowsReleased(): Promise<void> {
  while (pressed) await pressed;
}

function press(event: PointerEvent): void {
  const target = event.target as Partial<Element> | null;
  if (event.button !== 0 || !target?.closest?.(ROWS)) return;
  clearTimeout(timer);
  pressed ??= new Promise((resolve) => {
    release = () => {
      pressed = null;
      resolve();
    };
  });
  const wait = target.closest(DOUBLE) ? DOUBLE_CLICK_MS : 0;
  const end = () => {
    document.removeEventListener('pointerup', end, true);
    document.removeEventListener('pointercancel', end, true);
    // The click event precedes the timer, even if `wait` is 0.
    clearTimeout(timer);
    timer = window.setTimeout(release, wait);
  };
  document.addEventListener('pointerup', end, true);
  document.addEventListener('pointercancel', end, true);
}

document.addEventListener('pointerdown', press, true);
