// The worker of the page: a workshop at the other end of the messages.
import type { ToWorkshop } from './messages';
import { Packer } from './parcel';
import { Workshop } from './workshop';

interface WorkerScope {
  onmessage: ((event: MessageEvent<ToWorkshop[]>) => void) | null;
  postMessage(message: unknown, transfer: Transferable[]): void;
}
const scope = globalThis as unknown as WorkerScope;

const packer = new Packer();
const workshop = new Workshop((message) => {
  const { parcel, transfer } = packer.pack(message);
  scope.postMessage(parcel, transfer);
});

// Some browsers have workers and canvases in them, but not this kind.
function canDraw(): boolean {
  try {
    return new OffscreenCanvas(1, 1).getContext('2d') !== null;
  } catch {
    return false;
  }
}

scope.onmessage = (event) => {
  for (const message of event.data) workshop.hear(message);
};
scope.postMessage({ type: 'ready', draws: canDraw() }, []);
