// Where the server searches symbols and sources. A change applies at once, also to running sessions.
import { useSignal } from '@preact/signals';
import { applyConfig, configDraft } from '../../store/configDraft';
import { closeDialog, closeIfOpen, dialog } from '../../store/ui';
import { Button } from '../widgets/Button';
import { ConfigForm } from '../agents/ConfigForm';
import { Modal } from '../widgets/Modal';

export function SettingsDialog() {
  const busy = useSignal(false);
  const apply = async () => {
    const shown = dialog.peek();
    busy.value = true;
    const done = await applyConfig();
    busy.value = false;
    if (done) closeIfOpen(shown);
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
          <Button kind="primary" title="Apply" disabled={busy.value || !configDraft.value} onClick={() => void apply()}>
            Apply
          </Button>
        </>
      }
    >
      <ConfigForm />
    </Modal>
  );
}
