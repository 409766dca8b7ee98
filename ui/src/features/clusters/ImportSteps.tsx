/** The checklist of an import: what is done, what is awaited, and for what is wrong why and what helps. */

import { Code } from "../../ui/Code.tsx";
import { Shape } from "../../ui/StateMark.tsx";
import { LOOK_AT_AGENT, type Step } from "./checklist.ts";
import styles from "./ImportSteps.module.css";

const WORDS: Record<Step["state"], string> = {
  done: "done",
  now: "under way",
  wrong: "needs you",
  later: "to come",
};

export function ImportSteps({ steps }: { steps: readonly Step[] }) {
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

/** A command at the end of the words of what helps. */
const COMMAND = /\b((?:kubectl|drover) .+)$/;

function Help({ step }: { step: Step }) {
  const helps = step.helps ?? "";
  const command = COMMAND.exec(helps)?.[1] ?? (helps.endsWith(":") ? LOOK_AT_AGENT : undefined);
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
