// A choice of one of a few options, side by side.
interface Props<T extends string> {
  label: string;
  value: T;
  options: readonly { value: T; text: string; title?: string }[];
  onChoose: (value: T) => void;
}

export function Choice<T extends string>({ label, value, options, onChoose }: Props<T>) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          class="segment"
          title={option.title}
          aria-pressed={option.value === value}
          onClick={() => onChoose(option.value)}
        >
          {option.text}
        </button>
      ))}
    </div>
  );
}
