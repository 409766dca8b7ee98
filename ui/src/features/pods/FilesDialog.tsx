/** Copies one file from a container to this computer. */

import { useMutation } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { sentence } from "../../api/errors.ts";
import { readContainerFile } from "../../api/files.ts";
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
  const isBusy = get.isPending;
  const failure = get.error;
  const noPath = place.path ? undefined : "Type the path of the file first.";
  const busy = isBusy ? "One file at a time." : noPath;
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
          <Button kind="primary" disabledBecause={busy} onClick={() => get.mutate()}>
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
          help="Of one file, at most 100 MiB. The container needs the program cat."
          onChange={(event) => setPath(event.target.value)}
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
