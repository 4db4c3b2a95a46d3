// Where the server looks for symbols and sources. A change takes effect at once, also for sessions that run.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Config, ConfigPatch } from '../api/types';
import { changeConfig, readConfig } from '../store/actions';
import { closeDialog, toast } from '../store/ui';
import { Button } from './Button';
import { Message } from './Message';
import { Modal } from './Modal';

const lines = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

// Only what differs is sent.
function difference(old: Config, binaries: string, maps: string, folder: string, sysroot: string, inline: boolean): ConfigPatch {
  const patch: ConfigPatch = {};
  if (lines(binaries).join('\n') !== old.binaries.join('\n')) patch.binaries = lines(binaries);
  if (lines(maps).join('\n') !== old.path_map.join('\n')) patch.path_map = lines(maps);
  if (folder.trim() !== old.source_dir) patch.source_dir = folder.trim();
  if (sysroot.trim() !== old.sysroot) patch.sysroot = sysroot.trim();
  if (inline !== old.inline) patch.inline = inline;
  return patch;
}

export function SettingsDialog() {
  const config = useSignal<Config | null>(null);
  const binaries = useSignal('');
  const maps = useSignal('');
  const folder = useSignal('');
  const sysroot = useSignal('');
  const inline = useSignal(true);
  const busy = useSignal(false);
  const take = (fresh: Config) => {
    config.value = fresh;
    binaries.value = fresh.binaries.join('\n');
    maps.value = fresh.path_map.join('\n');
    folder.value = fresh.source_dir;
    sysroot.value = fresh.sysroot;
    inline.value = fresh.inline;
  };
  useEffect(() => {
    void readConfig().then((fresh) => (fresh ? take(fresh) : closeDialog()));
  }, []);
  const apply = async () => {
    if (!config.value) return;
    const patch = difference(config.value, binaries.value, maps.value, folder.value, sysroot.value, inline.value);
    if (Object.keys(patch).length === 0) {
      closeDialog();
      return;
    }
    busy.value = true;
    const fresh = await changeConfig(patch);
    busy.value = false;
    if (!fresh) return;
    if ((fresh.notes ?? []).length === 0) toast('Symbols are being read anew');
    closeDialog();
  };
  return (
    <Modal
      title="Symbols and sources"
      class="settings-dialog"
      footer={
        <>
          <span class="spacer" />
          <Button title="Close" onClick={closeDialog}>
            Cancel
          </Button>
          <Button kind="primary" title="Apply" disabled={busy.value || !config.value} onClick={() => void apply()}>
            Apply
          </Button>
        </>
      }
    >
      {!config.value ? (
        <Message title="Reading the configuration" busy />
      ) : (
        <form class="settings" onSubmit={(event) => event.preventDefault()}>
          <label>
            Unstripped files
            <span class="faint">Files on the server with symbols and debug info, one a line. They must fit by their build-id.</span>
            <textarea class="field mono" rows={3} spellcheck={false} value={binaries.value} onInput={(event) => (binaries.value = event.currentTarget.value)} />
          </label>
          <label>
            Sysroot
            <span class="faint">A copy of the target’s root, for its shared libraries and their sources.</span>
            <input class="field mono" type="text" spellcheck={false} value={sysroot.value} onInput={(event) => (sysroot.value = event.currentTarget.value)} />
          </label>
          <label>
            Source folder
            <span class="faint">Searched for files whose path ends as the debug info says.</span>
            <input class="field mono" type="text" spellcheck={false} value={folder.value} onInput={(event) => (folder.value = event.currentTarget.value)} />
          </label>
          <label>
            Path maps
            <span class="faint">FROM=TO, one a line: where the program was built, and where that is on the server.</span>
            <textarea class="field mono" rows={3} spellcheck={false} value={maps.value} onInput={(event) => (maps.value = event.currentTarget.value)} />
          </label>
          <label class="check">
            <input type="checkbox" checked={inline.value} onChange={(event) => (inline.value = event.currentTarget.checked)} />
            Show inlined functions as frames of their own
          </label>
        </form>
      )}
    </Modal>
  );
}
