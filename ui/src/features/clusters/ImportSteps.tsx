/**
 * The checklist of an import: done and pending steps, and for a problem the reason and what helps.
 */

import { Code } from "../../ui/Code.tsx";
import { Shape } from "../../ui/StateMark.tsx";
import { type ImportStep, INSPECT_AGENT } from "./checklist.ts";
import styles from "./ImportSteps.module.css";

const WORDS: Record<ImportStep["state"], string> = {
  done: "done",
  now: "under way",
  wrong: "needs you",
  later: "to come",
};

export function ImportSteps({ steps }: { steps: readonly ImportStep[] }) {
  return (
    <ol className={styles.steps}>
      {steps.map((step) => (
        <li key={step.key} className={styles.step} data-state={step.state} data-tone={step.tone}>
          <span className={styles.mark}>
            {step.state === "later" ? <span className={styles.hole} /> : <Shape tone={step.tone} />}
          </span>
          <div className="grow">
            <div className={styles.head}>
              <span className={styles.title}>{step.title}</span>
              <span className="hidden">, {WORDS[step.state]}</span>
              <span className="grow" />
              <span className="third small">{step.time}</span>
            </div>
            {step.detail && <p className="small second">{step.detail}</p>}
            {step.state === "wrong" && <Help step={step} />}
          </div>
        </li>
      ))}
    </ol>
  );
}

/** A command at the end of the text on what helps. */
const COMMAND = /\b((?:kubectl|drover) .+)$/;

function Help({ step }: { step: ImportStep }) {
  const helps = step.helps ?? "";
  const command = COMMAND.exec(helps)?.[1] ?? (helps.endsWith(":") ? INSPECT_AGENT : undefined);
  const words = helps.replace(COMMAND, "").trim();
  return (
    <div className={styles.help}>
      {step.why && (
        <p className="small">
          <b>Why:</b> {step.why}
        </p>
      )}
      {words && (
        <p className="small">
          <b>What helps:</b> {words}
        </p>
      )}
      {command && <Code text={command} what="the command that helps" tone="onError" />}
    </div>
  );
}
