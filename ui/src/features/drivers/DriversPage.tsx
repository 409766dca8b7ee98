/** Cluster drivers: programs that make clusters at a provider. */

import { IconPencil, IconPlus, IconTrash } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { mayQuery } from "../../api/access.ts";
import { type ClusterDriver, driversQuery, removeDriver, switchDriver } from "../../api/drivers.ts";
import { sentence } from "../../api/errors.ts";
import { count } from "../../lib/quantity.ts";
import { Button } from "../../ui/Button.tsx";
import { DangerDialog } from "../../ui/DangerDialog.tsx";
import { useNarrow } from "../../ui/media.ts";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { State } from "../../ui/StateMark.tsx";
import table from "../../ui/Table.module.css";
import { Tag } from "../../ui/Tags.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { DriverDialog } from "./DriverDialog.tsx";
import styles from "./Drivers.module.css";
import { byName, driverName, driverTone, driverWord } from "./model.ts";

/** Of someone without the right to manage drivers. */
const DENIAL = "You may not manage drivers: that needs the global role Manage Cluster Drivers.";

export function DriversPage() {
  const drivers = useQuery(driversQuery);
  const may = useQuery(mayQuery("create", "kontainerdrivers"));
  const [adding, setAdding] = useState(false);
  const [changing, setChanging] = useState<ClusterDriver>();
  const [removing, setRemoving] = useState<ClusterDriver>();
  const add = (
    <Button
      kind="primary"
      deniedBecause={may.data === false ? DENIAL : undefined}
      onClick={() => setAdding(true)}
    >
      {may.data !== false && <IconPlus size={16} stroke={1.5} />}
      Add driver…
    </Button>
  );
  return (
    <Page title="Cluster drivers">
      <PageHead
        title="Cluster drivers"
        facts={drivers.data && count(drivers.data.length)}
        actions={add}
      />
      <p className="second">
        A driver is a program that makes clusters at a provider. It runs in a sandbox: it reaches
        its provider, and nothing of this server. While it is active, its options are types of the
        API, and clusters are created with it.
      </p>
      {drivers.isPending && <Skeleton rows={4} what="drivers" />}
      {drivers.isError && (
        <Notice tone="err" title="The drivers could not be read.">
          {sentence(drivers.error)}
        </Notice>
      )}
      {drivers.data?.length === 0 && (
        <Blank title="No drivers">A driver is added by the address of its program.</Blank>
      )}
      {drivers.data && drivers.data.length > 0 && (
        <DriverTable drivers={byName(drivers.data)} onChange={setChanging} onRemove={setRemoving} />
      )}
      {adding && <DriverDialog onClose={() => setAdding(false)} />}
      {changing && <DriverDialog driver={changing} onClose={() => setChanging(undefined)} />}
      {removing && <RemoveDialog driver={removing} onClose={() => setRemoving(undefined)} />}
    </Page>
  );
}

interface DriverActions {
  onChange(driver: ClusterDriver): void;
  onRemove(driver: ClusterDriver): void;
}

interface DriverTableProps extends DriverActions {
  drivers: readonly ClusterDriver[];
}

function DriverTable({ drivers, ...actions }: DriverTableProps) {
  const narrow = useNarrow();
  return (
    <div className={table.frame}>
      <table className={`${table.table} ${styles.table}`} data-narrow={narrow || undefined}>
        <caption className="hidden">Cluster drivers</caption>
        <thead>
          <tr>
            <th scope="col" className={styles.state}>
              State
            </th>
            <th scope="col" className={narrow ? undefined : styles.name}>
              Name
            </th>
            {!narrow && <th scope="col">Program</th>}
            <th scope="col" className={styles.more}>
              <span className="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {drivers.map((driver) => (
            <DriverRow key={driver.id} driver={driver} narrow={narrow} {...actions} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface DriverRowProps extends DriverActions {
  driver: ClusterDriver;
  narrow: boolean;
}

function DriverRow({ driver, narrow, onChange, onRemove }: DriverRowProps) {
  const client = useQueryClient();
  const name = driverName(driver);
  const action = driver.active ? "deactivate" : "activate";
  const change = useMutation({
    mutationFn: () => switchDriver(driver.id, action),
    onSuccess: () => notify("ok", `${driver.active ? "Deactivated" : "Activated"} ${name}`),
    onError: (error) => notify("err", `${name} was not changed: ${sentence(error)}`),
    onSettled: () => client.invalidateQueries({ queryKey: driversQuery.queryKey }),
  });
  const denial = driver.actions?.[action] ? undefined : DENIAL;
  const text = driver.active ? "Deactivate" : "Activate";
  return (
    <tr>
      <td>
        <State tone={driverTone(driver)}>{driverWord(driver)}</State>
      </td>
      <td className="strong" title={driver.id}>
        {name} {narrow && driver.builtIn && <Tag>part of Drover</Tag>}
      </td>
      {!narrow && (
        <td className={`${table.quiet} ${styles.why}`}>
          {driver.builtIn ? <Tag>part of Drover</Tag> : driver.url}
          {driver.transitioningMessage && <div>{driver.transitioningMessage}</div>}
        </td>
      )}
      <td className={table.right}>
        <Button
          small
          aria-label={`${text} ${name}`}
          deniedBecause={denial}
          onClick={() => !change.isPending && change.mutate()}
        >
          {text}
        </Button>{" "}
        {!driver.builtIn && (
          <>
            <Button
              kind="ghost"
              small
              aria-label={`Change ${name}…`}
              deniedBecause={driver.links?.update ? undefined : DENIAL}
              onClick={() => onChange(driver)}
            >
              {driver.links?.update && <IconPencil size={16} stroke={1.5} />}
            </Button>
            <Button
              kind="ghost"
              small
              aria-label={`Remove ${name}…`}
              deniedBecause={driver.links?.remove ? undefined : DENIAL}
              onClick={() => onRemove(driver)}
            >
              {driver.links?.remove && <IconTrash size={16} stroke={1.5} />}
            </Button>
          </>
        )}
      </td>
    </tr>
  );
}

interface RemoveDialogProps {
  driver: ClusterDriver;
  onClose(): void;
}

function RemoveDialog({ driver, onClose }: RemoveDialogProps) {
  const client = useQueryClient();
  const name = driverName(driver);
  const remove = useMutation({
    mutationFn: () => removeDriver(driver.id),
    onSuccess: () => {
      notify("rem", `Removed ${name}`);
      void client.invalidateQueries({ queryKey: driversQuery.queryKey });
      onClose();
    },
  });
  return (
    <DangerDialog
      title={`Remove ${name}?`}
      subtitle={driver.url ?? driver.id}
      verb="Remove"
      isPending={remove.isPending}
      failed="It was not removed."
      failure={remove.error ? sentence(remove.error) : undefined}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p className="second">
        Its program is deleted from the server. A driver that clusters need is not removed.
      </p>
    </DangerDialog>
  );
}
