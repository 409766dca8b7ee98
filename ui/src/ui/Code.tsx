/** A command to run in a terminal, with a button that copies it. */

import { IconCheck, IconCopy } from "@tabler/icons-react";
import { useEffect, useRef, useState } from "react";
import { Button } from "./Button.tsx";
import styles from "./Code.module.css";

/** How long the button shows that it copied. */
const COPIED_SHOWN_MS = 2000;

/** Splits words with dashes: browsers break lines after a dash, and a broken option is misread. */
function whole(text: string): React.ReactNode[] {
  return text.split(/(\s+)/).map((word, index) =>
    word.includes("-") ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: words of one text, in order.
      <span key={index} className={styles.word}>
        {word}
      </span>
    ) : (
      word
    ),
  );
}

interface CodeProps {
  text: string;
  /** What it is, for the button's name: “Copy the import command”. */
  what: string;
  tone?: "plain" | "onError";
  /** The main content of the page: its button takes the focus when it appears. */
  focused?: boolean;
}

export function Code({ text, what, tone = "plain", focused = false }: CodeProps) {
  const button = useRef<HTMLButtonElement>(null);
  const [copied, setCopied] = useState<"no" | "yes" | "failed">("no");
  useEffect(() => {
    if (copied === "no") return;
    const timer = setTimeout(() => setCopied("no"), COPIED_SHOWN_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  useEffect(() => {
    if (focused) button.current?.focus();
  }, [focused]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied("yes");
    } catch {
      setCopied("failed");
    }
  };
  const word = { no: "Copy", yes: "Copied", failed: "Select it by hand" }[copied];
  return (
    <div className={styles.code} data-tone={tone}>
      <pre className={styles.text}>
        <code>{whole(text)}</code>
      </pre>
      <Button
        ref={button}
        small
        data-autofocus={focused || undefined}
        onClick={copy}
        aria-label={copied === "no" ? `Copy ${what}` : word}
      >
        {copied === "yes" ? (
          <IconCheck size={16} stroke={1.5} />
        ) : (
          <IconCopy size={16} stroke={1.5} />
        )}
        {word}
      </Button>
      <span className="hidden" role="status">
        {copied === "yes" ? "Copied" : ""}
      </span>
    </div>
  );
}
