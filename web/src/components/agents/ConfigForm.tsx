// Fields for where the server searches symbols and sources, each with a picker of files on its machine.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect } from 'preact/hooks';
import { addBinary, configDraft, configProblem, editConfig, loadConfig } from '../../store/configDraft';
import { lines } from '../../text/config';
import type { Wanted } from '../../text/browse';
import { Button } from '../widgets/Button';
import { Message } from '../widgets/Message';
import { ServerPicker } from './ServerPicker';

interface FieldProps {
  title: string;
  about: string;
  wanted: Wanted;
  start: string;
  onChoose: (path: string) => void;
  children: ComponentChildren;
}

function Field({ title, about, wanted, start, onChoose, children }: FieldProps) {
  const open = useSignal(false);
  return (
    <div class="picked">
      <div class="picked-row">
        <label>
          {title}
          <span class="faint">{about}</span>
          {children}
        </label>
        <Button
          title={`Choose on the server: ${title}`}
          pressed={open.value}
          onClick={() => (open.value = !open.value)}
        >
          Choose
        </Button>
      </div>
      {open.value && (
        <ServerPicker
          wanted={wanted}
          start={start}
          onClose={() => (open.value = false)}
          onChoose={(path) => {
            onChoose(path);
            open.value = false;
          }}
        />
      )}
    </div>
  );
}

export function ConfigForm() {
  const draft = configDraft.value;
  // Load before the first paint: fields from an earlier visit must not be seen or applied.
  useLayoutEffect(() => void loadConfig(), []);
  if (configProblem.value)
    return (
      <div class="message message-error" role="alert">
        <h3>Cannot read the configuration</h3>
        <p>{configProblem.value}</p>
        <Button title="Ask the server again" onClick={() => void loadConfig()}>
          Try again
        </Button>
      </div>
    );
  if (!draft) return <Message title="Reading the configuration" busy />;
  const absolute = (path: string) => (path.startsWith('/') ? path : '');
  return (
    <form class="settings" onSubmit={(event) => event.preventDefault()}>
      <Field
        title="Unstripped files"
        about="Files on the server with symbols and debug info, one a line. They must fit by their build-id."
        wanted="file"
        start={absolute(lines(draft.binaries).at(-1) ?? '')}
        onChoose={addBinary}
      >
        <textarea
          class="field mono"
          rows={3}
          spellcheck={false}
          value={draft.binaries}
          onInput={(event) => editConfig({ binaries: event.currentTarget.value })}
        />
      </Field>
      <Field
        title="Sysroot"
        about="A copy of the target’s root, for its shared libraries and their sources."
        wanted="folder"
        start={absolute(draft.sysroot)}
        onChoose={(sysroot) => editConfig({ sysroot })}
      >
        <input
          class="field mono"
          type="text"
          spellcheck={false}
          value={draft.sysroot}
          onInput={(event) => editConfig({ sysroot: event.currentTarget.value })}
        />
      </Field>
      <Field
        title="Source folder"
        about="Files are searched whose path ends as in the debug info."
        wanted="folder"
        start={absolute(draft.folder)}
        onChoose={(folder) => editConfig({ folder })}
      >
        <input
          class="field mono"
          type="text"
          spellcheck={false}
          value={draft.folder}
          onInput={(event) => editConfig({ folder: event.currentTarget.value })}
        />
      </Field>
      <label>
        Path maps
        <span class="faint">FROM=TO, one a line: where the program was built, and where that is on the server.</span>
        <textarea
          class="field mono"
          rows={3}
          spellcheck={false}
          value={draft.maps}
          onInput={(event) => editConfig({ maps: event.currentTarget.value })}
        />
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={draft.inline}
          onChange={(event) => editConfig({ inline: event.currentTarget.checked })}
        />
        Show inlined functions as frames of their own
      </label>
    </form>
  );
}
