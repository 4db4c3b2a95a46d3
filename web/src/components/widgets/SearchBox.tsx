// A field for a regular expression. An invalid expression is searched as plain text and reported.
import type { ComponentChildren } from 'preact';
import { Icon } from './Icon';

interface Props {
  value: string;
  placeholder: string;
  error?: string;
  onInput: (text: string) => void;
  onStep?: (step: 1 | -1) => void;
  children?: ComponentChildren;
}

export function SearchBox({ value, placeholder, error, onInput, onStep, children }: Props) {
  return (
    <div class={`search ${error ? 'search-error' : ''}`}>
      <Icon name="search" />
      <input
        type="text"
        data-search
        spellcheck={false}
        autocomplete="off"
        value={value}
        placeholder={placeholder}
        aria-label={placeholder}
        aria-invalid={Boolean(error)}
        title={error ? `Searched as plain text: ${error}` : undefined}
        onInput={(event) => onInput(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && onStep) {
            event.preventDefault();
            onStep(event.shiftKey ? -1 : 1);
          }
          if (event.key === 'Escape') {
            event.stopPropagation();
            event.preventDefault();
            if (value) onInput('');
            else event.currentTarget.blur();
          }
        }}
      />
      {value && (
        <button
          type="button"
          class="search-clear"
          title="Clear"
          aria-label="Clear the search"
          onClick={() => onInput('')}
        >
          <Icon name="close" />
        </button>
      )}
      {children}
    </div>
  );
}
