/** The namespaces of a project: made in it, moved into it and out of it. */

import { IconArrowRight, IconDots, IconPlus } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { type ClusterRequest, mayInClusterQuery } from "../../api/access.ts";
import { sentence } from "../../api/errors.ts";
import {
  createNamespace,
  moveNamespace,
  type Namespace,
  type Project,
  projectNamespacesQuery,
  projectsQuery,
  readProjectsAnew,
} from "../../api/projects.ts";
import { count } from "../../lib/quantity.ts";
import { paths } from "../../paths.ts";
import { Button } from "../../ui/Button.tsx";
import { Card } from "../../ui/Card.tsx";
import { Field } from "../../ui/Field.tsx";
import { Menu, MenuItem } from "../../ui/Menu.tsx";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import { Select } from "../../ui/Select.tsx";
import { State } from "../../ui/StateMark.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import { FormDialog } from "../forms/FormDialog.tsx";
import { namespacesOf, resourceTone, resourceWord } from "./model.ts";
import styles from "./Projects.module.css";

/** As Kubernetes has it: letters, digits and dashes, not at the ends. */
const NAME = "[a-z0-9]([\\-a-z0-9]*[a-z0-9])?";
const NAME_LENGTH_MAX = 63;
/** The choice that moves a namespace out of all projects. */
const NO_PROJECT = "";

const CREATION: ClusterRequest = { verb: "create", group: "", resource: "namespaces" };

const MOVE: ClusterRequest = { verb: "update", group: "", resource: "namespaces" };
const MOVE_DENIAL = "You may not move it: that needs the right to update namespaces.";

export function Namespaces({ project }: { project: Project }) {
  const cluster = useCluster();
  const namespaces = useQuery(projectNamespacesQuery(cluster.id));
  const [open, setOpen] = useState<"create" | "move-in">();
  const [moving, setMoving] = useState<Namespace>();
  const own = namespacesOf(namespaces.data ?? [], project.id);
  const others = (namespaces.data ?? []).filter(({ projectId }) => projectId !== project.id);
  const mayMoveAll = useQuery(mayInClusterQuery(cluster.id, MOVE));
  const moveDenial = mayMoveAll.data === false ? MOVE_DENIAL : undefined;
  const may = useQuery(mayInClusterQuery(cluster.id, CREATION));
  const denial =
    may.data === false
      ? "You may not create namespaces: that needs the role Project Member or Create Namespaces."
      : undefined;
  return (
    <Card
      title="Namespaces"
      note={namespaces.data && count(own.length)}
      aside={
        <span className={styles.buttons}>
          <Button
            small
            deniedBecause={moveDenial}
            disabledBecause={
              others.length > 0 ? undefined : "There are no others that you may see."
            }
            onClick={() => setOpen("move-in")}
          >
            Move in…
          </Button>
          <Button small deniedBecause={denial} onClick={() => setOpen("create")}>
            {!denial && <IconPlus size={16} stroke={1.5} />}
            Create namespace
          </Button>
        </span>
      }
      flush
    >
      {namespaces.isPending && <Skeleton rows={2} what="namespaces" />}
      {namespaces.isError && (
        <Notice tone="err" title="The namespaces could not be read.">
          {sentence(namespaces.error)}
        </Notice>
      )}
      <ul className={styles.lines}>
        {own.map((namespace) => (
          <NamespaceLine
            key={namespace.id}
            namespace={namespace}
            mayMoveAll={mayMoveAll.data}
            onMove={() => setMoving(namespace)}
          />
        ))}
        {namespaces.data && own.length === 0 && (
          <li className={`${styles.line} second`}>
            None so far. Create one, or move one into the project.
          </li>
        )}
      </ul>
      {open === "create" && <CreateDialog project={project} onClose={() => setOpen(undefined)} />}
      {open === "move-in" && (
        <MoveInDialog project={project} others={others} onClose={() => setOpen(undefined)} />
      )}
      {moving && (
        <MoveDialog project={project} namespace={moving} onClose={() => setMoving(undefined)} />
      )}
    </Card>
  );
}

interface NamespaceLineProps {
  namespace: Namespace;
  /** Whether the user may move every namespace of the cluster; nothing while it is not known. */
  mayMoveAll: boolean | undefined;
  onMove(): void;
}

