// Options of a comparison: the normalization of weights and, in the flame graph, the side of the widths and the colors.
import { setView, view } from '../../store/view';
import { Choice } from '../widgets/Choice';

export function NormaliseChoice() {
  return (
    <Choice
      label="Compared by"
      value={view.value.normalise}
      options={[
        { value: 'total', text: 'Shares', title: 'Each side is 100 %; pp are percentage points' },
        { value: 'time', text: 'Per second', title: 'Weight per second of the time that each side covers' },
      ]}
      onChoose={(normalise) => setView({ normalise })}
    />
  );
}

export function WidthChoice() {
  return (
    <Choice
      label="Widths of frames"
      value={view.value.width}
      options={[
        { value: 'view', text: 'Now', title: 'Widths are of what is shown; frames that are gone have none' },
        { value: 'baseline', text: 'Baseline', title: 'Widths are of the baseline; frames that are new have none' },
      ]}
      onChoose={(width) => setView({ width })}
    />
  );
}

export function ContrastChoice() {
  return (
    <Choice
      label="Colors of changes"
      value={view.value.contrast}
      options={[
        { value: 'red-blue', text: 'Red and blue', title: 'Red grew, blue shrank' },
        {
          value: 'orange-purple',
          text: 'Orange and purple',
          title: 'Orange grew, purple shrank: distinct with any color vision',
        },
      ]}
      onChoose={(contrast) => setView({ contrast })}
    />
  );
}
