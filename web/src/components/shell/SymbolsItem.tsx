// The share of samples without a name, and the symbol quality of each module.
import type { Module } from '../../api/types';
import { isSaved } from '../../store/saved';
import { session } from '../../store/session';
import { dialog } from '../../store/ui';
import { openTab } from '../../store/view';
import { debuginfodText, fetchText } from '../../text/fetch';
import { percent } from '../../text/format';
import { Button } from '../widgets/Button';
import { Popover } from '../widgets/Popover';

const qualities: Record<Module['quality'], string> = {
  none: 'no symbols',
  linker_map: 'names of a linker map',
  dynamic_symbols: 'exported names only',
  symbols: 'names, no lines',
  go_table: 'names and lines of Go’s table',
  debug_info: 'names and lines',
  pending: 'being read',
};
const rank: Record<Module['quality'], number> = {
  none: 0,
  linker_map: 1,
  dynamic_symbols: 2,
  pending: 3,
  symbols: 4,
  go_table: 5,
  debug_info: 6,
};

function Entry({ module }: { module: Module }) {
  return (
    <li>
      <div class="loss-head">
        <strong title={module.path}>{module.name}</strong>
        <span class={`quality quality-${module.quality}`}>{qualities[module.quality]}</span>
      </div>
      {module.problem && <div>{module.problem}</div>}
      {module.fetch && <div>{fetchText(module.fetch)}</div>}
      {module.debuginfod && <div>{debuginfodText(module)}</div>}
      {module.remedy && <div class="faint">{module.remedy}</div>}
    </li>
  );
}

export function SymbolsItem() {
  const shown = session.value;
  if (!shown) return null;
  const modules = [...(shown.modules ?? [])].sort(
    (a, b) =>
      Number(b.problem !== '') - Number(a.problem !== '') ||
      rank[a.quality] - rank[b.quality] ||
      a.name.localeCompare(b.name),
  );
  return (
    <Popover
      id="status-unresolved"
      class={`status-item ${shown.unresolved_percent > 10 ? 'is-lossy' : ''}`}
      side="above"
      panelClass="pop-wide"
      title="Samples whose innermost function has no name"
      label={
        <>
          <span class="status-name">Unresolved</span> {percent(shown.unresolved_percent / 100)}
        </>
      }
    >
      {(close) => (
        <div class="pop-body">
          <div class="loss-head">
            <h4>Symbols</h4>
            <span class="spacer" />
            <Button
              title="Files, how they were found, and what helps"
              onClick={() => {
                close();
                openTab('modules');
              }}
            >
              All modules
            </Button>
            {!isSaved && (
              <Button
                icon="sliders"
                title="Where symbols and sources are looked for"
                onClick={() => {
                  close();
                  dialog.value = { kind: 'settings' };
                }}
              >
                Symbols and sources
              </Button>
            )}
          </div>
          {shown.pending_names > 0 && (
            <p id="names-pending">
              {shown.pending_names} {shown.pending_names === 1 ? 'address' : 'addresses'}{' '}
              {isSaved ? 'had no name yet when this was saved' : 'waiting for names'}.
            </p>
          )}
          {modules.length === 0 ? (
            <p class="faint">No module was sampled yet.</p>
          ) : (
            <ul class="loss-list">
              {modules.map((module) => (
                <Entry key={`${module.path}${module.build_id}`} module={module} />
              ))}
            </ul>
          )}
        </div>
      )}
    </Popover>
  );
}
