// Details of one module: the files in use, failed attempts, remedies, and the upload of a file.
import { useState } from 'preact/hooks';
import type { Module } from '../../api/types';
import { givePath, giveUpload, giving, moduleKey, stopGiving } from '../../store/modules';
import { isSaved } from '../../store/saved';
import { copy } from '../../store/ui';
import { setView } from '../../store/view';
import { debuginfodText, fetchText } from '../../text/fetch';
import { bytes } from '../../text/format';
import { foundText, stateMeaning, takesFile } from '../../text/modules';
import { Button } from '../widgets/Button';

function Fact({ name, value, note }: { name: string; value: string; note?: string }) {
  if (!value) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>
        <code>{value}</code> {note && <span class="faint">{note}</span>}
      </dd>
    </>
  );
}

function Progress() {
  const now = giving.value!;
  if (!now.busy)
    return (
      <p class="note-error" role="alert">
        {now.error}
      </p>
    );
  if (now.size === 0) return <p role="status">Checking the file…</p>;
  return (
    <div class="upload-progress" role="status">
      <progress max={now.size} value={now.sent} aria-label="Upload" />
      {bytes(now.sent)} of {bytes(now.size)}
      <Button title="Stop the upload; it continues from there when you upload the same file again" onClick={stopGiving}>
        Stop
      </Button>
    </div>
  );
}

function Give({ module }: { module: Module }) {
  const [path, setPath] = useState('');
  const mine = giving.value?.module === moduleKey(module);
  const busy = mine && giving.value!.busy;
  const use = () => void givePath(module, path.trim());
  return (
    <div class="module-give">
      <form
        class="fix"
        onSubmit={(event) => {
          event.preventDefault();
          if (path.trim()) use();
        }}
      >
        <label>
          Unstripped or debug file on the server
          <input
            class="field mono"
            type="text"
            spellcheck={false}
            placeholder={`/home/me/build/${module.name}`}
            value={path}
            onInput={(event) => setPath(event.currentTarget.value)}
          />
        </label>
        <Button kind="primary" title="Use this file for the module" disabled={busy || path.trim() === ''} onClick={use}>
          Use it
        </Button>
      </form>
      <label class="fix">
        Or one from this computer
        <input
          class="field"
          type="file"
          disabled={busy}
          onChange={(event) => {
            const file = event.currentTarget.files?.[0];
            event.currentTarget.value = '';
            if (file) void giveUpload(module, file);
          }}
        />
      </label>
      {mine && <Progress />}
      <p class="faint">
        {module.build_id
          ? `It is used when its build-id is ${module.build_id.slice(0, 16)}${module.build_id.length > 16 ? '…' : ''}.`
          : 'The target’s file has no build-id, so make sure that this file is from the build that runs there.'}
      </p>
    </div>
  );
}

export function ModuleDetail({ module }: { module: Module }) {
  return (
    <div class="module-detail">
      <div class="module-facts">
        <p>{stateMeaning[module.state]}</p>
        {module.problem && (
          <p class="is-lossy" data-problem>
            {module.problem}
          </p>
        )}
        {module.remedy && <p data-remedy>What helps: {module.remedy}</p>}
        {module.fetch && <p>{fetchText(module.fetch)}</p>}
        {module.debuginfod && <p data-debuginfod>{debuginfodText(module)}</p>}
        <dl>
          <Fact name="On the target" value={module.path} />
          <Fact name="Build-id" value={module.build_id || 'none'} />
          <Fact name="File" value={module.file} note={foundText(module.found)} />
          <Fact name="Debug info" value={module.debug_file} note={foundText(module.debug_found)} />
          <Fact name="Linker map" value={module.map_file} />
        </dl>
        <div class="button-group">
          {module.build_id && (
            <Button icon="copy" title="Copy the build-id" onClick={() => void copy(module.build_id, 'Build-id copied')}>
              Build-id
            </Button>
          )}
          <Button
            title="Its functions alone"
            onClick={() => setView({ tab: 'functions', module: module.name, filter: '' })}
          >
            Its functions
          </Button>
        </div>
        {module.tried.length > 0 && (
          <details open={module.tried.length <= 8 && module.state !== 'debug_info'}>
            <summary>Looked at {module.tried.length === 1 ? 'one place' : `${module.tried.length} places`}</summary>
            <ul class="tried">
              {module.tried.map((place) => (
                <li key={place}>
                  <code>{place}</code>
                </li>
              ))}
            </ul>
          </details>
        )}
      </div>
      {!isSaved && takesFile(module) && <Give module={module} />}
    </div>
  );
}
