// The messages between the page and the RenderWorker (render_worker.ts): requests for trees, and scenes to draw. All are plain
// values, so that the RenderWorker can run in a worker.
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
  path: readonly string[]; // to the zoomed frame, whose complete subtree is requested
  keep: number; // `base` of an earlier answer that is still valid, so that only the subtree is fetched; 0: none
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

// An existing tree with another arrangement.
export interface ArrangeQuestion {
  kind: 'arrange';
  tree: number;
  arrangement: Arrangement;
}

// Any other request to the server. The answer is the text of the response.
export interface FetchQuestion {
  kind: 'fetch';
  path: string;
}

export type Question = FlameQuestion | CallersQuestion | ArrangeQuestion | FetchQuestion;

// The part of an answer without its trees.
export interface FlameHead {
  base: number; // see `keep`
  data_version: number;
  newest_ns: number;
  against: { session: string; data_version: number } | null; // the other side of a comparison
}
export type CallersHead = Omit<Callers, 'callers' | 'callees'>;

interface Heads {
  flame: FlameHead;
  callers: CallersHead; // with two trees: callers, then callees
  arrange: null;
  fetch: Fetched;
}
export interface Made<K extends Question['kind'] = Question['kind']> {
  head: Heads[K];
  trees: readonly FlameTree[];
}

export type ToWorker =
  | { type: 'ask'; id: number; question: Question; drop?: readonly number[] } // drop: ids of trees that are no longer shown
  | { type: 'abort'; id: number }
  | { type: 'canvas'; pane: number; canvas: AnyCanvas; overview: AnyCanvas }
  | { type: 'scene'; pane: number; scene: Scene; matches?: Uint8Array | null } // matches undefined: unchanged
  | { type: 'close'; pane: number };

export type FromWorker =
  | { type: 'ready'; draws: boolean } // the first message of a worker
  | { type: 'made'; id: number; made: Made | null } // null: there is no data
  | { type: 'failed'; id: number; message: string; status?: number; body?: ErrorBody }
  | { type: 'drawn'; pane: number; seen: Seen | null }; // null: the tree was dropped
