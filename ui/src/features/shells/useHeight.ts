/** The height of the drawer: dragged, or moved by arrow keys; kept for this window. */

import { useLayoutEffect, useState } from "react";

/** Of the window, in parts of a hundred. */
export const HEIGHT = { usual: 34, min: 15, max: 85, step: 5 };
let kept = HEIGHT.usual;

interface Edge {
  /** Of the window, in parts of a hundred. */
  height: number;
  /** For the element that moves it. */
  handlers: EdgeHandlers;
}

interface EdgeHandlers {
  onPointerDown(event: React.PointerEvent): void;
  onPointerMove(event: React.PointerEvent): void;
  onKeyDown(event: React.KeyboardEvent): void;
}

/** Sets the height of `element`, by an edge that is dragged or moved by arrow keys. */
export function useHeight(element: React.RefObject<HTMLElement | null>): Edge {
  const [height, setHeight] = useState(kept);
  useLayoutEffect(() => {
    kept = height;
    // By property, which the policy of the page allows.
    element.current?.style.setProperty("--height", `${height}dvh`);
  }, [height, element]);
  const set = (next: number) =>
    setHeight(Math.round(Math.min(HEIGHT.max, Math.max(HEIGHT.min, next))));
  return {
    height,
    handlers: {
      onPointerDown: (event) => event.currentTarget.setPointerCapture(event.pointerId),
      onPointerMove: (event) => {
        if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
        set(100 - (event.clientY / window.innerHeight) * 100);
      },
      onKeyDown: (event) => {
        const step = { ArrowUp: HEIGHT.step, ArrowDown: -HEIGHT.step }[event.key];
        if (!step) return;
        event.preventDefault();
        set(height + step);
      },
    },
  };
}
