/**
 * Actions on a node: cordon, uncordon, drain, delete. Without the right they are locked, with the
 * reason.
 */

import {
  IconDots,
  IconLogout2,
  IconPlayerPause,
  IconPlayerPlay,
  IconPlayerStop,
  IconTrash,
} from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { sentence } from "../../api/errors.ts";
import { cordonNode, deleteNode, stopDrain } from "../../api/queries.ts";
import type { Node } from "../../api/types.ts";
import { Button } from "../../ui/Button.tsx";
import { DangerDialog } from "../../ui/DangerDialog.tsx";
import { Menu, MenuItem } from "../../ui/Menu.tsx";
import { Shape } from "../../ui/StateMark.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { isDraining } from "./nodes.ts";

interface NodeMenuProps {
  node: Node;
  /** Reason, if the user may not change the cluster's nodes. */
  denial: string | undefined;
  onDrain(node: Node): void;
  onDelete(node: Node): void;
}

export function NodeMenu({ node, denial, onDrain, onDelete }: NodeMenuProps) {
  const label = `More actions for ${node.name}`;
  const denied = node.links?.update ? undefined : denial;
  return (
    <Menu
      label={label}
      trigger={
        <Button kind="ghost" small aria-label={label}>
          <IconDots size={16} stroke={1.5} />
        </Button>
      }
    >
      {isDraining(node) ? (
        <StopDrain node={node} denied={denied} />
      ) : (
        <>
          <Cordon node={node} denied={denied} />
          <MenuItem
            icon={<IconLogout2 size={16} stroke={1.5} />}
            deniedBecause={denied}
            onSelect={() => onDrain(node)}
          >
            Drain…
          </MenuItem>
        </>
      )}
      <MenuItem
        icon={<IconTrash size={16} stroke={1.5} />}
        danger
        deniedBecause={node.links?.remove ? undefined : denial}
        onSelect={() => onDelete(node)}
      >
        Delete…
      </MenuItem>
    </Menu>
  );
}

interface ChangeProps {
  node: Node;
  denied: string | undefined;
}

function Cordon({ node, denied }: ChangeProps) {
  const cordoned = node.unschedulable === true;
  const cordon = useMutation({
    mutationFn: () => cordonNode(node, !cordoned),
    onSuccess: () => notify("ok", `${cordoned ? "Uncordoned" : "Cordoned"} ${node.name}`),
    onError: (error) => notify("err", `${node.name} was not changed. ${sentence(error)}`),
  });
  const Icon = cordoned ? IconPlayerPlay : IconPlayerPause;
  return (
    <MenuItem
      icon={<Icon size={16} stroke={1.5} />}
      deniedBecause={denied}
      onSelect={() => cordon.mutate()}
    >
      {cordoned ? "Uncordon" : "Cordon"}
    </MenuItem>
  );
}

function StopDrain({ node, denied }: ChangeProps) {
  const stop = useMutation({
    mutationFn: () => stopDrain(node),
    onSuccess: () => notify("ok", `Stopped the drain of ${node.name}; it stays cordoned`),
    onError: (error) => notify("err", `The drain goes on. ${sentence(error)}`),
  });
  return (
    <MenuItem
      icon={<IconPlayerStop size={16} stroke={1.5} />}
      deniedBecause={denied}
      onSelect={() => stop.mutate()}
    >
      Stop draining
    </MenuItem>
  );
}

interface DeleteNodeDialogProps {
  node: Node;
  onClose(): void;
}

export function DeleteNodeDialog({ node, onClose }: DeleteNodeDialogProps) {
  const remove = useMutation({
    mutationFn: () => deleteNode(node),
    onSuccess: () => {
      notify("rem", `Deleted ${node.name}`);
      onClose();
    },
  });
  return (
    <DangerDialog
      title={
        <>
          <Shape tone="err" />
          {`Delete ${node.name}?`}
        </>
      }
      verb="Delete"
      isPending={remove.isPending}
      failed="It was not deleted."
      failure={remove.error ? sentence(remove.error) : undefined}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p className="second">
        The node leaves its cluster, and pods that run there are lost. Its machine stays: a kubelet
        that starts again brings the node back.
      </p>
    </DangerDialog>
  );
}
