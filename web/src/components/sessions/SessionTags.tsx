// The tags of a session. A click on a tag finds other sessions with it, its cross removes it, and a field adds new ones.
import { useRef, useState } from 'preact/hooks';
import type { Session } from '../../api/types';
import { changeSession } from '../../store/actions';
import { searchSessions } from '../../store/session';
import { toast } from '../../store/ui';
import { parseTag, sessionTitle, tagText } from '../../text/sessions';
import { Icon } from '../widgets/Icon';
import { LineEdit } from '../widgets/LineEdit';

function Tag({ session, name, value }: { session: Session; name: string; value: string }) {
  const text = tagText(name, value);
  return (
    <li class="tag">
      <button type="button" class="ellipsis" title={`Find sessions with ${text}`} onClick={() => searchSessions(text)}>
        {text}
      </button>
      <button
        type="button"
        class="tag-remove"
        title={`Remove ${text}`}
        aria-label={`Remove the tag ${text}`}
        onClick={() => void changeSession(session, { tags: { [name]: null } })}
      >
        <Icon name="close" />
      </button>
    </li>
  );
}

export function SessionTags({ session }: { session: Session }) {
  const [adding, setAdding] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const add = async (text: string): Promise<boolean> => {
    const tag = parseTag(text);
    if (tag) return changeSession(session, { tags: { [tag[0]]: tag[1] } });
    if (text) toast('A tag is KEY=VALUE, its key one word', 'error');
    return false;
  };
  return (
    <ul class="tags" aria-label={`Tags of ${sessionTitle(session)}`}>
      {Object.entries(session.tags).map(([name, value]) => (
        <Tag key={name} session={session} name={name} value={value} />
      ))}
      <li>
        {adding && (
          <LineEdit
            value=""
            class="tag-edit"
            label={`New tag of ${sessionTitle(session)}`}
            placeholder="key=value"
            maxLength={321}
            onTake={add}
            onEnd={(byKey) => {
              setAdding(false);
              if (byKey) requestAnimationFrame(() => button.current?.focus());
            }}
          />
        )}
        <button
          type="button"
          ref={button}
          class="tag-add"
          hidden={adding}
          title="Add a tag, KEY=VALUE"
          aria-label={`Add a tag to ${sessionTitle(session)}`}
          onClick={() => setAdding(true)}
        >
          <Icon name="plus" />
          {Object.keys(session.tags).length === 0 && <span>tag</span>}
        </button>
      </li>
    </ul>
  );
}
