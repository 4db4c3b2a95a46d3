// Saves or shares what is shown. Each view has its own formats.
import { download } from '../../api/client';
import { pane } from '../../store/flame';
import { saveFile } from '../../store/save';
import { isSaved } from '../../store/saved';
import { currentId, filter } from '../../store/session';
import { copy, toast } from '../../store/ui';
import { formatHash } from '../../model/view_state';
import { view } from '../../store/view';
import { otherTools } from '../../text/formats';
import { Icon } from './Icon';
import { Popover } from './Popover';

async function savePicture(): Promise<void> {
  const picture = await pane.value?.picture();
  if (picture) saveFile(`flamewire-${currentId.value}.png`, 'image/png', picture);
  else toast('The browser made no picture. Make the window smaller, or take the SVG.', 'error');
}

// The link names the session, so that it does not follow a newer live session.
const state = () => formatHash({ ...view.value, session: currentId.value });
const shareLink = () => new URL(state(), location.href).href;

interface Props {
  // The table that only this view can save.
  table?: { name: string; what: string; save: () => void };
}

export function ExportMenu({ table }: Props) {
  const flame = view.value.tab === 'flame';
  const each = view.value.group;
  return (
    <Popover
      id="export-menu"
      class="button button-plain button-icon"
      align="end"
      title="Save or share what is shown"
      name="Save or share what is shown"
      label={<Icon name="download" />}
    >
      {(close) => {
        const doing = (work: () => void) => () => {
          work();
          close();
        };
        return (
          <ul class="menu">
            {table && (
              <li>
                <button type="button" onClick={doing(table.save)}>
                  <span>{table.name}</span>
                  <span class="faint">{table.what}</span>
                </button>
              </li>
            )}
            {flame && (
              <li>
                <button type="button" onClick={doing(() => void savePicture())}>
                  <span>PNG</span>
                  <span class="faint">what is in sight</span>
                </button>
              </li>
            )}
            {!isSaved && (
              <>
                <li>
                  <a href={download.svg(filter.value, each)} download onClick={close}>
                    <span>SVG</span>
                    <span class="faint">flame graph, all of it</span>
                  </a>
                </li>
                <li>
                  <a href={download.session(currentId.value, 'collapsed', filter.value, each)} download onClick={close}>
                    <span>Collapsed stacks</span>
                    <span class="faint">text</span>
                  </a>
                </li>
                <li>
                  <a href={download.session(currentId.value, 'json', filter.value)} download onClick={close}>
                    <span>JSON</span>
                    <span class="faint">this event</span>
                  </a>
                </li>
                {otherTools.map(([format, name, what]) => (
                  <li key={format}>
                    <a href={download.session(currentId.value, format, filter.value)} download onClick={close}>
                      <span>{name}</span>
                      <span class="faint">{what}</span>
                    </a>
                  </li>
                ))}
                <li>
                  <a href={download.page(currentId.value, filter.value, state())} download onClick={close}>
                    <span>Page</span>
                    <span class="faint">one HTML file that needs no server</span>
                  </a>
                </li>
                <li>
                  <a href={download.archive(currentId.value)} download onClick={close}>
                    <span>Session</span>
                    <span class="faint">one .flamewire file, with its names, for another server</span>
                  </a>
                </li>
                <li>
                  <a href={download.archive(currentId.value, true)} download onClick={close}>
                    <span>Session and sources</span>
                    <span class="faint">the same, with the source files that it names</span>
                  </a>
                </li>
                <li class="menu-last">
                  <button type="button" id="share-link" onClick={doing(() => void copy(shareLink(), 'Link copied'))}>
                    <span>Copy a link</span>
                    <span class="faint">to this very view</span>
                  </button>
                </li>
              </>
            )}
            <li>
              <button type="button" onClick={doing(() => setTimeout(() => print()))}>
                <span>Print</span>
                <span class="faint">or save as PDF</span>
              </button>
            </li>
          </ul>
        );
      }}
    </Popover>
  );
}
