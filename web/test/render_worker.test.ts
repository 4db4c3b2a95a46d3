// RenderWorker and WorkerClient: answers, trees and drawings are the same with a worker and within the page.
// structuredClone simulates a worker, because that is how messages to workers are copied.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { ApiError } from '../src/api/client';
import type { FlameGraph } from '../src/api/types';
import { WorkerClient } from '../src/flame/worker_client';
import type { FlameQuestion, ToWorker } from '../src/flame/messages';
import { Packer, Unpacker, type Transfer } from '../src/flame/transfer';
import type { Scene, Seen } from '../src/flame/scene';
import { TextsIn, TextsOut } from '../src/flame/texts';
import { buildTree, type FlameTree } from '../src/flame/tree';
import { RenderWorker } from '../src/flame/render_worker';
import { graphOf } from './graph';

// The next answers of the server, and the requests that it got.
let answers: Array<FlameGraph | Promise<FlameGraph> | { status: number; code: string }> = [];
let asked: URL[] = [];
beforeEach(() => {
  answers = [];
  asked = [];
});
globalThis.fetch = (async (path: string) => {
  asked.push(new URL(path, 'http://test'));
  const answer = await answers.shift()!;
  if ('code' in answer)
    return Response.json({ error: { code: answer.code, message: 'so it is' } }, { status: answer.status });
  return Response.json(answer);
}) as typeof fetch;

// A canvas that records what is drawn on it. Letters are 7 wide.
function canvasOf(drawn: string[]) {
  const state: Record<string, unknown> = {};
  const recorded = ['fillRect', 'fillText', 'strokeRect'];
  let pixels = 0; // identified by their sum
  const context = new Proxy(state, {
    get: (_, name: string) => {
      if (name === 'measureText') return (text: string) => ({ width: 7 * text.length });
      if (name === 'createPattern') return () => 'hatch';
      if (name === 'createImageData')
        return (width: number, height: number) => ({ width, height, data: new Uint8ClampedArray(4 * width * height) });
      if (name === 'putImageData')
        return ({ data }: ImageData) => {
          pixels = data.reduce((sum, byte, at) => (sum + byte * (at % 8191)) % 1e9, 0);
          drawn.push(`putImageData ${pixels}`);
        };
      if (name in state) return state[name];
      return (...values: unknown[]) =>
        recorded.includes(name) && drawn.push(`${name} ${values.join(' ')} ${String(state.fillStyle)}`);
    },
  });
  return {
    width: 0,
    height: 0,
    getContext: () => context,
    transferControlToOffscreen() {
      return this;
    },
  } as unknown as HTMLCanvasElement;
}

// A simulated worker: messages are cloned, except canvases, which a browser transfers.
class CloneWorker extends EventTarget {
  onmessage: ((event: MessageEvent<Transfer>) => void) | null = null;
  onerror: (() => void) | null = null;
  crossed: ToWorker[] = [];
  posted = 0;
  private readonly packer = new Packer();
  private readonly renderWorker = new RenderWorker((message) => {
    const { packed, buffers } = this.packer.pack(message);
    this.onmessage?.({ data: structuredClone(packed, { transfer: buffers }) } as MessageEvent<Transfer>);
  });
  postMessage(messages: ToWorker[]): void {
    this.posted++;
    for (const message of messages) {
      const crossing = message.type === 'canvas' ? message : structuredClone(message);
      this.crossed.push(crossing);
      this.renderWorker.receive(crossing);
    }
  }
  terminate(): void {}
}
const apart = () => {
  const worker = new CloneWorker();
  return { worker, client: new WorkerClient(() => worker as unknown as Worker) };
};
const here = () => new WorkerClient(() => null);

const question = (more: Partial<FlameQuestion> = {}): FlameQuestion & { kind: 'flame' } => ({
  kind: 'flame',
  view: { session: 's' },
  baseline: null,
  shape: { inverted: false, merge: 'function', collapse: false, hidden: [] },
  path: [],
  keep: 0,
  arrangement: { order: 'name', width: 'view' },
  ...more,
});
const stacks = { main: 10, 'main;b': 20, 'main;b;leaf': 30, 'main;a': 25, idle: 15 };

// The content of a tree's nodes, with texts instead of their ids.
const contents = (tree: FlameTree) => ({
  ...tree,
  id: 0,
  names: 0,
  modules: 0,
  files: 0,
  labels: 0,
  name: Array.from(tree.name, (at) => tree.names[at]),
  label: Array.from(tree.label, (at) => tree.labels[at]),
  module: Array.from(tree.module, (at) => tree.modules[at]),
  file: Array.from(tree.file, (at) => tree.files[at]),
});
const sceneOf = (tree: FlameTree): Scene => ({
  tree: tree.id,
  theme: 'dark',
  colouring: 'kind',
  contrast: 'red-blue',
  current: -1,
  hovered: -1,
  zoomed: 0,
  upright: true,
  content: 400,
  scrolled: 200,
  from: 0,
  to: tree.total[0]!,
  width: 300,
  height: 200,
  ratio: 1.5,
  overview: { from: 0, to: tree.total[0]!, rows: 4 },
});

