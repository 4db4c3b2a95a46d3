// Confirms the permanent deletion of a recording.
import type { Session } from '../../api/types';
import { deleteSession } from '../../store/actions';
import { closeDialog } from '../../store/ui';
import { bytes, clock, count } from '../../text/format';
import { sessionTitle } from '../../text/sessions';
import { Button } from '../widgets/Button';
import { Modal } from '../widgets/Modal';

export function DeleteDialog({ session }: { session: Session }) {
  return (
    <Modal
      title="Delete this session?"
      class="small-dialog"
      footer={
        <>
          <span class="spacer" />
          <Button title="Keep it" onClick={closeDialog}>
            Keep it
          </Button>
          <Button
            id="confirm-delete"
            icon="trash"
            kind="danger"
            title="Delete it from the server's disk"
            onClick={() => {
              closeDialog();
              void deleteSession(session);
            }}
          >
            Delete
          </Button>
        </>
      }
    >
      <p>
        <strong>{sessionTitle(session)}</strong> of {clock(session.started)}, {count(session.samples)} samples,{' '}
        {bytes(session.size_bytes)}. It is removed from the server’s disk and cannot be restored.
        {session.keep && ' It is pinned, so that no rule deletes it.'}
      </p>
    </Modal>
  );
}
