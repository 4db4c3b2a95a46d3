// Starts the page.
import { effect } from '@preact/signals';
import { render } from 'preact';
import { App } from './components/App';
import { exposeForTests } from './inspect';
import { listenForKeys } from './keys';
import { refreshOverview, startStream } from './store/live';
import { session } from './store/session';
import 'uplot/dist/uPlot.min.css';
import './styles/base.css';
import './styles/header.css';
import './styles/flame.css';
import './styles/tables.css';
import './styles/overlays.css';
import './styles/callers.css';
import './styles/code.css';

startStream();
void refreshOverview();
listenForKeys();
exposeForTests();
effect(() => {
  const target = session.value?.target;
  document.title = target ? `${target} – Flamewire` : 'Flamewire';
});
render(<App />, document.getElementById('app')!);