test('texts are sent once, and a table that gets too large starts again', () => {
  const out = new TextsOut();
  const into = new TextsIn();
  const first = out.put(['all', 'main', 'all']);
  assert.deepEqual([...first.places], [0, 1, 0]);
  assert.deepEqual(first.news, { from: 0, added: ['all', 'main'] });
  const before = into.take(first.news);
  const second = out.put(['idle', 'main']);
  assert.deepEqual([...second.places], [2, 1]);
  assert.deepEqual(second.news, { from: 2, added: ['idle'] });
  assert.deepEqual(into.take(second.news), ['all', 'main', 'idle']);
  into.take(out.put(Array.from({ length: 5000 }, (_, i) => `f${i}`)).news);
  // The table has 5,003 texts, and this answer needs none of them.
  const third = out.put(['new']);
  assert.deepEqual(third.news, { from: 0, added: ['new'] });
  assert.deepEqual(into.take(third.news), ['new']);
  assert.equal(before[1], 'main'); // earlier results stay valid
});

test('a tree is the same on the other side, with or without separate labels', () => {
  const graph = graphOf(stacks);
  graph.nodes.line = graph.nodes.line.map((_, node) => node);
  const packer = new Packer();
  const unpacker = new Unpacker();
  for (const merge of ['function', 'line', 'function'] as const) {
    const tree = { ...buildTree(graph, 'name', merge), id: 7 };
    const { packed, buffers } = packer.pack({ type: 'made', id: 1, made: { head: null, trees: [tree] } });
    const arrived = unpacker.unpack(structuredClone(packed, { transfer: buffers }));
    assert.ok(arrived.type === 'made' && arrived.made);
    const [copy] = arrived.made.trees;
    assert.equal(copy!.id, 7);
    assert.deepEqual(contents(copy!), contents(tree));
    assert.equal(tree.total[0], 100); // the worker's copy is complete
  }
});

test('trees, boxes and drawings are the same with and without a worker', async () => {
  const results = [];
  for (const client of [apart().client, here()]) {
    const drawn: string[] = [];
    const heard: Array<Seen | null> = [];
    answers = [graphOf(stacks)];
    const made = await client.ask(question());
    const tree = made!.trees[0]!;
    const handle = client.attachCanvas(canvasOf(drawn), canvasOf(drawn), (seen) => heard.push(seen));
    handle.draw(sceneOf(tree), null);
    await Promise.resolve(); // sends messages that belong together
    const matches = new Uint8Array(tree.size);
    matches[1] = 1;
    handle.draw(sceneOf(tree), matches);
    await Promise.resolve();
    const boxes = heard.map((seen) =>
      Array.from({ length: seen!.boxes.count }, (_, i) => [
        seen!.boxes.node[i],
        seen!.boxes.depth[i],
        seen!.boxes.x[i],
        seen!.boxes.width[i],
      ]),
    );
    results.push({ head: made!.head, tree: contents(tree), boxes, drawn });
  }
  assert.deepEqual(results[0], results[1]);
  // idle 15 and main 85 of 100 on 300 pixels. Scrolled to the end, the root is at the bottom, at 180 of 200, and main
  // is above it. Text starts 5 pixels from a frame's edge.
  const first = results[0]!.boxes[0]!.map(([, depth, x, width]) => [depth, x, width]);
  for (const box of [
    [0, 0, 300],
    [1, 0, 45],
    [1, 45, 255],
  ])
    assert.ok(
      first.some((other) => other.every((value, i) => value === box[i])),
      String(box),
    );
  assert.ok(
    results[0]!.drawn.some((line) => line.startsWith('fillText main 50 170')),
    results[0]!.drawn.join('\n'),
  );
});

test('matches are only sent if they changed', async () => {
  const { worker, client } = apart();
  answers = [graphOf(stacks)];
  const tree = (await client.ask(question()))!.trees[0]!;
  const handle = client.attachCanvas(canvasOf([]), canvasOf([]), () => {});
  const matches = new Uint8Array(tree.size);
  const before = worker.posted;
  for (const found of [null, matches, matches, null]) handle.draw(sceneOf(tree), found);
  await Promise.resolve();
  assert.equal(worker.posted, before + 1); // one message for both
  const scenes = worker.crossed.filter((message) => message.type === 'scene');
  assert.deepEqual(
    scenes.map(({ matches: news }) => news),
    [undefined, matches, undefined, null],
  );
});

test('without a worker, because it cannot be loaded, the page answers itself', async () => {
  const worker = Object.assign(new EventTarget(), { postMessage() {}, terminate() {}, onerror: () => {} });
  const client = new WorkerClient(() => worker as unknown as Worker);
  answers = [graphOf(stacks)];
  const made = client.ask(question());
  worker.onerror();
  assert.equal((await made)!.trees[0]!.total[0], 100);
});

