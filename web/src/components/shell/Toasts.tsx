// Short messages that disappear after a few seconds.
import { dismiss, toasts } from '../../store/ui';
import { Button } from '../widgets/Button';

export function Toasts() {
  return (
    <div class="toasts" aria-live="polite">
      {toasts.value.map((entry) => (
        <div key={entry.id} class={`toast toast-${entry.kind}`} role={entry.kind === 'error' ? 'alert' : 'status'}>
          <span>{entry.text}</span>
          <Button icon="close" kind="ghost" title="Dismiss" onClick={() => dismiss(entry.id)} />
        </div>
      ))}
    </div>
  );
}
