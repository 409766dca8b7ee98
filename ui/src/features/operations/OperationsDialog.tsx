/** The operations of this page: how far each is, what it did, and how to cancel it. */

import { count } from "../../lib/quantity.ts";
import { clock } from "../../lib/time.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Blank } from "../../ui/Notice.tsx";
import { State, type Tone } from "../../ui/StateMark.tsx";
import styles from "./Operations.module.css";
import { cancelOperation, forgetOperation, type Operation, useOperations } from "./operations.ts";

const STATES: Record<Operation["state"], { tone: Tone; word: string }> = {
  running: { tone: "run", word: "Under way" },
  done: { tone: "ok", word: "Done" },
  failed: { tone: "err", word: "Failed in part" },
  cancelled: { tone: "done", word: "Cancelled" },
};

export function OperationsDialog({ onClose }: { onClose(): void }) {
  const operations = [...useOperations()].reverse();
  return (
    <Dialog
      title="Operations"
      subtitle="They go on while you look at other pages, and end when this one is closed."
      wide
      onClose={onClose}
      footer={<Button onClick={onClose}>Close</Button>}
    >
      {operations.length === 0 && <Blank title="None">Nothing is under way.</Blank>}
      <ul className={styles.operations}>
        {operations.map((operation) => (
          <OperationItem key={operation.id} operation={operation} />
        ))}
      </ul>
    </Dialog>
  );
}

function OperationItem({ operation }: { operation: Operation }) {
  const { id, title, state, done, total, lines } = operation;
  const { tone, word } = STATES[state];
  const isRunning = state === "running";
  return (
    <li>
      <div className={styles.head}>
        <State tone={tone}>{word}</State>
        <span className="strong">{title}</span>
        <span className="second">
          {count(done)} of {count(total)}
        </span>
        <span className="grow" />
        {isRunning ? (
          <Button small aria-label={`Cancel ${title}`} onClick={() => cancelOperation(id)}>
            Cancel
          </Button>
        ) : (
          <Button small aria-label={`Forget ${title}`} onClick={() => forgetOperation(id)}>
            Forget
          </Button>
        )}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls takes the focus. */}
      <div className={styles.log} role="log" aria-label={`Log of ${title}`} tabIndex={0}>
        {lines.map(({ at, text, isFailure }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines of a log, in order.
          <div key={index} data-failed={isFailure || undefined}>
            <span className="third">{clock(at)}</span> {text}
          </div>
        ))}
      </div>
    </li>
  );
}
