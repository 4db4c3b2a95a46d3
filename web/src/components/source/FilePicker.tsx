// The source files of the profile, hottest first, with a search field.
import { useState } from 'preact/hooks';
import { sourceFile, sourceFiles } from '../../store/source';
import { setView } from '../../store/view';
import { percent, splitPath } from '../../text/format';
import { Icon } from '../widgets/Icon';
import { Popover } from '../widgets/Popover';
import { Share } from '../widgets/Share';

const SHOWN = 200;

function List({ close }: { close: () => void }) {
  const [text, setText] = useState('');
  const all = sourceFiles.data.value?.files ?? [];
  const wanted = text.toLowerCase();
  const kept = all.filter((file) => file.file.toLowerCase().includes(wanted));
  const open = (file: string) => {
    setView({ file, line: 0, codeOf: '', codeModule: '', address: null });
    close();
  };
  return (
    <>
      <input
        class="field"
        type="text"
        placeholder="Find a file"
        aria-label="Find a file"
        spellcheck={false}
        autofocus
        ref={(input) => input?.focus()}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === 'Enter' && kept[0] && open(kept[0].file)}
      />
      <ul class="file-list">
        {kept.slice(0, SHOWN).map((file) => {
          const { folder, file: name } = splitPath(file.file);
          return (
            <li key={file.file}>
              <button
                type="button"
                title={file.file}
                aria-current={file.file === sourceFile.value ? 'true' : undefined}
                onClick={() => open(file.file)}
              >
                <Share value={file.self_percent / 100} />
                <span class="file-name">{name}</span>
                <span class="faint ellipsis file-folder">{folder}</span>
              </button>
            </li>
          );
        })}
        {kept.length === 0 && <li class="faint pad">No file matches</li>}
        {kept.length > SHOWN && <li class="faint pad">{kept.length - SHOWN} more; type to find them</li>}
      </ul>
    </>
  );
}

export function FilePicker() {
  const file = sourceFile.value;
  const { folder, file: name } = splitPath(file);
  const heat = sourceFiles.data.value?.files.find((entry) => entry.file === file);
  return (
    <Popover
      id="file-picker"
      class="picker"
      panelClass="file-panel"
      title="Choose a source file"
      label={
        <>
          <Icon name="code" />
          <strong>{name || 'Choose a file'}</strong>
          <span class="faint ellipsis">{folder}</span>
          {heat && <span class="faint">{percent(heat.self_percent / 100)} self</span>}
          <Icon name="down" />
        </>
      }
    >
      {(close) => <List close={close} />}
    </Popover>
  );
}
