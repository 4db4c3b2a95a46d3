// The page: header, notices, time axis, tabs with the chosen view, status bar.
import { streamState } from '../../store/live';
import { comparing } from '../../store/compare';
import { currentId, session, sessionError, sessionList } from '../../store/session';
import { openTab, tab } from '../../store/view';
import { Button } from '../widgets/Button';
import { CallersView } from '../flame/CallersView';
import { CountersView } from '../counters/CountersView';
import { Dialogs } from './Dialogs';
import { EventsView } from '../events/EventsView';
import { DiffFunctionsView } from '../functions/DiffFunctionsView';
import { FlameView } from '../flame/FlameView';
import { FunctionsView } from '../functions/FunctionsView';
import { Header } from './Header';
import { ImportProgress, useDroppedFiles } from '../sessions/ImportFile';
import { Failure, Message } from '../widgets/Message';
import { ModulesView } from '../modules/ModulesView';
import { Notices } from './Notices';
import { PrintHead } from './PrintHead';
import { SessionsView } from '../sessions/SessionsView';
import { SourceView } from '../source/SourceView';
import { StartScreen } from '../agents/StartScreen';
import { StatusBar } from './StatusBar';
import { Tabs } from './Tabs';
import { ThreadsView } from '../threads/ThreadsView';
import { Timeline } from '../timeline/Timeline';
import { Toasts } from './Toasts';

function View() {
  if (tab.value === 'sessions') return <SessionsView />;
  if (!currentId.value) {
    if (!sessionList.data.value && streamState.value !== 'lost')
      return <Message title="Connecting to the server" busy />;
    return <StartScreen />;
  }
  if (!session.value && sessionError.value) {
    return (
      <Failure error={sessionError.value}>
        <Button title="All sessions" onClick={() => openTab('sessions')}>
          All sessions
        </Button>
      </Failure>
    );
  }
  switch (tab.value) {
    case 'functions':
      return comparing.value ? <DiffFunctionsView /> : <FunctionsView />;
    case 'callers':
      return <CallersView />;
    case 'source':
      return <SourceView />;
    case 'threads':
      return <ThreadsView />;
    case 'counters':
      return <CountersView />;
    case 'events':
      return <EventsView />;
    case 'modules':
      return <ModulesView />;
    default:
      return <FlameView />;
  }
}

export function App() {
  const hasSession = currentId.value !== '';
  useDroppedFiles();
  return (
    <div class="page">
      <PrintHead />
      <Header />
      {streamState.value === 'lost' && (
        <div class="offline" role="alert">
          <span class="dot" /> The server does not answer. Trying again; the page shows the last data received.
        </div>
      )}
      <ImportProgress />
      <Notices />
      {hasSession && tab.value !== 'sessions' && <Timeline />}
      <Tabs />
      <main class="main" role="tabpanel" aria-labelledby={`tab-${tab.value}`}>
        <View />
      </main>
      <StatusBar />
      <Dialogs />
      <Toasts />
    </div>
  );
}
