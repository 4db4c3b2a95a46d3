// Chooses a file of another tool and shows the progress of its import. Dropping a file on the page has the same effect.
import { useEffect } from 'preact/hooks';

import { importFile, importing, stopImport } from '../../store/imports';
import { bytes, percent } from '../../text/format';
import { Button } from '../widgets/Button';

export function ImportButton() {
  const now = importing.value;
  return (
    <label class="button" title="Folded stacks (stackcollapse), or a recording of flamewire-agent --output">
      Import a file
      <input
        class="visually-hidden"
        type="file"
        disabled={now !== null && now.stage !== 'failed'}
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          event.currentTarget.value = '';
          if (file) void importFile(file);
        }}
      />
    </label>
  );
}

export function ImportProgress() {
  const now = importing.value;
  if (!now) return null;
  if (now.stage === 'failed')
    return (
      <div class="import import-failed" role="alert">
        <span>
          {now.name} was not imported: {now.error}
        </span>
        <Button kind="plain" icon="close" title="Close" onClick={stopImport} />
      </div>
    );
  return (
    <div class="import" role="status">
      <span>
        {now.stage === 'sending' ? 'Sending' : 'Reading'} {now.name}: {bytes(now.done)} of {bytes(now.size)}
      </span>
      <progress max={Math.max(now.size, 1)} value={now.done}>
        {percent(now.done / Math.max(now.size, 1))}
      </progress>
      <Button title="Cancel the import; nothing of it stays on the server" onClick={stopImport}>
        Cancel
      </Button>
    </div>
  );
}

const carriesFile = (event: DragEvent) => event.dataTransfer?.types.includes('Files') === true;

export function useDroppedFiles(): void {
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (carriesFile(event)) event.preventDefault();
    };
    const drop = (event: DragEvent) => {
      const file = event.dataTransfer?.files[0];
      if (event.defaultPrevented || !carriesFile(event)) return;
      event.preventDefault();
      if (file) void importFile(file);
    };
    addEventListener('dragover', over);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragover', over);
      removeEventListener('drop', drop);
    };
  }, []);
}
