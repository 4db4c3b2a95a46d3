// The messages between the page and the RenderWorker (render_worker.ts): questions that are answered with trees, and scenes to draw.
// Plain values, so that either side can be in a worker.
import type { Fetched } from '../api/client';
import type { BaselineParams, Callers, ErrorBody, ShapeParams, ViewParams } from '../api/types';
import type { AnyCanvas } from './canvas';
import type { Scene, Seen } from './scene';
import type { Arrangement, FlameTree } from './tree';

export interface FlameQuestion {
  kind: 'flame';
  view: ViewParams;
  baseline: BaselineParams | null;
  shape: ShapeParams;
  path: readonly string[]; // of the zoomed frame; its subtree is requested in full
  keep: number; // the `base` of an earlier answer that is still valid: only the rest is fetched; 0: none
  arrangement: Arrangement;
}

export interface CallersQuestion {
  kind: 'callers';
  view: ViewParams;
  shape: ShapeParams;
  name: string;
  module: string;
  arrangement: Arrangement;
}

// An existing tree in another order.
export interface ArrangeQuestion {
  kind: 'arrange';
  tree: number;
  arrangement: Arrangement;
}

// Any other request to the server. The answer is its text.
export interface FetchQuestion {
  kind: 'fetch';
  path: string;
}

export type Question = FlameQuestion | CallersQuestion | ArrangeQuestion | FetchQuestion;

// The part of answers beside their trees.
export interface FlameHead {
  base: number; // see `keep`
  data_version: number;
  newest_ns: number;
  against: { session: string; data_version: number } | null; // the other side of a comparison
}
export type CallersHead = Omit<Callers, 'callers' | 'callees'>;

interface Heads {
  flame: FlameHead;
  callers: CallersHead; // the trees: of callers, of callees
  arrange: null;
  fetch: Fetched;
}
export interface Made<K extends Question['kind'] = Question['kind']> {
  head: Heads[K];
  trees: readonly FlameTree[];
}

export type ToWorker =
  | { type: 'ask'; id: number; question: Question; drop?: readonly number[] } // trees that are no longer shown
  | { type: 'abort'; id: number }
  | { type: 'canvas'; pane: number; canvas: AnyCanvas; overview: AnyCanvas }
  | { type: 'scene'; pane: number; scene: Scene; matches?: Uint8Array | null } // undefined: unchanged
  | { type: 'close'; pane: number };

export type FromWorker =
  | { type: 'ready'; draws: boolean } // first of all, from a worker
  | { type: 'made'; id: number; made: Made | null } // null: there is no data
  | { type: 'failed'; id: number; message: string; status?: number; body?: ErrorBody }
  | { type: 'drawn'; pane: number; seen: Seen | null }; // null: its tree is not there any more