test('without a worker, because it cannot draw on canvases, the page answers itself', async () => {
  const worker = Object.assign(new EventTarget(), {
    postMessage() {},
    terminate() {},
    onmessage: (_: { data: Transfer }) => {},
  });
  const client = new WorkerClient(() => worker as unknown as Worker);
  answers = [graphOf(stacks)];
  const made = client.ask(question());
  worker.onmessage({ data: { type: 'ready', draws: false } });
  assert.equal((await made)!.trees[0]!.total[0], 100);
});

test('results that are no longer needed are released', async () => {
  const { worker, client } = apart();
  let arrive: (graph: FlameGraph) => void = () => {};
  answers = [new Promise((resolve) => (arrive = resolve))];
  const abort = new AbortController();
  const made = client.ask(question(), abort.signal);
  abort.abort();
  await assert.rejects(made, { name: 'AbortError' });
  arrive(graphOf(stacks));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(
    worker.crossed.map(({ type }) => type),
    ['ask', 'abort'],
  );
  await assert.rejects(client.ask(question(), abort.signal), { name: 'AbortError' });
});

test('errors of the server keep their type, and missing samples mean no data', async () => {
  for (const client of [apart().client, here()]) {
    answers = [{ status: 500, code: 'internal' }];
    await assert.rejects(
      client.ask(question()),
      (error: unknown) =>
        error instanceof ApiError && error.status === 500 && error.code === 'internal' && error.message === 'so it is',
    );
    answers = [{ status: 404, code: 'no_data' }];
    assert.equal(await client.ask(question()), null);
  }
});

test('other answers pass through an existing worker unchanged', async () => {
  const { worker, client } = apart();
  assert.equal(client.fetch('/api/status'), null);
  worker.onmessage!({ data: { type: 'ready', draws: true } } as MessageEvent<Transfer>);
  answers = [{ status: 404, code: 'not_found' }];
  assert.deepEqual(await client.fetch('/api/status?x=1'), {
    status: 404,
    text: '{"error":{"code":"not_found","message":"so it is"}}',
  });
  assert.equal(asked[0]!.search, '?x=1');
  assert.equal(here().fetch('/api/status'), null);
});

test('another order needs no request, and a dropped tree has no order', async () => {
  const { client } = apart();
  answers = [graphOf(stacks)];
  const tree = (await client.ask(question()))!.trees[0]!;
  const other = (await client.ask({ kind: 'arrange', tree: tree.id, arrangement: { order: 'weight', width: 'view' } }))!
    .trees[0]!;
  assert.equal(asked.length, 1);
  const first = (of: FlameTree) => of.names[of.name[of.firstChild[0]!]!];
  assert.deepEqual([first(tree), first(other), other.arrangement.order], ['idle', 'main', 'weight']);
  const heard: Array<Seen | null> = [];
  const handle = client.attachCanvas(canvasOf([]), canvasOf([]), (seen) => heard.push(seen));
  client.drop(tree.id);
  handle.draw(sceneOf(tree), null); // the tree still exists: the drop is sent with the next question
  assert.equal(
    await client.ask({ kind: 'arrange', tree: tree.id, arrangement: { order: 'name', width: 'view' } }),
    null,
  );
  handle.draw(sceneOf(tree), null);
  handle.draw(sceneOf(other), null);
  await Promise.resolve();
  assert.deepEqual(
    heard.map((seen) => seen && seen.tree),
    [tree.id, null, other.id],
  );
  assert.equal(handle.isBusy, false);
});

test('a zoom fetches only its subtree if the rest is still valid', async () => {
  const { client } = apart();
  const base = graphOf({ main: 10, 'main;big': 60 }, { main: { weight: 30, count: 7 } });
  answers = [base];
  const whole = await client.ask(question());
  answers = [{ ...graphOf({ '': 10, big: 60, small: 30 }), names: ['main', 'big', 'small'] }];
  const zoomed = await client.ask(question({ path: ['main'], keep: whole!.head.base }));
  assert.deepEqual(
    asked.map((url) => url.searchParams.get('path')),
    [null, 'main'],
  );
  assert.equal(zoomed!.head.base, whole!.head.base);
  const { names, name } = zoomed!.trees[0]!;
  assert.deepEqual(
    Array.from(name, (at) => names[at]),
    ['all', 'main', 'big', 'small'],
  );
  // A complete subtree is not requested again, except if it is no longer valid.
  answers = [graphOf(stacks)];
  await client.ask(question({ path: ['main', 'big'], keep: whole!.head.base }));
  await client.ask(question({ path: ['main'], keep: 0 }));
  assert.deepEqual(
    asked.map((url) => url.searchParams.get('path')),
    [null, 'main', null],
  );
});
