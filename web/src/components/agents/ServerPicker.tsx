// A picker of files and folders on the server's machine. It shows only what --browse-root allows.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Browse, BrowseEntry } from '../../api/types';
import { browse } from '../../store/actions';
import { canChoose, canOpen, crumbs, entryNote, join, type Wanted } from '../../text/browse';
import { count } from '../../text/format';
import { Button } from '../widgets/Button';
import { Icon } from '../widgets/Icon';

interface Props {
  wanted: Wanted;
  start: string;
  onChoose: (path: string) => void;
  onClose: () => void;
}

function Entry({ entry, wanted, act }: { entry: BrowseEntry; wanted: Wanted; act: () => void }) {
  const usable = canOpen(entry) || canChoose(entry, wanted);
  return (
    <li>
      <button type="button" disabled={!usable} title={entry.name} onClick={act}>
        <Icon name={entry.kind === 'folder' ? 'folder' : 'file'} />
        <span class="ellipsis">{entry.name}</span>
        <span class="faint picker-note">{entryNote(entry)}</span>
      </button>
    </li>
  );
}

export function ServerPicker({ wanted, start, onChoose, onClose }: Props) {
  const path = useSignal(start);
  const text = useSignal('');
  const listing = useSignal<Browse | null>(null);
  const problem = useSignal('');
  const list = useRef<HTMLUListElement>(null);
  const field = useRef<HTMLInputElement>(null);

  useEffect(() => {
    const abort = new AbortController();
    const look = async () => {
      const answer = await browse(path.value, text.value, abort.signal);
      if (abort.signal.aborted) return;
      if ('problem' in answer) {
        problem.value = answer.problem;
        // A mistyped path must not hide the whole listing.
        if (!listing.value && path.value) path.value = '';
        return;
      }
      problem.value = '';
      listing.value = answer;
    };
    void look();
    return () => abort.abort();
  }, [path.value, text.value]);
  useEffect(() => field.current?.focus(), []);

  const go = (to: string) => {
    text.value = '';
    path.value = to;
    field.current?.focus();
  };
  const act = (entry: BrowseEntry) => {
    const whole = join(listing.value?.path ?? '', entry.name);
    if (canOpen(entry)) go(whole);
    else if (canChoose(entry, wanted)) onChoose(whole);
  };
  const keys = (event: KeyboardEvent) => {
    const buttons = [...(list.current?.querySelectorAll<HTMLButtonElement>('button:not(:disabled)') ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    if (event.key === 'ArrowDown') buttons[Math.min(buttons.length - 1, at + 1)]?.focus();
    else if (event.key === 'ArrowUp') (at > 0 ? buttons[at - 1] : field.current)?.focus();
    else if (event.key === 'Escape') onClose();
    else if (event.key === 'Enter' && event.target === field.current) buttons[0]?.click();
    else if (event.key === 'Backspace' && event.target !== field.current && listing.value?.parent)
      go(listing.value.parent);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const shown = listing.value;
  return (
    <section
      class="server-picker"
      aria-label={wanted === 'file' ? 'Choose a file on the server' : 'Choose a folder on the server'}
      onKeyDown={keys}
    >
      <div class="picker-head">
        <nav class="crumbs" aria-label="Folder">
          <Button kind="ghost" title="All folders that may be shown" onClick={() => go('')}>
            Server
          </Button>
          {shown &&
            crumbs(shown).map((crumb) => (
              <Button key={crumb.path} kind="ghost" title={crumb.path} onClick={() => go(crumb.path)}>
                {crumb.name}
              </Button>
            ))}
        </nav>
        <Button icon="close" kind="ghost" title="Close the picker" onClick={onClose} />
      </div>
      <input
        class="field"
        ref={field}
        type="text"
        placeholder="Find a name here"
        aria-label="Find a name here"
        spellcheck={false}
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
      {problem.value && (
        <p class="note note-error" role="alert">
          {problem.value}
        </p>
      )}
      <ul class="picker-list" ref={list}>
        {shown?.entries.map((entry) => (
          <Entry key={entry.name} entry={entry} wanted={wanted} act={() => act(entry)} />
        ))}
        {shown && shown.entries.length === 0 && (
          <li class="faint pad">
            {shown.roots.length === 0
              ? 'This server shows no folders: start it with --browse-root DIR'
              : 'Nothing here'}
          </li>
        )}
        {shown && shown.left_out > 0 && <li class="faint pad">{count(shown.left_out)} more; type to find them</li>}
      </ul>
      {wanted === 'folder' && (
        <div class="picker-foot">
          <Button
            title="Take the folder that is shown"
            disabled={!shown?.path}
            onClick={() => onChoose(shown?.path ?? '')}
          >
            Use this folder
          </Button>
        </div>
      )}
    </section>
  );
}
