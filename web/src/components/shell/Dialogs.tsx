// The open dialog, if any.
import { dialog } from '../../store/ui';
import { ChangeDialog } from '../recording/ChangeDialog';
import { DeleteDialog } from '../sessions/DeleteDialog';
import { HelpDialog } from './HelpDialog';
import { ProcessDialog } from '../recording/ProcessDialog';
import { SettingsDialog } from './SettingsDialog';
import { Wizard } from '../agents/Wizard';

export function Dialogs() {
  const open = dialog.value;
  switch (open.kind) {
    case 'process':
      return <ProcessDialog key={open.agent} agent={open.agent} />;
    case 'help':
      return <HelpDialog />;
    case 'wizard':
      return <Wizard />;
    case 'change':
      return <ChangeDialog agent={open.agent} />;
    case 'settings':
      return <SettingsDialog />;
    case 'delete':
      return <DeleteDialog session={open.session} />;
    default:
      return null;
  }
}
