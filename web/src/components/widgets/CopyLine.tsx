// A command line to run elsewhere, with a copy button.
import { copy } from '../../store/ui';
import { Icon } from './Icon';

export function CopyLine({ text, prompt = true }: { text: string; prompt?: boolean }) {
  return (
    <div class="copy-line">
      <code>
        {prompt && <span class="prompt">$ </span>}
        {text}
      </code>
      <button type="button" title="Copy" aria-label={`Copy: ${text}`} onClick={() => void copy(text)}>
        <Icon name="copy" />
      </button>
    </div>
  );
}
