// The page's icons, drawn on a 16 × 16 grid in the color of the text around them.
const paths = {
  search: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.4 10.4 14 14',
  close: 'M4 4l8 8M12 4l-8 8',
  up: 'M4 10l4-4 4 4',
  down: 'M4 6l4 4 4-4',
  left: 'M10 4 6 8l4 4',
  right: 'M6 4l4 4-4 4',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  play: 'M5 3.2 12.5 8 5 12.8z',
  stop: 'M4 4h8v8H4z',
  record: 'M8 3.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9z',
  sun: 'M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6zM8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1',
  moon: 'M13.5 9.6A5.8 5.8 0 0 1 6.4 2.5a5.8 5.8 0 1 0 7.1 7.1z',
  help: 'M5.8 6a2.2 2.2 0 1 1 3.2 2c-.7.4-1 .8-1 1.6M8 12.2v.1',
  copy: 'M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1',
  trash: 'M3 4.5h10M6.2 4.5v-2h3.6v2M4.3 4.5l.6 9h6.2l.6-9M6.7 7v4M9.3 7v4',
  download: 'M8 2.5v7M5 7l3 3 3-3M3 13h10',
  flip: 'M5 2.5v11M2.8 4.7 5 2.5l2.2 2.2M11 13.5v-11M8.8 11.3 11 13.5l2.2-2.2',
  sort: 'M3 4h10M3 8h7M3 12h4',
  freeze: 'M8 1.8v12.4M2.6 4.9l10.8 6.2M13.4 4.9 2.6 11.1M6.2 2.8 8 4.4l1.8-1.6M6.2 13.2 8 11.6l1.8 1.6',
  flame: 'M2 3h12v2.6H2zM2 6.7h7.5v2.6H2zM2 10.4h4.4V13H2z',
  code: 'M5.5 4.5 2 8l3.5 3.5M10.5 4.5 14 8l-3.5 3.5',
  warning: 'M8 2.5 14.2 13H1.8zM8 6.4v3.2M8 11.3v.1',
  sliders:
    'M2 4.5h6M12 4.5h2M2 11.5h2M8 11.5h6M10 2.8a1.7 1.7 0 1 1 0 3.4 1.7 1.7 0 0 1 0-3.4zM6 9.8a1.7 1.7 0 1 1 0 3.4 1.7 1.7 0 0 1 0-3.4z',
  filter: 'M2 3h12L9.5 8.4v4.4l-3 .9V8.4z',
  compare: 'M6.5 2.5v11M3 5.5h1.5v6H3zM9.5 3.5h3.5v9H9.5',
  guide: 'M3 4.2l1 1 1.6-2M3 8.2l1 1 1.6-2M3 12.2l1 1 1.6-2M8 4.5h6M8 8.5h6M8 12.5h6',
  folder: 'M2 4h4.2l1.4 1.6H14V12.5H2z',
  file: 'M4 2.5h5l3 3v8H4zM9 2.5v3h3',
  merge: 'M3.5 2.5v3L8 9v4.5M12.5 2.5v3L8 9M5.8 11.3 8 13.5l2.2-2.2',
  pin: 'M5.5 2.5h5M6.4 2.5v4.2L4.2 9.5h7.6L9.6 6.7V2.5M8 9.5v4.2',
  pencil: 'M3 13l.8-3 6.9-6.9 2.2 2.2-6.9 6.9zM9.2 4.6l2.2 2.2',
  plus: 'M8 3.5v9M3.5 8h9',
  clock: 'M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 5v3l2 1.5',
  check: 'M3 8.5 6.3 12 13 4.5',
} as const;

export type IconName = keyof typeof paths;
const filled: readonly IconName[] = ['play', 'stop', 'record', 'flame'];

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      class={`icon ${filled.includes(name) ? 'icon-filled' : ''}`}
      viewBox="0 0 16 16"
      width="16"
      height="16"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  );
}
