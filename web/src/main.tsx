// Starts the page.
import { render } from 'preact';
import { App } from './components/App';
import { exposeForTests } from './inspect';
import { listenForKeys } from './keys';
import { refreshOverview, startStream } from './store/live';
import './styles/base.css';
import './styles/header.css';
import './styles/flame.css';
import './styles/tables.css';
import './styles/overlays.css';

startStream();
void refreshOverview();
listenForKeys();
exposeForTests();
render(<App />, document.getElementById('app')!);
