// Server-sent events over one connection per browser. Tabs elect a leader over a BroadcastChannel; the leader holds the
// EventSource and relays messages. A lost message is harmless, because every view refetches its data after a gap.
import { serverUrl } from './base_url';
import { streamNames, type StreamEvents, type StreamName } from './types';

export type StreamState = 'connecting' | 'open' | 'lost';

export interface StreamHandlers {
  event<K extends StreamName>(name: K, data: StreamEvents[K]): void;
  state(state: StreamState): void;
  // The stream is open, possibly again: fetch everything that may have been missed.
  resync(): void;
}

type Message =
  | { type: 'join' }
  | { type: 'claim'; term: number; id: string }
  | { type: 'beat'; term: number; id: string; state: StreamState }
  | { type: 'resign'; term: number }
  | { type: 'event'; name: StreamName; data: unknown };

const BEAT_MS = 1000;
// Browsers limit the timers of hidden tabs to one call per second, so a live leader may be this late.
const LEADER_GONE_MS = 3500;
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 5000;

export class Stream {
  private readonly id = Math.random().toString(36).slice(2);
  private readonly channel: BroadcastChannel | null;
  private source: EventSource | null = null;
  private leading = false;
  private term = 0;
  private lastBeat = 0;
  private retryMs = RETRY_MIN_MS;
  private retryTimer = 0;
  private current: StreamState = 'connecting';
  private alone = true; // no message from another tab has arrived, so nothing needs relaying

  constructor(
    private readonly url: string,
    private readonly handlers: StreamHandlers,
  ) {
    this.channel =
      typeof BroadcastChannel === 'function' ? new BroadcastChannel(`flamewire-stream${serverUrl('/')}`) : null;
  }

  start(): void {
    if (!this.channel) {
      this.lead();
      return;
    }
    this.channel.onmessage = (message) => this.receive(message.data as Message);
    this.lastBeat = performance.now();
    // A leader answers `join` at once. Without an answer, the first tab claims the lead after this delay.
    setTimeout(() => !this.leading && this.current === 'connecting' && this.term === 0 && this.claim(), 120);
    this.post({ type: 'join' });
    setInterval(() => this.tick(), BEAT_MS);
    addEventListener('pagehide', () => {
      if (this.leading) this.post({ type: 'resign', term: this.term });
      this.follow();
    });
    addEventListener('pageshow', (shown) => shown.persisted && this.claim());
  }

  get isLeader(): boolean {
    return this.leading;
  }

  private post(message: Message): void {
    if (!this.alone || message.type === 'join' || message.type === 'claim') this.channel?.postMessage(message);
  }

  private tick(): void {
    if (this.leading) this.post({ type: 'beat', term: this.term, id: this.id, state: this.current });
    else if (performance.now() - this.lastBeat > LEADER_GONE_MS) this.claim();
  }

  // The higher term wins; two claims of one term are settled by id, so exactly one tab keeps the connection.
  private claim(): void {
    this.term += 1;
    this.post({ type: 'claim', term: this.term, id: this.id });
    this.lead();
  }

  private lead(): void {
    if (this.leading) return;
    this.leading = true;
    this.connect();
  }

  private follow(): void {
    this.leading = false;
    clearTimeout(this.retryTimer);
    this.source?.close();
    this.source = null;
  }

  private receive(message: Message): void {
    this.alone = false;
    switch (message.type) {
      case 'join':
        if (this.leading) this.tick();
        return;
      case 'claim':
        if (this.leading && (message.term > this.term || (message.term === this.term && message.id < this.id)))
          this.follow();
        else if (this.leading) this.post({ type: 'claim', term: this.term, id: this.id });
        this.term = Math.max(this.term, message.term);
        this.lastBeat = performance.now();
        return;
      case 'beat':
        if (message.term < this.term) return;
        if (this.leading && message.id !== this.id && (message.term > this.term || message.id < this.id)) this.follow();
        this.term = message.term;
        this.lastBeat = performance.now();
        if (!this.leading) this.setState(message.state);
        return;
      case 'resign':
        // Random delays keep tabs from claiming at once: the first claim stops the others.
        setTimeout(() => performance.now() - this.lastBeat > BEAT_MS / 4 && this.claim(), 50 + Math.random() * 200);
        this.lastBeat = performance.now() - BEAT_MS;
        return;
      case 'event':
        this.lastBeat = performance.now();
        this.handlers.event(message.name, message.data as never);
        return;
    }
  }

  private connect(): void {
    this.setState(this.current === 'lost' ? 'lost' : 'connecting');
    const source = new EventSource(serverUrl(this.url));
    this.source = source;
    source.onopen = () => {
      this.retryMs = RETRY_MIN_MS;
      this.setState('open');
      this.tick();
    };
    source.onerror = () => {
      source.close();
      if (this.source !== source) return;
      this.source = null;
      this.setState('lost');
      this.tick();
      this.retryTimer = window.setTimeout(() => this.leading && this.connect(), this.retryMs);
      this.retryMs = Math.min(RETRY_MAX_MS, this.retryMs * 2);
    };
    for (const name of streamNames) {
      source.addEventListener(name, (event) => {
        let data: unknown;
        try {
          data = JSON.parse((event as MessageEvent<string>).data);
        } catch {
          return;
        }
        this.handlers.event(name, data as never);
        this.post({ type: 'event', name, data });
      });
    }
  }

  private setState(state: StreamState): void {
    if (state === this.current) return;
    this.current = state;
    this.handlers.state(state);
    if (state === 'open') this.handlers.resync();
  }
}
