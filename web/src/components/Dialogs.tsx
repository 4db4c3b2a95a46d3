// The one dialog that is open, if any.
import { dialog } from '../store/ui';
import { DeleteDialog } from './DeleteDialog';
import { HelpDialog } from './HelpDialog';
import { ProcessDialog } from './ProcessDialog';
import { SettingsDialog } from './SettingsDialog';

export function Dialogs() {
  const open = dialog.value;
  switch (open.kind) {
    case 'process':
      return <ProcessDialog agent={open.agent} />;
    case 'help':
      return <HelpDialog />;
    case 'settings':
      return <SettingsDialog />;
    case 'delete':
      return <DeleteDialog session={open.session} />;
    default:
      return null;
  }
}
