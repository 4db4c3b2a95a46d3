// The page's end of the workshop: asks it for trees, and hands canvases over to it. The workshop is in a worker where the browser
// has what that needs; else, and in a page that is one file, the same workshop works here and answers at once.
import { ApiError, type Fetched } from '../api/client';
import { served } from '../api/place';
import { isSaved } from '../api/saved';
import type { FromWorkshop, Made, Question, ToWorkshop } from './messages';
import { Unpacker, type Parcel } from './parcel';
import type { Scene, Seen } from './scene';
import { Workshop } from './workshop';

const SCRIPT = served('/flame.js');

function startWorker(): Worker | null {
  const able =
    !isSaved &&
    typeof Worker === 'function' &&
    typeof OffscreenCanvas === 'function' &&
    'transferControlToOffscreen' in HTMLCanvasElement.prototype;
  try {
    return able ? new Worker(SCRIPT, { name: 'flame' }) : null;
  } catch {
    return null; // a policy of the browser
  }
}

interface Asked {
  question: Question;
  resolve: (made: Made | null) => void;
  reject: (reason: unknown) => void;
}

export class Link {
  private worker: Worker | null;
  private workshop: Workshop | null = null; // when it is here
  private readonly asked = new Map<number, Asked>();
  private readonly easels = new Map<number, Easel>();
  private dropped: number[] = [];
  private last = 0;
  private ready = false; // the worker is there
  private unsaid: ToWorkshop[] = [];
  private handed: Transferable[] = []; // with what is unsaid

  constructor(make: () => Worker | null = startWorker) {
    this.worker = make();
    if (!this.worker) {
      this.stayHere();
      return;
    }
    const unpacker = new Unpacker();
    this.worker.onmessage = (event: MessageEvent<Parcel>) => this.hear(unpacker.unpack(event.data));
    // Before it is ready: it could not be loaded. Later errors concern one message, and it goes on.
    this.worker.onerror = () => !this.ready && this.stayHere();
  }

  // Null when there is no data. Trees belong to who asked, who drops them.
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
          this.say({ type: 'abort', id });
          reject(signal.reason);
        },
        { once: true },
      );
      const drop = this.dropped;
      this.dropped = [];
      this.say({ type: 'ask', id, question, drop });
    }) as Promise<Made<K> | null>;
  }

  // By the worker; null: there is none, or not yet.
  fetch(path: string, signal?: AbortSignal): Promise<Fetched> | null {
    return this.ready ? this.ask({ kind: 'fetch', path }, signal).then((made) => made!.head) : null;
  }

  // Said with the next question: a message wakes the worker.
  drop(tree: number): void {
    this.dropped.push(tree);
  }

  // Both canvases are the workshop's from now on. `drawn` hears of every scene what is on the canvas then; null: nothing new.
  easel(canvas: HTMLCanvasElement, overview: HTMLCanvasElement, drawn: (seen: Seen | null) => void): Easel {
    const pane = ++this.last;
    const easel = new Easel(
      (message) => this.say(message),
      pane,
      drawn,
      () => this.easels.delete(pane),
    );
    this.easels.set(pane, easel);
    if (this.worker) {
      const [graph, small] = [canvas.transferControlToOffscreen(), overview.transferControlToOffscreen()];
      this.say({ type: 'canvas', pane, canvas: graph, overview: small }, [graph, small]);
    } else this.say({ type: 'canvas', pane, canvas, overview });
    return easel;
  }

  // To a worker all that is said in one go is one message: each wakes it, and that costs this thread.
  private say(message: ToWorkshop, transfer: Transferable[] = []): void {
    if (!this.worker) {
      this.workshop?.hear(message);
      return;
    }
    if (this.unsaid.length === 0) queueMicrotask(() => this.flush());
    this.unsaid.push(message);
    this.handed.push(...transfer);
  }

  private flush(): void {
    const [messages, transfer] = [this.unsaid, this.handed];
    this.unsaid = [];
    this.handed = [];
    if (messages.length > 0) this.worker?.postMessage(messages, transfer);
  }

  // What was asked meanwhile is asked here. No canvas was handed over: that needs a tree, and so an answer.
  private stayHere(): void {
    this.worker?.terminate();
    this.worker = null;
    this.unsaid = [];
    this.workshop = new Workshop((message) => this.hear(message));
    for (const [id, { question }] of this.asked) this.say({ type: 'ask', id, question });
  }

  private hear(message: FromWorkshop): void {
    switch (message.type) {
      case 'ready':
        if (message.draws) this.ready = true;
        else this.stayHere();
        return;
      case 'drawn':
        this.easels.get(message.pane)?.drew(message.seen);
        return;
      case 'made': {
        const asked = this.asked.get(message.id);
        // Nobody waits for it any more.
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

// A canvas that scenes are drawn on, one at a time: while one is under way, the next waits for it.
export class Easel {
  private busy = false;
  private matches: Uint8Array | null = null;

  constructor(
    private readonly say: (message: ToWorkshop) => void,
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
    this.say({ type: 'scene', pane: this.pane, scene, ...news });
  }

  drew(seen: Seen | null): void {
    this.busy = false;
    this.drawn(seen);
  }

  close(): void {
    this.say({ type: 'close', pane: this.pane });
    this.closed();
  }
}

let link: Link | null = null;
// One for the whole page.
export const workshop = (): Link => (link ??= new Link());
