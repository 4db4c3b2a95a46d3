// A source file that the server cannot find: the paths that were tried, and fields for a path map or folder.
import { useState } from 'preact/hooks';
import type { ApiError } from '../../api/client';
import { changeConfig, readConfig } from '../../store/actions';
import { Button } from '../widgets/Button';
import { CopyLine } from '../widgets/CopyLine';

// Converts `--path-map FROM=TO` or `--path-map 'FROM=TO'` to the value of the field.
const mapOf = (suggestion: string) => suggestion.replace(/^--path-map[= ]/, '').replace(/^(['"])(.*)\1$/, '$2');

export function SourceMissing({ file, error }: { file: string; error: ApiError }) {
  const { tried = [], suggestion = '' } = error.body;
  const [map, setMap] = useState(mapOf(suggestion));
  const [folder, setFolder] = useState('');
  const addMap = async () => {
    const config = await readConfig();
    if (config) await changeConfig({ path_map: [...config.path_map, map.trim()] });
  };
  return (
    <div class="source-missing">
      <h3>{file} is not on the server</h3>
      <p>{error.message}</p>
      {tried.length > 0 && (
        <details open={tried.length <= 8}>
          <summary>Looked at {tried.length === 1 ? 'one place' : `${tried.length} places`}</summary>
          <ul class="tried">
            {tried.map((place) => (
              <li key={place}>
                <code>{place}</code>
              </li>
            ))}
          </ul>
        </details>
      )}
      <form
        class="fix"
        onSubmit={(event) => {
          event.preventDefault();
          void addMap();
        }}
      >
        <label>
          Map a path of the build to one on this server
          <input
            class="field mono"
            type="text"
            spellcheck={false}
            placeholder="/build/project=/home/me/project"
            value={map}
            onInput={(event) => setMap(event.currentTarget.value)}
          />
        </label>
        <Button
          kind="primary"
          title="Search again with this map"
          disabled={!/.=./.test(map)}
          onClick={() => void addMap()}
        >
          Add path map
        </Button>
      </form>
      <form
        class="fix"
        onSubmit={(event) => {
          event.preventDefault();
          void changeConfig({ source_dir: folder.trim() });
        }}
      >
        <label>
          Or search below a folder
          <input
            class="field mono"
            type="text"
            spellcheck={false}
            placeholder="/home/me/project"
            value={folder}
            onInput={(event) => setFolder(event.currentTarget.value)}
          />
        </label>
        <Button
          title="Search again below this folder"
          disabled={folder.trim() === ''}
          onClick={() => void changeConfig({ source_dir: folder.trim() })}
        >
          Set source folder
        </Button>
      </form>
      {suggestion && (
        <>
          <p class="faint">For the next start of the server:</p>
          <CopyLine text={suggestion} prompt={false} />
        </>
      )}
    </div>
  );
}
