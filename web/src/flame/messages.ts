// What the page and the workshop (workshop.ts) say to each other: questions whose answers are trees, and scenes that are to be
// drawn. Plain values, so that either side can be a worker.
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
  path: readonly string[]; // of the zoomed frame, which is wanted in full
  keep: number; // the `base` of an earlier answer that still holds: only what it lacks is fetched; 0: none
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

// A tree that is there, in another order.
export interface ArrangeQuestion {
  kind: 'arrange';
  tree: number;
  arrangement: Arrangement;
}

// What the page asks the server besides, of which it wants the text as it is.
export interface FetchQuestion {
  kind: 'fetch';
  path: string;
}

export type Question = FlameQuestion | CallersQuestion | ArrangeQuestion | FetchQuestion;

// What answers have besides their trees.
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

export type ToWorkshop =
  | { type: 'ask'; id: number; question: Question; drop?: readonly number[] } // trees that nobody shows any more
  | { type: 'abort'; id: number }
  | { type: 'canvas'; pane: number; canvas: AnyCanvas; overview: AnyCanvas }
  | { type: 'scene'; pane: number; scene: Scene; matches?: Uint8Array | null } // without: as they were
  | { type: 'close'; pane: number };

export type FromWorkshop =
  | { type: 'ready'; draws: boolean } // first of all, from a worker
  | { type: 'made'; id: number; made: Made | null } // null: there is no data
  | { type: 'failed'; id: number; message: string; status?: number; body?: ErrorBody }
  | { type: 'drawn'; pane: number; seen: Seen | null }; // null: its tree is not there any more
