/** What a project may use: its limits, what its namespaces have of them, and their change. */

import { IconPencil } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { mayQuery } from "../../api/access.ts";
import { changeProject, type Project, readProjectsAnew } from "../../api/projects.ts";
import { Button } from "../../ui/Button.tsx";
import { Card } from "../../ui/Card.tsx";
import { WideMeter } from "../../ui/Meter.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import { FormDialog } from "../forms/FormDialog.tsx";
import { QUOTA_FIELDS, quotaOf, quotaUses, shortId } from "./model.ts";
import styles from "./Projects.module.css";

export function Quota({ project }: { project: Project }) {
  const [editing, setEditing] = useState(false);
  const uses = quotaUses(project);
  const cluster = useCluster();
  const place = { namespace: cluster.id, name: shortId(project) };
  const may = useQuery(mayQuery("update", "projects", place));
  const denial =
    may.data === false
      ? "You may not change the quota: that needs the role Project Owner or Cluster Owner."
      : undefined;
  return (
    <Card
      title="Quota"
      note={uses.length === 0 ? undefined : "given to namespaces, of the limit of the project"}
      aside={
        <Button small deniedBecause={denial} onClick={() => setEditing(true)}>
          {!denial && <IconPencil size={16} stroke={1.5} />}
          Edit
        </Button>
      }
    >
      {uses.length === 0 ? (
        <p className="second">No limits: its namespaces may use what the cluster has.</p>
      ) : (
        <ul className={styles.uses}>
          {uses.map(({ field, text, percent }) => (
            <li key={field.name}>
              <div className={styles.use}>
                <span>{field.text}</span>
                <span className="second">{text}</span>
              </div>
              <WideMeter percent={percent} label={`${field.text}: ${text}`} />
            </li>
          ))}
        </ul>
      )}
      {editing && <EditDialog project={project} onClose={() => setEditing(false)} />}
    </Card>
  );
}

const LIMIT = "limit.";
const DEFAULT = "default.";

interface EditDialogProps {
  project: Project;
  onClose(): void;
}

function EditDialog({ project, onClose }: EditDialogProps) {
  const cluster = useCluster();
  const client = useQueryClient();
  const save = useMutation({
    mutationFn: (data: FormData) => {
      const [limit, given] = [quotaOf(data, LIMIT), quotaOf(data, DEFAULT)];
      const isNone = Object.keys(limit).length === 0 && Object.keys(given).length === 0;
      return changeProject(project.id, {
        resourceQuota: isNone ? null : { limit },
        namespaceDefaultResourceQuota: isNone ? null : { limit: given },
      });
    },
    onSuccess: () => {
      notify("ok", `Changed the quota of ${project.name}`);
      readProjectsAnew(client, cluster.id);
      onClose();
    },
  });
  const limits = project.resourceQuota?.limit ?? {};
  const defaults = project.namespaceDefaultResourceQuota?.limit ?? {};
  return (
    <FormDialog
      title={`Quota of ${project.name}`}
      subtitle="A limit needs a default, which each namespace gets that does not say. Empty: no limit."
      wide
      verb="Save"
      change={save}
      failure="Nothing was changed."
      onSubmit={save.mutate}
      onClose={onClose}
    >
      <table className={styles.limits}>
        <caption className="hidden">Limits</caption>
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col">Project</th>
            <th scope="col">Each namespace</th>
          </tr>
        </thead>
        <tbody>
          {QUOTA_FIELDS.map(({ name, text, placeholder }) => (
            <tr key={name}>
              <th scope="row">{text}</th>
              <td>
                <input
                  className={styles.limit}
                  name={LIMIT + name}
                  aria-label={`${text} of the project`}
                  defaultValue={limits[name] ?? ""}
                  placeholder={placeholder}
                />
              </td>
              <td>
                <input
                  className={styles.limit}
                  name={DEFAULT + name}
                  aria-label={`${text} of each namespace`}
                  defaultValue={defaults[name] ?? ""}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </FormDialog>
  );
}
