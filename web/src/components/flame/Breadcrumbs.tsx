// The path from the root to the zoomed frame. The middle of a long path is cut.
import { entryName } from '../../model/path';
import { zoomTo } from '../../store/flame';

const SHOWN_FIRST = 2;
const SHOWN_LAST = 4;

export function Breadcrumbs({ path }: { path: readonly string[] }) {
  const hidden = path.length > SHOWN_FIRST + SHOWN_LAST + 1;
  const crumb = (entry: string, index: number) => (
    <li key={index}>
      <button
        type="button"
        title={entryName(entry)}
        aria-current={index === path.length - 1 ? 'true' : undefined}
        onClick={() => zoomTo(path.slice(0, index + 1))}
      >
        {entryName(entry)}
      </button>
    </li>
  );
  return (
    <nav class="crumbs" aria-label="Zoomed frames">
      <ol>
        <li>
          <button type="button" onClick={() => zoomTo([])}>
            all
          </button>
        </li>
        {hidden ? (
          <>
            {path.slice(0, SHOWN_FIRST).map(crumb)}
            <li class="crumbs-gap" title={path.slice(SHOWN_FIRST, -SHOWN_LAST).map(entryName).join('\n')}>
              {path.length - SHOWN_FIRST - SHOWN_LAST} more
            </li>
            {path.slice(-SHOWN_LAST).map((name, i) => crumb(name, path.length - SHOWN_LAST + i))}
          </>
        ) : (
          path.map(crumb)
        )}
      </ol>
    </nav>
  );
}
