// The filters of both tables of functions: by text and by module.
import { setView, view } from '../../store/view';
import { Icon } from '../widgets/Icon';
import { SearchBox } from '../widgets/SearchBox';

export function FunctionsFilter({ modules, error }: { modules: string[]; error: string | undefined }) {
  return (
    <>
      <SearchBox
        value={view.value.filter}
        placeholder="Filter by name or module"
        error={error}
        onInput={(text) => setView({ filter: text }, 'replace')}
      />
      <label class="select">
        <select
          aria-label="Module"
          value={view.value.module}
          onChange={(event) => setView({ module: event.currentTarget.value })}
        >
          <option value="">All modules</option>
          {modules.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <Icon name="down" />
      </label>
    </>
  );
}
