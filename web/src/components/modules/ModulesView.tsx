// The files whose code was sampled: the symbols of each, where they were found, and remedies.
import { Fragment } from 'preact';
import type { ModuleRow } from '../../api/types';
import { compilePattern } from '../../model/pattern';
import { isShown, moduleKey, modules } from '../../store/modules';
import { isSaved } from '../../store/saved';
import { setView, view } from '../../store/view';
import { fetchText } from '../../text/fetch';
import { count, percent, weight } from '../../text/format';
import { byState, foundText, stateMeaning, stateText, stateTone } from '../../text/modules';
import { dialog } from '../../store/ui';
import { Button } from '../widgets/Button';
import { ExportMenu } from '../widgets/ExportMenu';
import { Icon } from '../widgets/Icon';
import { Failure, Message } from '../widgets/Message';
import { ModuleDetail } from './ModuleDetail';
import { NotRefreshed } from '../widgets/NotRefreshed';
import { SearchBox } from '../widgets/SearchBox';
import { Share } from '../widgets/Share';

function Row({ row, unit }: { row: ModuleRow; unit: string }) {
  const { module } = row;
  const open = isShown(module);
  const toggle = () => setView({ about: open ? '' : moduleKey(module) }, 'replace');
  const used = module.debug_file || module.file || module.map_file;
  const found = module.debug_file ? foundText(module.debug_found) : foundText(module.found);
  return (
    <Fragment>
      <tr class={`module-row ${open ? 'row-selected' : ''}`} data-module={module.name} onClick={toggle}>
        <td>
          <span class={`state state-${stateTone[module.state]}`} title={stateMeaning[module.state]}>
            {stateText[module.state]}
          </span>
        </td>
        <td>
          <button
            type="button"
            class="link module-name"
            aria-expanded={open}
            title={module.path}
            onClick={(event) => {
              event.stopPropagation();
              toggle();
            }}
          >
            <Icon name={open ? 'down' : 'right'} />
            {module.name || module.path}
          </button>
        </td>
        <td>
          <Share value={row.self_percent / 100} />
        </td>
        <td>
          <Share value={row.total_percent / 100} tone="total" />
        </td>
        <td class="cell-number" title={`${weight(row.self, unit)} of its own`}>
          {count(row.self_samples)}
        </td>
        <td class="module-file">
          {used ? (
            <>
              <span class="ellipsis mono" title={used}>
                {used}
              </span>
              <span class="faint">{module.map_file && !module.debug_file && !module.file ? 'linker map' : found}</span>
            </>
          ) : (
            <span class="faint">{(module.fetch && fetchText(module.fetch)) || '–'}</span>
          )}
        </td>
        <td class="mono faint" title={module.build_id || 'no build-id'}>
          {module.build_id.slice(0, 12) || '–'}
        </td>
      </tr>
      {open && (
        <tr class="module-open">
          <td colSpan={7}>
            <ModuleDetail module={module} />
          </td>
        </tr>
      )}
    </Fragment>
  );
}

export function ModulesView() {
  const data = modules.data.value;
  const error = modules.error.value;
  if (!data || data.modules.length === 0) {
    if (error && !data) return <Failure error={error} />;
    if (modules.loading.value) return <Message title="Loading the modules" busy />;
    return (
      <Message title="No modules yet">
        <p>Programs and libraries appear here once their code is sampled.</p>
      </Message>
    );
  }
  const pattern = compilePattern(view.value.modulesLike);
  const rows = pattern ? data.modules.filter((row) => pattern.test(row.module.path)) : data.modules;
  return (
    <section class={`view ${modules.loading.value ? 'is-stale' : ''}`}>
      <div class="toolbar">
        <SearchBox
          value={view.value.modulesLike}
          placeholder="Filter modules by regular expression"
          error={pattern?.error}
          onInput={(modulesLike) => setView({ modulesLike }, 'replace')}
        />
        <span class="faint" role="status">
          {byState(data.modules).map(({ state, count: many, share }, i) => (
            <span key={state}>
              {i > 0 && ' · '}
              {many} {stateText[state]} ({percent(share)})
            </span>
          ))}
        </span>
        <span class="spacer" />
        <NotRefreshed of={modules} />
        {!isSaved && (
          <Button
            icon="sliders"
            title="Where symbols and sources are looked for"
            onClick={() => (dialog.value = { kind: 'settings' })}
          >
            Symbols and sources
          </Button>
        )}
        <ExportMenu />
      </div>
      <div class="table-scroll" tabIndex={0} role="region" aria-label="Modules">
        <table class="sessions modules">
          <thead>
            <tr>
              <th scope="col">Symbols</th>
              <th scope="col">Module</th>
              <th scope="col" title="Samples whose innermost frame is in it">
                Self
              </th>
              <th scope="col" title="Samples with any frame in it">
                Total
              </th>
              <th scope="col" class="cell-number">
                Samples
              </th>
              <th scope="col">File, and how it was found</th>
              <th scope="col">Build-id</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Row key={`${row.module.path}${row.module.build_id}`} row={row} unit={data.unit} />
            ))}
          </tbody>
        </table>
        {rows.length === 0 && <p class="faint pad">No module fits the filter.</p>}
      </div>
    </section>
  );
}
