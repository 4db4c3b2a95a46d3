// The entry of the page's worker: passes messages to and from a RenderWorker.
import type { ToWorker } from './messages';
import { Packer } from './transfer';
import { RenderWorker } from './render_worker';

interface WorkerScope {
  onmessage: ((event: MessageEvent<ToWorker[]>) => void) | null;
  postMessage(message: unknown, transfer: Transferable[]): void;
}
const scope = globalThis as unknown as WorkerScope;

const packer = new Packer();
const renderWorker = new RenderWorker((message) => {
  const { packed, buffers } = packer.pack(message);
  scope.postMessage(packed, buffers);
});

// Some browsers support workers and OffscreenCanvas, but not a 2D context in a worker.
function canDraw(): boolean {
  try {
    return new OffscreenCanvas(1, 1).getContext('2d') !== null;
  } catch {
    return false;
  }
}

scope.onmessage = (event) => {
  for (const message of event.data) renderWorker.receive(message);
};
scope.postMessage({ type: 'ready', draws: canDraw() }, []);
