/** A tooltip on a control, visible while the control has the focus or the pointer. */

import { Tooltip } from "@mantine/core";
import styles from "./Hint.module.css";

interface HintProps {
  /** Nothing: no hint. */
  text: string | undefined;
  /** One element. */
  children: React.ReactElement;
}

export function Hint({ text, children }: HintProps) {
  return (
    <Tooltip
      label={text}
      disabled={!text}
      classNames={{ tooltip: styles.hint ?? "" }}
      position="bottom-end"
      offset={6}
      multiline
      // Inside the landmark or the dialog of the control.
      withinPortal={false}
      events={{ hover: true, focus: true, touch: true }}
      transitionProps={{ transition: "fade", duration: 120, exitDuration: 80 }}
    >
      {children}
    </Tooltip>
  );
}
