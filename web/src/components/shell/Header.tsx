// The header: the shown session, the recording controls and the connection.
import { isSaved } from '../../store/saved';
import { theme, toggleTheme } from '../../store/theme';
import { dialog } from '../../store/ui';
import { Button } from '../widgets/Button';
import { Connection } from '../agents/Connection';
import { FilterBar } from './FilterBar';
import { RecordControls } from '../recording/RecordControls';
import { SessionMenu } from '../sessions/SessionMenu';

function Logo() {
  return (
    <a class="logo" href="#flame" title="Flamewire: follow what is live">
      <svg viewBox="0 0 16 16" width="20" height="20" aria-hidden="true">
        <path fill="#e8731a" d="M1 2h14v3H1z" />
        <path fill="#f29b3c" d="M1 6h9v3H1z" />
        <path fill="#f7c46c" d="M1 10h6v3H1z" />
        <path fill="#4f9fd9" d="M11 6h4v3h-4z" />
      </svg>
      <span>Flamewire</span>
    </a>
  );
}

export function Header() {
  return (
    <header class="header">
      <Logo />
      <SessionMenu />
      <FilterBar />
      <span class="spacer" />
      <RecordControls />
      <Connection />
      <div class="button-group">
        <Button
          id="theme"
          icon={theme.value === 'dark' ? 'sun' : 'moon'}
          kind="ghost"
          title={theme.value === 'dark' ? 'Light theme (T)' : 'Dark theme (T)'}
          onClick={toggleTheme}
        />
        {!isSaved && (
          <Button
            id="guide"
            icon="guide"
            kind="ghost"
            title="Guide: connect, choose, start (G)"
            onClick={() => (dialog.value = { kind: 'wizard' })}
          />
        )}
        {!isSaved && (
          <Button
            icon="sliders"
            kind="ghost"
            title="Symbols and sources"
            onClick={() => (dialog.value = { kind: 'settings' })}
          />
        )}
        <Button icon="help" kind="ghost" title="Help (?)" onClick={() => (dialog.value = { kind: 'help' })} />
      </div>
    </header>
  );
}
