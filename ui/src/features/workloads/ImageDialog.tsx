/** Other images for the containers of a workload. */

import { useState } from "react";
import { Button } from "../../ui/Button.tsx";
import { Field } from "../../ui/Field.tsx";
import { ChangeDialog } from "./ChangeDialog.tsx";
import { withImages } from "./model.ts";
import type { WorkloadProps } from "./WorkloadActions.tsx";
import styles from "./Workloads.module.css";

const FORM = "images-of-workload";

interface ImageDialogProps extends WorkloadProps {
  onClose(): void;
}

export function ImageDialog({ kind, workload, onClose }: ImageDialogProps) {
  const [images, setImages] = useState<ReadonlyMap<string, string>>();
  const template = workload.spec.template;
  const { name } = workload.metadata;
  if (!template) return null;
  const containers = [...template.spec.containers, ...(template.spec.initContainers ?? [])];
  return (
    <ChangeDialog
      kind={kind}
      workload={workload}
      title={`Change images of ${name}`}
      change={images && withImages(template, images)}
      done={`${name} gets other images`}
      verb="Change images"
      onClose={onClose}
      before={
        <Button kind="primary" type="submit" form={FORM}>
          Review changes
        </Button>
      }
    >
      <form
        id={FORM}
        className={styles.form}
        onChange={() => setImages(undefined)}
        onSubmit={(event) => {
          event.preventDefault();
          const given = [...new FormData(event.currentTarget)];
          setImages(new Map(given.map(([container, image]) => [container, String(image).trim()])));
        }}
      >
        {containers.map(({ name: container, image }, index) => (
          <Field
            key={container}
            label={container}
            name={container}
            defaultValue={image}
            spellCheck={false}
            required
            data-autofocus={index === 0}
          />
        ))}
      </form>
    </ChangeDialog>
  );
}
