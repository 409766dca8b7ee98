/** Files in containers: programs of the container read and write them (`cat`, `head`). */

import { ExecSocket } from "./exec.ts";
import { type PodKey, programUrl } from "./pods.ts";

/** Largest file, in bytes: it is in the memory of the page. Larger ones are for `kubectl cp`. */
export const FILE_BYTES_MAX = 100 * 1024 * 1024;
const TOO_LARGE = "The file is larger than 100 MiB: use kubectl cp.";

/**
 * Reads as many bytes as the file has (`$2`), because not every cluster can say that its input
 * ended, to a name beside the final one: a file that exists is replaced at once or not at all.
 */
const WRITE_PROGRAM =
  'head -c "$2" > "$1.part" && [ "$(wc -c < "$1.part")" -eq "$2" ] && mv -f "$1.part" "$1"';

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
  await run(place, { command: ["cat", "--", place.path] }, transfer.signal, (part) => {
    bytes += part.length;
    if (bytes > FILE_BYTES_MAX) throw new Error(TOO_LARGE);
    parts.push(part);
    transfer.onProgress(bytes);
  });
  // Without a type, browsers take it for text and add an ending to its name.
  return new Blob(parts, { type: "application/octet-stream" });
}

/** Writes a file, or replaces it. Throws an `Error` that says why it failed. */
export async function writeContainerFile(
  place: FilePlace,
  file: Blob,
  { signal, onProgress }: Transfer,
): Promise<void> {
  if (file.size > FILE_BYTES_MAX) throw new Error(TOO_LARGE);
  // The shell takes a name that begins with a dash for a file, its programs would not.
  const path = place.path.startsWith("/") ? place.path : `./${place.path}`;
  const command = ["sh", "-c", WRITE_PROGRAM, "write", path, String(file.size)];
  const input = (socket: ExecSocket) => socket.write(file, onProgress);
  await run(place, { command, input }, signal, () => undefined);
}

interface Program {
  command: readonly string[];
  /** Sends its input, if it has one. */
  input?: (socket: ExecSocket) => Promise<void>;
}

/** Runs a program without a terminal until it ends well. */
function run(
  { pod, container }: FilePlace,
  { command, input }: Program,
  signal: AbortSignal,
  onOutput: (bytes: Uint8Array<ArrayBuffer>) => void,
): Promise<void> {
  const words = new TextDecoder();
  let complaint = "";
  let socket: ExecSocket | undefined;
  const ended = new Promise<void>((resolve, reject) => {
    signal.addEventListener("abort", () => reject(new Error("Cancelled.")), { once: true });
    socket = new ExecSocket(programUrl(pod, container, command, input !== undefined), {
      onOpen: () => socket && input?.(socket).catch(reject),
      onOutput: (content, isComplaint) => {
        if (isComplaint) {
          complaint += words.decode(content);
          return;
        }
        try {
          onOutput(content);
        } catch (error) {
          reject(error);
        }
      },
      onEnd: (reason) => {
        if (reason) reject(new Error(complaint.trim() || reason));
        else resolve();
      },
    });
  });
  return ended.finally(() => socket?.close());
}
