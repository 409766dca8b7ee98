/** Files in containers: a program in the container reads them (`cat`). */

import { failureOf } from "./exec.ts";
import { type PodKey, programUrl } from "./pods.ts";

/** Largest file, in bytes: it is in the memory of the page. Larger ones are for `kubectl cp`. */
export const FILE_BYTES_MAX = 100 * 1024 * 1024;
const PROTOCOL = "v4.channel.k8s.io";
const [STDOUT, STDERR, STATUS] = [1, 2, 3];

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
  await run(place, ["cat", "--", place.path], transfer.signal, (part) => {
    bytes += part.length;
    if (bytes > FILE_BYTES_MAX) throw new Error("The file is larger than 100 MiB: use kubectl cp.");
    parts.push(part);
    transfer.onProgress(bytes);
  });
  // Without a type, browsers take it for text and add an ending to its name.
  return new Blob(parts, { type: "application/octet-stream" });
}

/** Runs a program without a terminal until it ends well. */
function run(
  { pod, container }: FilePlace,
  command: readonly string[],
  signal: AbortSignal,
  onOutput: (bytes: Uint8Array<ArrayBuffer>) => void,
): Promise<void> {
  const socket = new WebSocket(programUrl(pod, container, command), PROTOCOL);
  socket.binaryType = "arraybuffer";
  const words = new TextDecoder();
  let complaint = "";
  const ended = new Promise<void>((resolve, reject) => {
    const fail = (reason: string) => reject(new Error(reason));
    signal.addEventListener("abort", () => fail("Cancelled."), { once: true });
    socket.onmessage = ({ data }) => {
      const frame = new Uint8Array(data as ArrayBuffer);
      const content = frame.subarray(1);
      if (content.length === 0) return;
      if (frame[0] === STDERR) complaint += words.decode(content);
      if (frame[0] === STDOUT) {
        try {
          onOutput(content);
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
