// Keys and gestures.
import { Modal } from '../widgets/Modal';

const groups: { title: string; keys: [string, string][] }[] = [
  {
    title: 'Everywhere',
    keys: [
      ['1 – 9', 'Flame graph, functions, callers, source, threads, counters, modules, sessions, events'],
      ['/', 'Search or filter'],
      ['P', 'Choose a process to profile'],
      ['G', 'The guide: connect, choose, start'],
      ['F', 'Freeze or follow live data'],
      ['T', 'Dark or light'],
      ['?', 'This help'],
    ],
  },
  {
    title: 'Processes to profile',
    keys: [
      ['Up, Down', 'Choose a process'],
      ['Ctrl+click, Shift+arrows', 'Choose several'],
      ['Ctrl+arrows, Space', 'Go to a process, choose it besides others'],
      ['Enter, double click', 'Start'],
    ],
  },
  {
    title: 'Flame graph',
    keys: [
      ['Click, Enter', 'Zoom into a frame'],
      ['Esc, Backspace', 'Zoom out one frame'],
      ['Ctrl+wheel, +, -', 'Zoom in and out'],
      ['Shift+wheel', 'Move sideways'],
      ['Double click, S', 'Open source and assembly'],
      ['C', 'Callers and callees'],
      ['Right click, Shift+F10', 'More actions for a frame'],
      ['Arrows', 'Walk to callee, caller, siblings'],
      ['N, Shift+N', 'Next and previous match'],
      ['Home', 'Back to the root'],
    ],
  },
  {
    title: 'Functions',
    keys: [
      ['Up, Down', 'Choose a function; it is also the search of the flame graph'],
      ['Enter', 'Show in the flame graph'],
      ['S, double click', 'Open source and assembly'],
    ],
  },
  {
    title: 'Events',
    keys: [
      ['Up, Down', 'Choose a hit; its stack and values are shown'],
      ['Enter', 'Go to the details'],
      ['Esc', 'Close the details'],
    ],
  },
  {
    title: 'Source and assembly',
    keys: [
      ['H', 'Hottest line, or instruction'],
      ['J, K', 'Next and previous hot line'],
      ['I', 'What was inlined at the line'],
      ['Up, Down', 'Choose an instruction; its line is marked'],
      ['Enter, double click', 'Follow a jump or a call'],
    ],
  },
  {
    title: 'Time axis',
    keys: [
      ['Drag', 'Show only this range of time'],
      ['Double click', 'Show all times'],
      ['[, ]', 'The range before, and the next one, of the same length'],
      ['Wheel, +, -', 'Zoom in and out'],
      ['Shift+wheel, Shift+drag', 'Move along'],
      ['Comma, Period', 'Move by a quarter'],
      ['Z', 'Zoom to the chosen range'],
      ['0', 'The whole session'],
      ['L', 'Follow what comes in'],
    ],
  },
];

export function HelpDialog() {
  return (
    <Modal title="Keys and gestures" class="help-dialog">
      {/* Focusable, so that keys can scroll it if it does not fit the window. */}
      <div class="help" tabIndex={0}>
        {groups.map((group) => (
          <section key={group.title}>
            <h3>{group.title}</h3>
            <dl>
              {group.keys.map(([keys, meaning]) => (
                <div key={keys}>
                  <dt>
                    {keys.split(', ').map((name, i) => (
                      <>
                        {i > 0 && ' '}
                        <kbd key={name}>{name}</kbd>
                      </>
                    ))}
                  </dt>
                  <dd>{meaning}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Modal>
  );
}
