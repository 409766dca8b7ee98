/** What can be done with a workload: scale, restart, other images, pause, suspend. */

import {
  IconArrowsVertical,
  IconDots,
  IconPackage,
  IconPlayerPause,
  IconPlayerPlay,
  IconRefresh,
} from "@tabler/icons-react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Change } from "../../api/client.ts";
import { sentence } from "../../api/errors.ts";
import { changeKindObject, type KindObject } from "../../api/kinds.ts";
import type { WorkloadContent } from "../../api/workloads.ts";
import { Button } from "../../ui/Button.tsx";
import { Menu, MenuItem } from "../../ui/Menu.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import { ImageDialog } from "./ImageDialog.tsx";
import { paused, restarted, suspended, type WorkloadKind } from "./model.ts";
import { ScaleDialog } from "./ScaleDialog.tsx";

export type Workload = KindObject & WorkloadContent;

/** A kind, and one object of it. */
export interface WorkloadProps {
  kind: WorkloadKind;
  workload: Workload;
}

export function WorkloadActions({ kind, workload }: WorkloadProps) {
  const cluster = useCluster();
  const [open, setOpen] = useState<"scale" | "images">();
  const change = useWorkloadChange(kind, workload);
  const denial = workload.links.update
    ? undefined
    : `Your roles in ${cluster.name} do not let you change this.`;
  const { name } = workload.metadata;
  const { spec } = workload;
  const close = () => setOpen(undefined);
  const hasTemplate = kind.canRestart && spec.template;
  if (!hasTemplate && !kind.canScale && !kind.canSuspend) return null;
  return (
    <>
      {kind.canScale && (
        <Button deniedBecause={denial} onClick={() => setOpen("scale")}>
          {!denial && <IconArrowsVertical size={16} stroke={1.5} />}
          Scale…
        </Button>
      )}
      {kind.canRestart && (
        <Button
          deniedBecause={denial}
          onClick={() =>
            change.mutate({ change: restarted(new Date()), done: `Restarting ${name}` })
          }
        >
          {!denial && <IconRefresh size={16} stroke={1.5} />}
          Restart
        </Button>
      )}
      {kind.canSuspend && (
        <Switch
          on={spec.suspend === true}
          words={["Suspend", "Resume"]}
          denial={denial}
          onSwitch={(on) =>
            change.mutate({
              change: suspended(on),
              done: `${on ? "Suspended" : "Resumed"} ${name}`,
            })
          }
        />
      )}
      {hasTemplate && (
        <Menu
          label={`More actions for ${name}`}
          trigger={
            <Button aria-label={`More actions for ${name}`}>
              <IconDots size={16} stroke={1.5} />
            </Button>
          }
        >
          <MenuItem
            icon={<IconPackage size={16} stroke={1.5} />}
            deniedBecause={denial}
            onSelect={() => setOpen("images")}
          >
            Change images…
          </MenuItem>
          {kind.canPause && (
            <MenuItem
              icon={
                spec.paused ? (
                  <IconPlayerPlay size={16} stroke={1.5} />
                ) : (
                  <IconPlayerPause size={16} stroke={1.5} />
                )
              }
              deniedBecause={denial}
              onSelect={() =>
                change.mutate({
                  change: paused(!spec.paused),
                  done: `${spec.paused ? "Resumed" : "Paused"} the rollouts of ${name}`,
                })
              }
            >
              {spec.paused ? "Resume rollouts" : "Pause rollouts"}
            </MenuItem>
          )}
        </Menu>
      )}
      {open === "scale" && <ScaleDialog kind={kind} workload={workload} onClose={close} />}
      {open === "images" && <ImageDialog kind={kind} workload={workload} onClose={close} />}
    </>
  );
}

interface SwitchProps {
  on: boolean;
  /** For turning it on, and off. */
  words: [string, string];
  denial: string | undefined;
  onSwitch(on: boolean): void;
}

function Switch({ on, words, denial, onSwitch }: SwitchProps) {
  const Icon = on ? IconPlayerPlay : IconPlayerPause;
  return (
    <Button deniedBecause={denial} onClick={() => onSwitch(!on)}>
      {!denial && <Icon size={16} stroke={1.5} />}
      {words[on ? 1 : 0]}
    </Button>
  );
}

interface NamedChange {
  change: Change;
  /** What is said when it is made. */
  done: string;
}

/** Changes a workload, says so, and reads it again. */
export function useWorkloadChange(kind: WorkloadKind, { id }: Workload, onDone?: () => void) {
  const cluster = useCluster();
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ change }: NamedChange) => changeKindObject(cluster.id, kind.plural, id, change),
    onSuccess: (_, { done }) => {
      notify("ok", done);
      void client.invalidateQueries({ queryKey: ["kind-object", cluster.id] });
      void client.invalidateQueries({ queryKey: ["kind-yaml", cluster.id] });
      onDone?.();
    },
    onError: (error) => {
      if (!onDone) notify("err", `${id} was not changed. ${sentence(error)}`);
    },
  });
}
