/** The mark: a D whose stem is a herd of three and whose bowl is the way that gathers them. */

export function Logo({ size }: { size: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <g fill="currentColor">
        <circle cx="7" cy="6.5" r="3.3" />
        <circle cx="7" cy="16" r="3.3" />
        <circle cx="7" cy="25.5" r="3.3" />
      </g>
      <path
        d="M14.5 6.5h1.5a9.5 9.5 0 0 1 0 19h-1.5"
        fill="none"
        stroke="var(--accent)"
        strokeWidth="5"
        strokeLinecap="round"
      />
    </svg>
  );
}
