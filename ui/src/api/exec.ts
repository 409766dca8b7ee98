/**
 * A program in a container with a terminal: the streams of `kubectl exec` over one WebSocket. Each
 * frame begins with the number of its stream (Kubernetes KEP-4006).
 */

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const STATUS = 3;
const RESIZE = 4;
const PROTOCOLS = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

export interface ExecEvents {
  onOpen(): void;
  onOutput(bytes: Uint8Array): void;
  /** Called once. `reason`: why it failed; nothing if the program ended well. */
  onEnd(reason: string | undefined): void;
}

export class ExecSocket {
  readonly #socket: WebSocket;
  readonly #events: ExecEvents;
  readonly #encoder = new TextEncoder();
  #ended = false;

  constructor(url: string, events: ExecEvents) {
    this.#events = events;
    this.#socket = new WebSocket(url, PROTOCOLS);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => events.onOpen();
    this.#socket.onmessage = ({ data }) => this.#take(new Uint8Array(data as ArrayBuffer));
    // The browser does not tell a page why it was refused.
    this.#socket.onclose = ({ reason }) =>
      this.#end(reason || "The connection closed. The container may have ended.");
  }

  type(text: string): void {
    this.#send(STDIN, text);
  }

  resize(columns: number, rows: number): void {
    this.#send(RESIZE, JSON.stringify({ Width: columns, Height: rows }));
  }

  /** Ends it without an event. */
  close(): void {
    this.#ended = true;
    this.#socket.close();
  }

  #send(stream: number, text: string): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    const content = this.#encoder.encode(text);
    const frame = new Uint8Array(content.length + 1);
    frame[0] = stream;
    frame.set(content, 1);
    this.#socket.send(frame);
  }

  #take(frame: Uint8Array): void {
    const content = frame.subarray(1);
    // Each stream begins with a frame without content.
    if (content.length === 0) return;
    if (frame[0] === STDOUT || frame[0] === STDERR) this.#events.onOutput(content);
    if (frame[0] === STATUS) this.#end(failureOf(new TextDecoder().decode(content)));
  }

  #end(reason: string | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#socket.close();
    this.#events.onEnd(reason);
  }
}

/** Why a program failed, by the status that Kubernetes sends at its end. */
export function failureOf(status: string): string | undefined {
  try {
    const { status: word, message } = JSON.parse(status);
    return word === "Success" ? undefined : String(message || word);
  } catch {
    return status || undefined;
  }
}