function NamespaceLine({ namespace, mayMoveAll, onMove }: NamespaceLineProps) {
  const cluster = useCluster();
  const { name } = namespace;
  const mayMove = useQuery({
    ...mayInClusterQuery(cluster.id, { ...MOVE, name }),
    enabled: mayMoveAll === false,
  });
  return (
    <li className={styles.line}>
      <Link className="link strong" {...paths.kind(cluster.name, "pods", { namespace: name })}>
        {name}
      </Link>
      <State tone={resourceTone(namespace)}>{resourceWord(namespace)}</State>
      <span className="grow" />
      <Menu
        label={`Actions for ${name}`}
        trigger={
          <Button kind="ghost" small aria-label={`Actions for ${name}`}>
            <IconDots size={16} stroke={1.5} />
          </Button>
        }
      >
        <MenuItem
          icon={<IconArrowRight size={16} stroke={1.5} />}
          deniedBecause={mayMove.data === false ? MOVE_DENIAL : undefined}
          onSelect={onMove}
        >
          Move…
        </MenuItem>
      </Menu>
    </li>
  );
}

interface ProjectDialogProps {
  project: Project;
  onClose(): void;
}

function CreateDialog({ project, onClose }: ProjectDialogProps) {
  const create = useNamespaceChange(onClose, (clusterId, data) => {
    const name = String(data.get("name"));
    return [createNamespace(clusterId, name, project.id), `Created ${name}`];
  });
  return (
    <Form
      title={`Create namespace in ${project.name}`}
      verb="Create"
      change={create}
      onClose={onClose}
    >
      <Field
        label="Name"
        name="name"
        required
        pattern={NAME}
        maxLength={NAME_LENGTH_MAX}
        help="a–z, 0–9 and “-”, not at the ends."
        autoComplete="off"
        spellCheck={false}
        data-autofocus
      />
    </Form>
  );
}

interface MoveInDialogProps extends ProjectDialogProps {
  others: readonly Namespace[];
}

function MoveInDialog({ project, others, onClose }: MoveInDialogProps) {
  const move = useNamespaceChange(onClose, (clusterId, data) => {
    const name = String(data.get("namespace"));
    return [moveNamespace(clusterId, name, project.id), `Moved ${name} to ${project.name}`];
  });
  const names = others.map(({ name }) => name).sort();
  return (
    <Form title={`Move a namespace to ${project.name}`} verb="Move" change={move} onClose={onClose}>
      <Select label="Namespace" name="namespace">
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </Select>
      <MoveEffect />
    </Form>
  );
}

interface MoveDialogProps extends ProjectDialogProps {
  namespace: Namespace;
}

function MoveDialog({ project, namespace, onClose }: MoveDialogProps) {
  const cluster = useCluster();
  const { data: projects = [] } = useQuery(projectsQuery(cluster.id));
  const options = projects
    .filter(({ id }) => id !== project.id)
    .sort((one, other) => one.name.localeCompare(other.name));
  const move = useNamespaceChange(onClose, (clusterId, data) => {
    const to = String(data.get("project"));
    return [moveNamespace(clusterId, namespace.name, to || null), `Moved ${namespace.name}`];
  });
  return (
    <Form title={`Move ${namespace.name}`} verb="Move" change={move} onClose={onClose}>
      <Select label="Project" name="project">
        {options.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
        <option value={NO_PROJECT}>No project</option>
      </Select>
      <MoveEffect />
    </Form>
  );
}

function MoveEffect() {
  return (
    <p className="second">
      Who has a role in its present project only loses it there, at once; members of the other
      project gain theirs. What runs in the namespace goes on.
    </p>
  );
}

/** What to do with the data of a form, and what is said when it is done. */
type NamespaceChange = (clusterId: string, data: FormData) => [Promise<unknown>, string];

function useNamespaceChange(onDone: () => void, change: NamespaceChange) {
  const cluster = useCluster();
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (data: FormData) => {
      const [done, text] = change(cluster.id, data);
      await done;
      return text;
    },
    onSuccess: (text) => {
      notify("ok", text);
      readProjectsAnew(client, cluster.id);
      onDone();
    },
  });
}

interface FormProps {
  title: string;
  verb: string;
  change: ReturnType<typeof useNamespaceChange>;
  onClose(): void;
  children: React.ReactNode;
}

function Form({ title, verb, change, onClose, children }: FormProps) {
  return (
    <FormDialog
      title={title}
      verb={verb}
      change={change}
      failure="Nothing was changed."
      onSubmit={change.mutate}
      onClose={onClose}
    >
      {children}
    </FormDialog>
  );
}
