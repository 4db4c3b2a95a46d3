// The page's side of the RenderWorker: requests trees, and transfers canvases to it. It runs in a worker if the browser supports
// that. Otherwise, and in a page that is one file, the same class runs in the page and answers immediately.
import { ApiError, type Fetched } from '../api/client';
import { serverUrl } from '../api/base_url';
import { isSaved } from '../api/saved';
import type { FromWorker, Made, Question, ToWorker } from './messages';
import { Unpacker, type Transfer } from './transfer';
import type { Scene, Seen } from './scene';
import { RenderWorker } from './render_worker';

const SCRIPT = serverUrl('/flame.js');

function startWorker(): Worker | null {
  const able =
    !isSaved &&
    typeof Worker === 'function' &&
    typeof OffscreenCanvas === 'function' &&
    'transferControlToOffscreen' in HTMLCanvasElement.prototype;
  try {
    return able ? new Worker(SCRIPT, { name: 'flame' }) : null;
  } catch {
    return null; // a browser policy forbids workers
  }
}

interface Asked {
  question: Question;
  resolve: (made: Made | null) => void;
  reject: (reason: unknown) => void;
}

export class WorkerClient {
  private worker: Worker | null;
  private renderWorker: RenderWorker | null = null; // if it runs in the page
  private readonly asked = new Map<number, Asked>();
  private readonly handles = new Map<number, CanvasHandle>();
  private dropped: number[] = [];
  private last = 0;
  private ready = false; // the worker runs
  private queued: ToWorker[] = [];
  private queuedBuffers: Transferable[] = []; // belong to `queued`

  constructor(make: () => Worker | null = startWorker) {
    this.worker = make();
    if (!this.worker) {
      this.runInPage();
      return;
    }
    const unpacker = new Unpacker();
    this.worker.onmessage = (event: MessageEvent<Transfer>) => this.receive(unpacker.unpack(event.data));
    // An error before the worker is ready means that its script could not be loaded. A later error concerns a single message.
    this.worker.onerror = () => !this.ready && this.runInPage();
  }

  // Null: there is no data. The caller owns the trees and must drop them.
  ask<K extends Question['kind']>(question: Question & { kind: K }, signal?: AbortSignal): Promise<Made<K> | null> {
    const id = ++this.last;
    return new Promise<Made | null>((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      this.asked.set(id, { question, resolve, reject });
      signal?.addEventListener(
        'abort',
        () => {
          if (!this.asked.delete(id)) return;
          this.send({ type: 'abort', id });
          reject(signal.reason);
        },
        { once: true },
      );
      const drop = this.dropped;
      this.dropped = [];
      this.send({ type: 'ask', id, question, drop });
    }) as Promise<Made<K> | null>;
  }

  // Fetches in the worker. Null: there is no worker, or not yet.
  fetch(path: string, signal?: AbortSignal): Promise<Fetched> | null {
    return this.ready ? this.ask({ kind: 'fetch', path }, signal).then((made) => made!.head) : null;
  }

  // Sends the id with the next question, because each message wakes the worker.
  drop(tree: number): void {
    this.dropped.push(tree);
  }

  // Transfers both canvases to the RenderWorker. It calls `drawn` after each scene with the canvas content; null: no change.
  attachCanvas(
    canvas: HTMLCanvasElement,
    overview: HTMLCanvasElement,
    drawn: (seen: Seen | null) => void,
  ): CanvasHandle {
    const pane = ++this.last;
    const handle = new CanvasHandle(
      (message) => this.send(message),
      pane,
      drawn,
      () => this.handles.delete(pane),
    );
    this.handles.set(pane, handle);
    if (this.worker) {
      const [graph, small] = [canvas.transferControlToOffscreen(), overview.transferControlToOffscreen()];
      this.send({ type: 'canvas', pane, canvas: graph, overview: small }, [graph, small]);
    } else this.send({ type: 'canvas', pane, canvas, overview });
    return handle;
  }

  // Sends all messages of a task to the worker as one, because each message wakes the worker and costs time in this thread.
  private send(message: ToWorker, transfer: Transferable[] = []): void {
    if (!this.worker) {
      this.renderWorker?.receive(message);
      return;
    }
    if (this.queued.length === 0) queueMicrotask(() => this.flush());
    this.queued.push(message);
    this.queuedBuffers.push(...transfer);
  }

  private flush(): void {
    const [messages, transfer] = [this.queued, this.queuedBuffers];
    this.queued = [];
    this.queuedBuffers = [];
    if (messages.length > 0) this.worker?.postMessage(messages, transfer);
  }

  // Repeats pending questions. No canvas was transferred yet, because that needs a tree, and so an answer.
  private runInPage(): void {
    this.worker?.terminate();
    this.worker = null;
    this.queued = [];
    this.renderWorker = new RenderWorker((message) => this.receive(message));
    for (const [id, { question }] of this.asked) this.send({ type: 'ask', id, question });
  }

  private receive(message: FromWorker): void {
    switch (message.type) {
      case 'ready':
        if (message.draws) this.ready = true;
        else this.runInPage();
        return;
      case 'drawn':
        this.handles.get(message.pane)?.onDrawn(message.seen);
        return;
      case 'made': {
        const asked = this.asked.get(message.id);
        // The request was aborted.
        if (!asked) for (const tree of message.made?.trees ?? []) this.drop(tree.id);
        this.asked.delete(message.id);
        asked?.resolve(message.made);
        return;
      }
      case 'failed': {
        const { id, message: text, status, body } = message;
        this.asked.get(id)?.reject(status !== undefined && body ? new ApiError(status, body) : new Error(text));
        this.asked.delete(id);
        return;
      }
    }
  }
}

// The page's handle of a transferred canvas. Scenes are drawn one at a time: while it is busy, the caller keeps the next scene.
export class CanvasHandle {
  private busy = false;
  private matches: Uint8Array | null = null;

  constructor(
    private readonly send: (message: ToWorker) => void,
    private readonly pane: number,
    private readonly drawn: (seen: Seen | null) => void,
    private readonly closed: () => void,
  ) {}

  get isBusy(): boolean {
    return this.busy;
  }

  draw(scene: Scene, matches: Uint8Array | null): void {
    this.busy = true;
    const news = matches === this.matches ? {} : { matches };
    this.matches = matches;
    this.send({ type: 'scene', pane: this.pane, scene, ...news });
  }

  onDrawn(seen: Seen | null): void {
    this.busy = false;
    this.drawn(seen);
  }

  close(): void {
    this.send({ type: 'close', pane: this.pane });
    this.closed();
  }
}

let client: WorkerClient | null = null;
// The only client of the page.
export const workerClient = (): WorkerClient => (client ??= new WorkerClient());
