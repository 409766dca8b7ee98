/** What can be done with a node: cordon, uncordon, delete. Who may not finds it locked, with the reason. */

import { IconDots, IconPlayerPause, IconPlayerPlay, IconTrash } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { sentence } from "../../api/errors.ts";
import { cordonNode, deleteNode } from "../../api/queries.ts";
import type { Node } from "../../api/types.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Menu, MenuItem } from "../../ui/Menu.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { Shape } from "../../ui/StateMark.tsx";
import { tell } from "../../ui/Toasts.tsx";

interface NodeMenuProps {
  node: Node;
  /** For who may not change the cluster's nodes. */
  denial: string | undefined;
  onDelete(node: Node): void;
}

export function NodeMenu({ node, denial, onDelete }: NodeMenuProps) {
  const cordoned = node.unschedulable === true;
  const cordon = useMutation({
    mutationFn: () => cordonNode(node, !cordoned),
    onSuccess: () => tell("ok", `${cordoned ? "Uncordoned" : "Cordoned"} ${node.name}`),
    onError: (error) => tell("err", `${node.name} was not changed. ${sentence(error)}`),
  });
  const label = `More actions for ${node.name}`;
  return (
    <Menu
      label={label}
      trigger={
        <Button kind="ghost" small aria-label={label}>
          <IconDots size={16} stroke={1.5} />
        </Button>
      }
    >
      <MenuItem
        icon={
          cordoned ? (
            <IconPlayerPlay size={16} stroke={1.5} />
          ) : (
            <IconPlayerPause size={16} stroke={1.5} />
          )
        }
        deniedBecause={node.links?.update ? undefined : denial}
        onSelect={() => cordon.mutate()}
      >
        {cordoned ? "Uncordon" : "Cordon"}
      </MenuItem>
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

interface DeleteNodeDialogProps {
  node: Node;
  onClose(): void;
}

export function DeleteNodeDialog({ node, onClose }: DeleteNodeDialogProps) {
  const remove = useMutation({
    mutationFn: () => deleteNode(node),
    onSuccess: () => {
      tell("rem", `Deleted ${node.name}`);
      onClose();
    },
  });
  return (
    <Dialog
      title={
        <>
          <Shape tone="err" />
          {`Delete ${node.name}?`}
        </>
      }
      onClose={onClose}
      footer={
        <>
          <Button data-autofocus onClick={onClose}>
            Keep
          </Button>
          <Button kind="danger" onClick={() => remove.mutate()}>
            {remove.isPending ? "Under way…" : "Delete"}
          </Button>
        </>
      }
    >
      <p className="second">
        The node leaves its cluster, and pods that run there are lost. Its machine stays: a kubelet
        that starts again brings the node back.
      </p>
      {remove.isError && (
        <Notice tone="err" title="It was not deleted.">
          {sentence(remove.error)}
        </Notice>
      )}
    </Dialog>
  );
}
