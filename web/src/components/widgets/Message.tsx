// Shown in place of a view that has nothing to show: while it loads, if it is empty, or after an error.
import type { ComponentChildren } from 'preact';
import type { ApiError } from '../../api/client';
import { refreshAll } from '../../store/data';
import { showSaved } from '../../store/saved';
import { Button } from './Button';

export function Message({
  title,
  children,
  busy = false,
}: {
  title: string;
  children?: ComponentChildren;
  busy?: boolean;
}) {
  return (
    <div class="message" role="status">
      {busy && <div class="spinner" aria-hidden="true" />}
      <h3>{title}</h3>
      {children}
    </div>
  );
}

export function Failure({ error, children }: { error: ApiError; children?: ComponentChildren }) {
  return (
    <div class="message message-error" role="alert">
      <h3>
        {error.code === 'not_saved'
          ? 'Not in this file'
          : error.status === 0
            ? 'The server is away'
            : 'This cannot be shown'}
      </h3>
      <p>{error.message}</p>
      <div class="button-group">
        {error.code === 'not_saved' ? (
          <Button title="Show what was saved" onClick={() => void showSaved()}>
            Back to what was saved
          </Button>
        ) : (
          <Button title="Ask the server again" onClick={refreshAll}>
            Try again
          </Button>
        )}
        {children}
      </div>
    </div>
  );
}
