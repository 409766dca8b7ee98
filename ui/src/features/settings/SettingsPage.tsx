/** Settings of the whole server: what holds, and how to change it. */

import { IconPencil } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { mayQuery } from "../../api/access.ts";
import { sentence } from "../../api/errors.ts";
import { changeSetting, type ServerSetting, settingsQuery } from "../../api/settings.ts";
import { Button } from "../../ui/Button.tsx";
import { useNarrow } from "../../ui/media.ts";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import table from "../../ui/Table.module.css";
import { Tag } from "../../ui/Tags.tsx";
import { TextArea } from "../../ui/TextArea.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { FormDialog } from "../forms/FormDialog.tsx";
import { about, currentValue, fixedBecause } from "./model.ts";
import styles from "./Settings.module.css";

export function SettingsPage() {
  const settings = useQuery(settingsQuery);
  const [open, setOpen] = useState<ServerSetting>();
  return (
    <Page title="Settings">
      <PageHead title="Settings" facts="Of the whole server" />
      {settings.isPending && <Skeleton rows={8} what="settings" />}
      {settings.isError && (
        <Notice tone="err" title="The settings could not be read.">
          {sentence(settings.error)}
        </Notice>
      )}
      {settings.data && <SettingTable settings={settings.data} onOpen={setOpen} />}
      {open && <ChangeDialog setting={open} onClose={() => setOpen(undefined)} />}
    </Page>
  );
}

interface SettingTableProps {
  settings: readonly ServerSetting[];
  onOpen(setting: ServerSetting): void;
}

function SettingTable({ settings, onOpen }: SettingTableProps) {
  const narrow = useNarrow();
  const may = useQuery(mayQuery("update", "settings"));
  const denial =
    may.data === false
      ? "You may not change settings: that needs the global role Manage Settings."
      : undefined;
  return (
    <div className={table.frame}>
      <table className={`${table.table} ${styles.table}`} data-narrow={narrow || undefined}>
        <caption className="hidden">Settings</caption>
        <thead>
          <tr>
            <th scope="col" className={styles.name}>
              Name
            </th>
            <th scope="col">Value</th>
            <th scope="col" className={styles.more}>
              <span className="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {settings.map((setting) => (
            <tr key={setting.id}>
              <td className="strong" title={about(setting)}>
                {setting.id}
              </td>
              <td className={table.quiet} title={currentValue(setting)}>
                {setting.customized && !narrow && <Tag>changed</Tag>} {currentValue(setting) || "—"}
              </td>
              <td className={table.right}>
                <Button
                  kind="ghost"
                  small
                  aria-label={`Change ${setting.id}…`}
                  deniedBecause={denial}
                  disabledBecause={fixedBecause(setting)}
                  onClick={() => onOpen(setting)}
                >
                  {!denial && <IconPencil size={16} stroke={1.5} />}
                </Button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const LINES = 4;

interface ChangeDialogProps {
  setting: ServerSetting;
  onClose(): void;
}

function ChangeDialog({ setting, onClose }: ChangeDialogProps) {
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: (value: string) => changeSetting(setting.id, value),
    onSuccess: () => {
      notify("ok", `Changed ${setting.id}`);
      void client.invalidateQueries({ queryKey: settingsQuery.queryKey });
      void client.invalidateQueries({ queryKey: ["setting", setting.id] });
      onClose();
    },
  });
  return (
    <FormDialog
      title={`Change ${setting.id}`}
      subtitle={about(setting)}
      verb="Change"
      change={change}
      failure="Nothing was changed."
      more={
        setting.customized && <Button onClick={() => change.mutate("")}>Back to the default</Button>
      }
      onSubmit={(data) => change.mutate(String(data.get("value")).trim())}
      onClose={onClose}
    >
      <TextArea
        label="Value"
        name="value"
        rows={LINES}
        defaultValue={currentValue(setting)}
        data-autofocus
      />
      <p className="second">The default: {setting.default || "empty"}</p>
    </FormDialog>
  );
}
