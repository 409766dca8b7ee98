/** A terminal of xterm.js under a policy that allows no inline styles. */

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";

/** Lines that can be scrolled back to. */
const SCROLLBACK = 5_000;

export interface FittedTerminal {
  terminal: Terminal;
  dispose(): void;
}

/** Opens a terminal that fills `place`. */
export function openTerminal(place: HTMLElement): FittedTerminal {
  const styles = new Set<CSSStyleSheet>();
  const page = withoutInlineStyles(place.ownerDocument, styles);
  const terminal = new Terminal({
    documentOverride: page,
    fontFamily: getComputedStyle(place).fontFamily,
    fontSize: 13,
    scrollback: SCROLLBACK,
    screenReaderMode: true,
    cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    theme: coloursOf(place),
    // Escape sequences give no links: their text need not be where they lead.
    linkHandler: { activate: () => undefined },
  });
  const fitting = new FitAddon();
  terminal.loadAddon(fitting);
  terminal.open(place);
  makeRowsBy(page, terminal);
  fitting.fit();
  const watch = new ResizeObserver(() => fitting.fit());
  watch.observe(place);
  const forgetTheme = onTheme(() => {
    terminal.options.theme = coloursOf(place);
  });
  return {
    terminal,
    dispose: () => {
      watch.disconnect();
      forgetTheme();
      terminal.dispose();
      const kept = document.adoptedStyleSheets.filter((sheet) => !styles.has(sheet));
      document.adoptedStyleSheets = kept;
    },
  };
}

/** Calls `change` whenever the page gets another theme; returns what ends that. */
function onTheme(change: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = new MutationObserver(change);
  system.addEventListener("change", change);
  chosen.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => {
    system.removeEventListener("change", change);
    chosen.disconnect();
  };
}

/** Colours of the page around the terminal, so that it has the page's theme. */
function coloursOf(place: HTMLElement) {
  const { color, backgroundColor } = getComputedStyle(place);
  return {
    foreground: color,
    background: backgroundColor,
    cursor: color,
    cursorAccent: backgroundColor,
  };
}

interface Internals {
  _core?: {
    _renderService?: { _renderer?: { value?: { _rowFactory?: { _document?: Document } } } };
  };
}

/**
 * The parts of a line that have colours of their own are made by the window's document, whatever
 * the option says (xterm.js 5.5): without this, true colours would be missing.
 */
function makeRowsBy(page: Document, terminal: Terminal): void {
  const { _core } = terminal as Terminal & Internals;
  const rows = _core?._renderService?._renderer?.value?._rowFactory;
  if (rows) rows._document = page;
}

/**
 * The document for xterm.js: in place of style elements it makes hidden ones whose text goes into
 * constructed style sheets, and style attributes are set by property, since the policy of the page
 * allows both.
 */
function withoutInlineStyles(page: Document, styles: Set<CSSStyleSheet>): Document {
  return new Proxy(page, {
    get(target, name) {
      if (name === "createElement") {
        return (tag: string) => {
          if (tag === "style") return styleElement(page, styles);
          const element = page.createElement(tag);
          element.setAttribute = setAttribute;
          return element;
        };
      }
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function styleElement(page: Document, styles: Set<CSSStyleSheet>): HTMLElement {
  const sheet = new CSSStyleSheet();
  styles.add(sheet);
  page.adoptedStyleSheets.push(sheet);
  const element = page.createElement("span");
  element.hidden = true;
  Object.defineProperty(element, "textContent", { set: (text: string) => sheet.replaceSync(text) });
  return element;
}

function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else HTMLElement.prototype.setAttribute.call(this, name, value);
}
