/** Copies one file between a container and this computer. */

import { useMutation } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { sentence } from "../../api/errors.ts";
import { readContainerFile, writeContainerFile } from "../../api/files.ts";
import type { PodKey } from "../../api/pods.ts";
import { bytes } from "../../lib/quantity.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { saveFile } from "../../ui/download.ts";
import { Field } from "../../ui/Field.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { notify } from "../../ui/Toasts.tsx";
import type { PodContainer } from "./model.ts";
import styles from "./Pods.module.css";

interface FilesDialogProps {
  pod: PodKey;
  containers: readonly PodContainer[];
  onClose(): void;
}

export function FilesDialog({ pod, containers, onClose }: FilesDialogProps) {
  const running = containers.filter(({ isRunning }) => isRunning).map(({ name }) => name);
  const [container, setContainer] = useState(running[0] ?? "");
  const [path, setPath] = useState("");
  const [done, setDone] = useState(0);
  const abort = useRef<AbortController>(undefined);
  const place = { pod, container, path: path.trim() };
  const transfer = () => {
    abort.current = new AbortController();
    setDone(0);
    return { signal: abort.current.signal, onProgress: setDone };
  };
  const get = useMutation({
    mutationFn: () => readContainerFile(place, transfer()),
    onSuccess: (file) => {
      saveFile(place.path.split("/").at(-1) || "file", file);
      notify("ok", `Downloaded ${place.path}, ${bytes(file.size)}`);
    },
  });
  const put = useMutation({
    mutationFn: (file: File) => {
      // A folder gets the file under its own name.
      const path = place.path.endsWith("/") ? place.path + file.name : place.path;
      return writeContainerFile({ ...place, path }, file, transfer());
    },
    onSuccess: (_, file) => notify("ok", `Uploaded ${file.name}, ${bytes(file.size)}`),
  });
  const chooser = useRef<HTMLInputElement>(null);
  const isBusy = get.isPending || put.isPending;
  const failure = get.error ?? put.error;
  const noPath = place.path ? undefined : "Type the path of the file first.";
  const busy = isBusy ? "One file at a time." : noPath;
  const download = () => {
    put.reset();
    get.mutate();
  };
  const upload = (file: File | undefined) => {
    get.reset();
    if (file) put.mutate(file);
  };
  const close = () => {
    abort.current?.abort();
    onClose();
  };
  return (
    <Dialog
      title={`Files of ${pod.name}`}
      onClose={close}
      footer={
        <>
          <Button onClick={close}>{isBusy ? "Cancel" : "Close"}</Button>
          <Button disabledBecause={busy} onClick={() => chooser.current?.click()}>
            Upload…
          </Button>
          <Button kind="primary" disabledBecause={busy} onClick={download}>
            Download
          </Button>
        </>
      }
    >
      <div className={styles.files}>
        <label className={styles.fileContainer}>
          Container
          <select
            className={styles.choice}
            value={container}
            onChange={(event) => setContainer(event.target.value)}
          >
            {running.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <Field
          label="Path in the container"
          value={path}
          spellCheck={false}
          data-autofocus
          help="Of one file, at most 100 MiB; an upload to a path that ends in / has the file's own name. The container needs cat to read, sh and head to write."
          onChange={(event) => setPath(event.target.value)}
        />
        <input
          ref={chooser}
          type="file"
          hidden
          aria-label="File to upload"
          onChange={({ currentTarget }) => {
            upload(currentTarget.files?.[0]);
            // The same file may be chosen again.
            currentTarget.value = "";
          }}
        />
        {isBusy && (
          <p role="status" className="second">
            {bytes(done)} so far
          </p>
        )}
        {failure && !isBusy && (
          <Notice tone="err" title="The file was not copied.">
            {sentence(failure)}
          </Notice>
        )}
      </div>
    </Dialog>
  );
}
