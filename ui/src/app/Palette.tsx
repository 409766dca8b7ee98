/**
 * Ctrl K: any cluster, page or action, by a few letters. `>` limits it to actions, `/` to clusters.
 */

import { Combobox, useCombobox } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import {
  IconActivityHeartbeat,
  IconCube,
  IconDeviceDesktop,
  IconFolders,
  IconHexagons,
  IconHistory,
  IconHome,
  IconInfoCircle,
  IconKey,
  IconKeyboard,
  IconLayoutGrid,
  IconLock,
  IconLogin2,
  IconMoon,
  IconPlus,
  IconPuzzle,
  IconSearch,
  IconServer,
  IconSettings,
  IconShield,
  IconStack2,
  IconSun,
  IconTerminal2,
  IconTicket,
  IconUsers,
  IconUsersGroup,
} from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { objectSearchQuery } from "../api/kinds.ts";
import { clustersQuery } from "../api/queries.ts";
import { byRef, providerWord, sorted, stateWord, toneOf } from "../features/clusters/model.ts";
import { useImportDenial } from "../features/clusters/rights.ts";
import { kindText, USUAL_KINDS } from "../features/explorer/model.ts";
import { shellObstacle, showShell } from "../features/shells/shells.ts";
import { monogram } from "../lib/names.ts";
import { paths } from "../paths.ts";
import { useModal } from "../ui/Dialog.tsx";
import { Shape } from "../ui/StateMark.tsx";
import { Key, Monogram } from "../ui/Tags.tsx";
import styles from "./Palette.module.css";
import type { RouteScope } from "./routeScope.ts";
import { chooseTheme } from "./theme.ts";

/** Maximum of each group; more are found by typing. */
const SHOWN_MAX = 8;

interface PaletteEntry {
  key: string;
  group: "Clusters" | "Pages" | "Objects" | "Do";
  mark: React.ReactNode;
  text: string;
  /** Further search words. */
  hint: string;
  aside?: React.ReactNode;
  run(): void;
}

interface PaletteProps {
  scope: RouteScope;
  onHelp(): void;
  onAbout(): void;
  onClose(): void;
}

export function Palette({ scope, onHelp, onAbout, onClose }: PaletteProps) {
  const dialog = useModal();
  const [text, setText] = useState("");
  const combobox = useCombobox({ opened: true });
  const objects = useObjects(scope, text);
  const entries = [...useEntries(scope, onHelp, onAbout), ...objects];
  const found = search(entries, text);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each new text starts at the top again.
  useEffect(() => {
    combobox.selectFirstOption();
  }, [text, found.length]);
  const run = (key: string) => {
    onClose();
    entries.find((entry) => entry.key === key)?.run();
  };
  const groups = [...new Set(found.map(({ group }) => group))];
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a click beside it closes it; Escape does the same.
    <dialog
      ref={dialog}
      className={styles.palette}
      aria-label="Search or jump to"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <Combobox store={combobox} onOptionSubmit={run}>
        <div className={styles.box}>
          <IconSearch size={20} stroke={1.5} aria-hidden="true" />
          <Combobox.EventsTarget>
            <input
              data-autofocus
              className={styles.input}
              aria-label="Search or jump to"
              placeholder="Cluster, page or action"
              value={text}
              spellCheck={false}
              onChange={(event) => setText(event.target.value)}
            />
          </Combobox.EventsTarget>
          <Key>Esc</Key>
        </div>
        <Combobox.Options className={styles.options} aria-label="Results">
          {groups.map((group) => (
            <Combobox.Group
              key={group}
              label={group}
              classNames={{ group: styles.group ?? "", groupLabel: styles.title ?? "" }}
            >
              {found
                .filter((entry) => entry.group === group)
                .map((entry) => (
                  <Combobox.Option key={entry.key} value={entry.key} className={styles.option}>
                    <span className={styles.mark}>{entry.mark}</span>
                    <span className="grow ellipsis">{entry.text}</span>
                    <span className="third small">{entry.aside}</span>
                  </Combobox.Option>
                ))}
            </Combobox.Group>
          ))}
          {found.length === 0 && (
            // Screen readers ignore a list box without an option.
            <Combobox.Option value="" disabled className={styles.empty}>
              Nothing matches all of these words. Try fewer.
            </Combobox.Option>
          )}
        </Combobox.Options>
      </Combobox>
    </dialog>
  );
}

/** Kinds whose objects are looked for. */
const SEARCHED = [
  ...["pods", "apps.deployments", "apps.statefulsets", "apps.daemonsets", "services"],
  ...["configmaps", "secrets", "namespaces"],
];
/** Pause in typing after which objects are looked for. */
const TYPING_PAUSE_MS = 250;

/** Objects of the cluster whose names have the first word of the text. */
function useObjects({ cluster: reference }: RouteScope, text: string): PaletteEntry[] {
  const navigate = useNavigate();
  const { data: clusters = [] } = useQuery(clustersQuery);
  const cluster = reference ? byRef(clusters, reference) : undefined;
  const [word] = useDebouncedValue(text.trim().split(/\s+/)[0] ?? "", TYPING_PAUSE_MS);
  const isSearched = cluster?.state === "active" && !/^[>/]/.test(word);
  const { data: objects = [] } = useQuery(
    objectSearchQuery(cluster?.id ?? "", SEARCHED, isSearched ? word.toLowerCase() : ""),
  );
  if (!cluster) return [];
  return objects.map(({ type, id }) => {
    const kind = kindText(type, undefined);
    return {
      key: `object ${type} ${id}`,
      group: "Objects",
      mark: <IconCube size={16} stroke={1.5} aria-hidden="true" />,
      text: id,
      hint: kind,
      aside: kind,
      run: () => void navigate(paths.kindObject(cluster.name, type, id)),
    };
  });
}

