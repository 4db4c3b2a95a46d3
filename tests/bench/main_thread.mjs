// The CPU time of a page's main thread by activity, from Chromium's trace: the page's own code and the browser's work.

const groups = [
  ['own code', /^(FunctionCall|RunMicrotasks|BlinkScheduler_PerformMicrotaskCheckpoint|v8\.|EvaluateScript|TimerFire|FireAnimationFrame|EventDispatch|XHR)/],
  ['garbage', /^(V8\.GC|MinorGC|MajorGC|BlinkGC)/],
  // Without a GPU the renderer itself draws canvases and copies them to the screen.
  ['canvas', /^(Canvas|LayerTreeHost::DoUpdateLayers)/],
  ['style, layout, paint', /^(Document::|LocalFrameView|Layout|UpdateLayoutTree|InlineNode|Paint|PrePaint|Blink\.|Layerize|Commit|ProxyMain|WebFrameWidget|AnimationTimeline|HitTest|ParseHTML|ScrollLayer)/],
  ['incoming answers', /^(Response|TextResourceDecoder|Resource|SimpleWatcher|URLLoader|Xhr|MojoURL)/],
];

// Runs `act` under a trace. Returns the total CPU ms of each group and of the rest ("browser's own").
export async function mainThread(browser, page, act) {
  await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline', 'v8', 'blink', 'cc', 'loading', 'disabled-by-default-v8.gc', 'disabled-by-default-devtools.timeline'] });
  await act();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const thread = (event) => `${event.pid}/${event.tid}`;
  const mains = new Set(traceEvents.filter((event) => event.name === 'thread_name' && event.args.name === 'CrRendererMain').map(thread));
  const byThread = new Map();
  for (const event of traceEvents) {
    if (event.ph !== 'X' || event.tdur === undefined || !mains.has(thread(event))) continue;
    if (!byThread.has(thread(event))) byThread.set(thread(event), []);
    byThread.get(thread(event)).push(event);
  }
  // Spare renderers have only a few events.
  const events = [...byThread.values()].sort((a, b) => b.length - a.length)[0] ?? [];
  events.sort((a, b) => a.ts - b.ts || b.dur - a.dur);
  const spent = Object.fromEntries([...groups.map(([name]) => [name, 0]), ["browser's own", 0]]);
  const groupOf = (event) => groups.find(([, names]) => names.test(event.name))?.[0];
  const open = [];
  for (const event of events) {
    while (open.length > 0 && open.at(-1).end <= event.ts) open.pop();
    const above = open.at(-1);
    // An event that matches no group belongs to the group of the event that contains it.
    const group = groupOf(event) ?? above?.group ?? "browser's own";
    spent[group] += event.tdur / 1000;
    if (above) spent[above.group] -= event.tdur / 1000;
    open.push({ end: event.ts + event.dur, group });
  }
  return spent;
}
