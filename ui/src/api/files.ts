/** Files in containers: a program in the container reads or writes them (`cat`, `head`). */

import { failureOf } from "./exec.ts";
import { type PodKey, programUrl } from "./pods.ts";

/** Largest file, in bytes: it is in the memory of the page. Larger ones are for `kubectl cp`. */
export const FILE_BYTES_MAX = 100 * 1024 * 1024;
/** Bytes of a file in one frame. */
const CHUNK_BYTES = 32 * 1024;
/** Bytes that wait to be sent; more are sent when some are gone. */
const WAITING_BYTES_MAX = 1024 * 1024;
const LOOK_AGAIN_MS = 20;
const PROTOCOL = "v4.channel.k8s.io";
const [STDIN, STDOUT, STDERR, STATUS] = [0, 1, 2, 3];

export interface FilePlace {
  pod: PodKey;
  container: string;
  /** Absolute, or below the container's working directory. */
  path: string;
}

export interface Transfer {
  signal: AbortSignal;
  /** Called with the bytes so far. */
  onProgress(bytes: number): void;
}

/** Reads a file. Throws an `Error` that says why it failed. */
export async function readContainerFile(place: FilePlace, transfer: Transfer): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  // Names that begin with a dash are no options.
  await run(place, ["cat", "--", place.path], transfer.signal, {
    onOutput: (part) => {
      bytes += part.length;
      if (bytes > FILE_BYTES_MAX)
        throw new Error("The file is larger than 100 MiB: use kubectl cp.");
      parts.push(part);
      transfer.onProgress(bytes);
    },
  });
  return new Blob(parts);
}

/** Writes a file, over one that is there. Throws an `Error` that says why it failed. */
export async function writeContainerFile(
  place: FilePlace,
  file: Blob,
  transfer: Transfer,
): Promise<void> {
  if (file.size > FILE_BYTES_MAX)
    throw new Error("The file is larger than 100 MiB: use kubectl cp.");
  // It reads so many bytes and ends: the end of the input cannot be sent to every cluster.
  const command = ["sh", "-c", 'head -c "$2" > "$1"', "sh", place.path, String(file.size)];
  await run(place, command, transfer.signal, {
    onOpen: async (socket) => {
      for (let at = 0; at < file.size; at += CHUNK_BYTES) {
        const part = new Uint8Array(await file.slice(at, at + CHUNK_BYTES).arrayBuffer());
        const frame = new Uint8Array(part.length + 1);
        frame[0] = STDIN ?? 0;
        frame.set(part, 1);
        while (socket.bufferedAmount > WAITING_BYTES_MAX) {
          await new Promise((next) => setTimeout(next, LOOK_AGAIN_MS));
        }
        if (socket.readyState !== WebSocket.OPEN) return;
        socket.send(frame);
        transfer.onProgress(at + part.length);
      }
    },
  });
}

interface Streams {
  onOpen?(socket: WebSocket): Promise<void>;
  onOutput?(bytes: Uint8Array<ArrayBuffer>): void;
}

/** Runs a program without a terminal until it ends well. */
function run(
  { pod, container }: FilePlace,
  command: readonly string[],
  signal: AbortSignal,
  { onOpen, onOutput }: Streams,
): Promise<void> {
  const socket = new WebSocket(programUrl(pod, container, command), PROTOCOL);
  socket.binaryType = "arraybuffer";
  const words = new TextDecoder();
  let complaint = "";
  const ended = new Promise<void>((resolve, reject) => {
    const fail = (reason: string) => reject(new Error(reason));
    signal.addEventListener("abort", () => fail("Cancelled."), { once: true });
    socket.onopen = () => void onOpen?.(socket).catch(reject);
    socket.onmessage = ({ data }) => {
      const frame = new Uint8Array(data as ArrayBuffer);
      const content = frame.subarray(1);
      if (content.length === 0) return;
      if (frame[0] === STDERR) complaint += words.decode(content);
      if (frame[0] === STDOUT) {
        try {
          onOutput?.(content);
        } catch (error) {
          reject(error);
        }
      }
      if (frame[0] === STATUS) {
        const failure = failureOf(words.decode(content));
        if (failure) fail(complaint.trim() || failure);
        else resolve();
      }
    };
    socket.onclose = ({ reason }) => fail(complaint.trim() || reason || "The connection closed.");
  });
  return ended.finally(() => socket.close());
}
