// The entry point of the page.
import './api/saved'; // first: it must answer requests before any module sends one
import { effect } from '@preact/signals';
import { render } from 'preact';
import { App } from './components/shell/App';
import { Message } from './components/widgets/Message';
import { fetchElsewhere } from './api/client';
import { workerClient } from './flame/worker_client';
import { exposeForTests } from './inspect';
import { listenForKeys } from './keys';
import { refreshOverview, startStream } from './store/live';
import { listenForPrinting } from './store/printing';
import { isSaved, openSaved } from './store/saved';
import { keepLooking, session } from './store/session';
import { sessionTitle } from './text/sessions';
import 'uplot/dist/uPlot.min.css';
import './styles/base.css';
import './styles/header.css';
import './styles/flame.css';
import './styles/tables.css';
import './styles/overlays.css';
import './styles/callers.css';
import './styles/code.css';
import './styles/modules.css';
import './styles/events.css';
import './styles/print.css';
import './styles/diff.css';
import './styles/wizard.css';

function start(): void {
  const client = workerClient(); // start early, so that the worker loads meanwhile
  fetchElsewhere((path, signal) => client.fetch(path, signal));
  startStream();
  if (!isSaved) keepLooking();
  void refreshOverview();
  listenForKeys();
  listenForPrinting();
  exposeForTests();
  effect(() => {
    const title = session.value ? `${sessionTitle(session.value)} – Flamewire` : 'Flamewire';
    if (document.title !== title) document.title = title;
  });
  render(<App />, document.getElementById('app')!);
}

if (isSaved)
  openSaved().then(start, (error: unknown) =>
    render(<Message title="This file is damaged">{String(error)}</Message>, document.getElementById('app')!),
  );
else start();