function useEntries(scope: RouteScope, onHelp: () => void, onAbout: () => void): PaletteEntry[] {
  const navigate = useNavigate();
  const { data: clusters = [] } = useQuery(clustersQuery);
  const importDenial = useImportDenial();
  const icon = (Icon: typeof IconHome) => <Icon size={16} stroke={1.5} aria-hidden="true" />;
  const to = (text: string, Icon: typeof IconHome, run: () => void): PaletteEntry => {
    return { key: `to ${text}`, group: "Pages", mark: icon(Icon), text, hint: "go to", run };
  };
  const act = (
    text: string,
    Icon: typeof IconHome,
    hint: string,
    run: () => void,
  ): PaletteEntry => {
    return { key: `do ${text}`, group: "Do", mark: icon(Icon), text, hint, run };
  };
  const { cluster } = scope;
  return [
    ...sorted(clusters, "state", false).map(
      (one): PaletteEntry => ({
        key: `cluster ${one.id}`,
        group: "Clusters",
        mark: <Monogram letters={monogram(one.name)} />,
        text: one.name,
        hint: `${one.id} ${providerWord(one)} ${one.version?.gitVersion ?? ""} ${stateWord(one)}`,
        aside: (
          <span className={styles.state}>
            {stateWord(one)}
            <Shape tone={toneOf(one)} />
          </span>
        ),
        run: () => void navigate(paths.cluster(one.name)),
      }),
    ),
    to("All clusters", IconHexagons, () => void navigate(paths.clusters())),
    to("Users", IconUsers, () => void navigate(paths.users())),
    to("Groups", IconUsersGroup, () => void navigate(paths.groups())),
    to("Roles", IconShield, () => void navigate(paths.roles())),
    to("Audit log", IconHistory, () => void navigate(paths.audit())),
    to("Identity providers", IconLogin2, () => void navigate(paths.providers())),
    to("Cluster drivers", IconPuzzle, () => void navigate(paths.drivers())),
    to("Settings", IconSettings, () => void navigate(paths.settings())),
    to("Your tokens", IconTicket, () => void navigate(paths.tokens())),
    to("Your password", IconKey, () => void navigate(paths.password())),
    ...(cluster
      ? [
          to(`Overview of ${cluster}`, IconHome, () => void navigate(paths.cluster(cluster))),
          to(`Nodes of ${cluster}`, IconServer, () => void navigate(paths.nodes(cluster))),
          to(
            `Conditions of ${cluster}`,
            IconActivityHeartbeat,
            () => void navigate(paths.conditions(cluster)),
          ),
          to(`Projects of ${cluster}`, IconFolders, () => void navigate(paths.projects(cluster))),
          ...USUAL_KINDS.map(({ plural, text }) =>
            to(
              `${text} of ${cluster}`,
              IconStack2,
              () => void navigate(paths.kind(cluster, plural)),
            ),
          ),
          to(`All kinds of ${cluster}`, IconLayoutGrid, () => void navigate(paths.kinds(cluster))),
          to(
            `Audit log of ${cluster}`,
            IconHistory,
            () => void navigate(paths.clusterAudit(cluster)),
          ),
        ]
      : []),
    ...clusters
      .filter((one) => !shellObstacle(one))
      .map((one) =>
        act(`Shell in ${one.name}`, IconTerminal2, "kubectl terminal", () => showShell(one)),
      ),
    {
      // There a user without the right finds out who can grant it.
      ...act(
        "Import cluster…",
        importDenial ? IconLock : IconPlus,
        "add new",
        () => void navigate(paths.clusters({ import: "new" })),
      ),
      aside: importDenial && "You have no right to it: shows why",
    },
    act("Light theme", IconSun, "colour bright", () => chooseTheme("light")),
    act("Dark theme", IconMoon, "colour night", () => chooseTheme("dark")),
    act("Theme as the system", IconDeviceDesktop, "colour automatic", () => chooseTheme("system")),
    act("About Drover", IconInfoCircle, "version licences", onAbout),
    act("Keyboard map", IconKeyboard, "help shortcuts keys", onHelp),
  ];
}

/** Entries that match every word, a few of each group. */
function search(entries: readonly PaletteEntry[], text: string): PaletteEntry[] {
  const only = { ">": "Do", "/": "Clusters" }[text.trim().charAt(0)];
  const words = (only ? text.trim().slice(1) : text).toLowerCase().split(/\s+/);
  const counts = new Map<string, number>();
  return entries.filter(({ group, text: own, hint }) => {
    const hay = `${own} ${hint}`.toLowerCase();
    if ((only && group !== only) || !words.every((word) => hay.includes(word))) return false;
    const number = (counts.get(group) ?? 0) + 1;
    counts.set(group, number);
    return number <= SHOWN_MAX;
  });
}
