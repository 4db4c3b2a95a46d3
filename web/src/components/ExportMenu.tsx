// The flame graph as a file.
import { download } from '../api/client';
import { pane } from '../store/flame';
import { saveFile } from '../store/save';
import { currentId, filter } from '../store/session';
import { toast } from '../store/ui';
import { Icon } from './Icon';
import { Popover } from './Popover';

async function savePicture(): Promise<void> {
  const picture = await pane.value?.picture();
  if (picture) saveFile(`flamewire-${currentId.value}.png`, 'image/png', picture);
  else toast('The browser made no picture. Make the window smaller, or take the SVG.', 'error');
}

export function ExportMenu() {
  return (
    <Popover id="export-menu" class="button button-plain button-icon" align="end" title="Save the profile" name="Save the profile" label={<Icon name="download" />}>
      {(close) => (
        <ul class="menu">
          <li>
            <button
              type="button"
              onClick={() => {
                void savePicture();
                close();
              }}
            >
              <span>PNG</span>
              <span class="faint">what is in sight</span>
            </button>
          </li>
          <li>
            <a href={download.svg(filter.value)} download onClick={close}>
              <span>SVG</span>
              <span class="faint">all of it</span>
            </a>
          </li>
          <li>
            <a href={download.session(currentId.value, 'collapsed', filter.value)} download onClick={close}>
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
        </ul>
      )}
    </Popover>
  );
}
