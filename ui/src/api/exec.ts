/**
 * A program in a container: the streams of `kubectl exec` over one WebSocket. Each frame begins
 * with the number of its stream (Kubernetes KEP-4006).
 */

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const STATUS = 3;
const RESIZE = 4;
/**
 * Largest content of a message, in bytes. Browsers split messages of more than 64 KiB into several
 * frames, and Kubernetes takes each frame for a message, with the number of a stream.
 */
const MESSAGE_BYTES_MAX = 32 * 1024;
/** Bytes of input that wait in the browser, at most. */
const WAITING_BYTES_MAX = 1024 * 1024;
const WAITING_LOOK_MS = 20;
const PROTOCOLS = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

export interface ExecEvents {
  onOpen(): void;
  /** `isComplaint`: it was written to the error output, which a terminal does not have. */
  onOutput(bytes: Uint8Array<ArrayBuffer>, isComplaint: boolean): void;
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
    this.#send(STDIN, this.#encoder.encode(text));
  }

  /** Sends a file as input, as fast as it is taken. `onSent` is called with the bytes so far. */
  async write(file: Blob, onSent: (bytes: number) => void): Promise<void> {
    for (let start = 0; start < file.size && !this.#ended; start += MESSAGE_BYTES_MAX) {
      const part = file.slice(start, start + MESSAGE_BYTES_MAX);
      this.#send(STDIN, new Uint8Array(await part.arrayBuffer()));
      onSent(start + part.size);
      while (this.#socket.bufferedAmount > WAITING_BYTES_MAX && !this.#ended) {
        await new Promise((next) => setTimeout(next, WAITING_LOOK_MS));
      }
    }
  }

  resize(columns: number, rows: number): void {
    this.#send(RESIZE, this.#encoder.encode(JSON.stringify({ Width: columns, Height: rows })));
  }

  /** Ends it without an event. */
  close(): void {
    this.#ended = true;
    this.#socket.close();
  }

  #send(stream: number, content: Uint8Array): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    for (let start = 0; start < content.length; start += MESSAGE_BYTES_MAX) {
      const part = content.subarray(start, start + MESSAGE_BYTES_MAX);
      const message = new Uint8Array(part.length + 1);
      message[0] = stream;
      message.set(part, 1);
      this.#socket.send(message);
    }
  }

  #take(frame: Uint8Array<ArrayBuffer>): void {
    const content = frame.subarray(1);
    // Each stream begins with a frame without content.
    if (content.length === 0) return;
    if (frame[0] === STDOUT || frame[0] === STDERR) {
      this.#events.onOutput(content, frame[0] === STDERR);
    }
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
