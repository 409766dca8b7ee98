/**
 * Lines of logs with their colours. Everything else that a terminal would obey is removed, so that a
 * line changes nothing but itself. Pure.
 */

export interface AnsiPart {
  text: string;
  /** One of the eight colours of terminals: 0 is black, 1 red, … 7 white. */
  colour: number | undefined;
  bold: boolean;
}

/**
 * Sequences of ECMA-48: CSI with its parameters and its end, OSC and other strings up to their end,
 * and the short ones.
 */
const SEQUENCE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  /\u001b\[([0-?]*)[ -/]*([@-~])|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[ -/]*[0-Z\\^-~]/g;
/** Control characters, without the tab. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROLS = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g;

/** The visible text of a line, in parts of one colour. */
export function ansiParts(line: string): AnsiPart[] {
  const parts: AnsiPart[] = [];
  let style: Omit<AnsiPart, "text"> = { colour: undefined, bold: false };
  const push = (raw: string) => {
    const text = raw.replace(CONTROLS, "");
    if (text) parts.push({ text, ...style });
  };
  let end = 0;
  for (const found of line.matchAll(SEQUENCE)) {
    push(line.slice(end, found.index));
    end = found.index + found[0].length;
    if (found[2] === "m") style = styled(style, found[1] ?? "");
  }
  push(line.slice(end));
  return parts;
}

/** The visible text of a line. */
export function plainText(line: string): string {
  return ansiParts(line)
    .map(({ text }) => text)
    .join("");
}

function styled(before: Omit<AnsiPart, "text">, parameters: string): Omit<AnsiPart, "text"> {
  const style = { ...before };
  const codes = parameters.split(/[;:]/).map(Number);
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] ?? 0;
    if (code === 0) Object.assign(style, { colour: undefined, bold: false });
    else if (code === 1) style.bold = true;
    else if (code === 22) style.bold = false;
    else if (code === 39) style.colour = undefined;
    else if (code >= 30 && code <= 37) style.colour = code - 30;
    else if (code >= 90 && code <= 97) style.colour = code - 90;
    // Colours of larger tables, of the text and of its ground: their numbers follow.
    else if (code === 38 || code === 48) index += codes[index + 1] === 5 ? 2 : 4;
  }
  return style;
}
