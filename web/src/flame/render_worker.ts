// Fetches answers, builds flame graph trees from them, and draws scenes on the canvases of the page. It runs in a worker, so that
// the page stays responsive (worker.ts), or in the page if there are no workers (worker_client.ts). It does not keep view state:
// each scene contains the whole view state.
import { ApiError, fetchText } from '../api/client';
import type { FlameGraph } from '../api/types';
import { Answers } from './answers';
import type { FromWorker, Made, Question, ToWorker } from './messages';
import { OverviewPicture } from './overview';
import { Picture } from './picture';
import type { Scene, Seen } from './scene';
import type { Merge } from '../model/view_state';
import { buildTree, type Arrangement, type FlameTree } from './tree';

// The page drops trees that it no longer shows. This limit applies if it does not drop all of them.
const MOST_TREES = 24;

interface Source {
  graph: FlameGraph;
  merge: Merge;
  root: string; // label of the root
}

interface Pane {
  picture: Picture;
  overview: OverviewPicture;
  matches: Uint8Array | null;
}

export class RenderWorker {
  private readonly answers = new Answers();
  private readonly trees = new Map<number, { tree: FlameTree; source: Source }>();
  private readonly flights = new Map<number, AbortController>();
  private readonly panes = new Map<number, Pane>();
  private lastTree = 0;

  constructor(private readonly send: (message: FromWorker) => void) {}

  receive(message: ToWorker): void {
    switch (message.type) {
      case 'ask':
        for (const tree of message.drop ?? []) this.trees.delete(tree);
        void this.answer(message.id, message.question);
        return;
      case 'abort':
        this.flights.get(message.id)?.abort();
        return;
      case 'canvas':
        this.panes.set(message.pane, {
          picture: new Picture(message.canvas),
          overview: new OverviewPicture(message.overview),
          matches: null,
        });
        return;
      case 'scene': {
        const pane = this.panes.get(message.pane);
        if (pane && message.matches !== undefined) pane.matches = message.matches;
        let seen: Seen | null = null;
        try {
          if (pane) seen = this.draw(pane, message.scene);
        } finally {
          this.send({ type: 'drawn', pane: message.pane, seen }); // the page waits for this message
        }
        return;
      }
      case 'close':
        this.panes.delete(message.pane);
        return;
    }
  }

  private draw(pane: Pane, scene: Scene): Seen | null {
    const tree = this.trees.get(scene.tree)?.tree;
    if (!tree) return null;
    pane.overview.draw(tree, scene);
    return { tree: tree.id, boxes: pane.picture.draw(tree, scene, pane.matches) };
  }

  private async answer(id: number, question: Question): Promise<void> {
    const flight = new AbortController();
    this.flights.set(id, flight);
    try {
      const made = await this.make(question, flight.signal);
      this.send({ type: 'made', id, made });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.send(
        error instanceof ApiError
          ? { type: 'failed', id, message, status: error.status, body: error.body }
          : { type: 'failed', id, message },
      );
    } finally {
      this.flights.delete(id);
    }
  }

  private async make(question: Question, signal: AbortSignal): Promise<Made | null> {
    switch (question.kind) {
      case 'flame': {
        const answer = await this.answers.flame(question, signal);
        if (!answer || signal.aborted) return null;
        const { head, graph } = answer;
        if (graph.nodes.parent.length === 0) return { head, trees: [] };
        return { head, trees: [this.build({ graph, merge: question.shape.merge, root: 'all' }, question.arrangement)] };
      }
      case 'callers': {
        const answer = await this.answers.callers(question, signal);
        if (!answer || signal.aborted) return null;
        const tree = (graph: FlameGraph) =>
          this.build({ graph, merge: question.shape.merge, root: question.name }, question.arrangement);
        return { head: answer.head, trees: [tree(answer.callers), tree(answer.callees)] };
      }
      case 'fetch':
        return { head: await fetchText(question.path, { signal }), trees: [] };
      case 'arrange': {
        const source = this.trees.get(question.tree)?.source;
        return source ? { head: null, trees: [this.build(source, question.arrangement)] } : null;
      }
    }
  }

  private build(source: Source, { order, width }: Arrangement): FlameTree {
    const id = ++this.lastTree;
    const tree: FlameTree = { ...buildTree(source.graph, order, source.merge, source.root, width), id };
    this.trees.set(id, { tree, source });
    for (const oldest of this.trees.keys()) {
      if (this.trees.size <= MOST_TREES) break;
      this.trees.delete(oldest);
    }
    return tree;
  }
}
