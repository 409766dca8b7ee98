/** The button inside a password's field that shows and hides what is typed. */

interface ShowButtonProps {
  visible: boolean;
  onChange(visible: boolean): void;
  /** What it shows, for the button's name: “the password”. */
  what: string;
}

export function ShowButton({ visible, onChange, what }: ShowButtonProps) {
  return (
    <button
      type="button"
      className="link small"
      aria-pressed={visible}
      onClick={() => onChange(!visible)}
    >
      {visible ? "Hide" : "Show"}
      <span className="hidden"> {what}</span>
    </button>
  );
}
