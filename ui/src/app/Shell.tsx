/** The frame of every page: top bar, sidebar, foot. Holds the change feed of the fleet open. */

import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useEffectEvent, useRef, useState } from "react";
import { useFreshness, useLiveFeed } from "../api/freshness.ts";
import { clustersQuery } from "../api/queries.ts";
import { byRef } from "../features/clusters/model.ts";
import {
  closeShells,
  currentShells,
  hideShells,
  selectShell,
  shellObstacle,
  showShell,
  useShells,
} from "../features/shells/shells.ts";
import { paths } from "../paths.ts";
import { useShortcut } from "../ui/keyboard.ts";
import { Past } from "../ui/Past.tsx";
import { Toasts } from "../ui/Toasts.tsx";
import { AboutDialog } from "./AboutDialog.tsx";
import { Foot } from "./Foot.tsx";
import { KeyboardMap } from "./KeyboardMap.tsx";
import { OfflineNotice } from "./OfflineNotice.tsx";
import { Palette } from "./Palette.tsx";
import { type RouteScope, useRouteScope } from "./routeScope.ts";
import styles from "./Shell.module.css";
import { Sidebar } from "./Sidebar.tsx";
import { TopBar } from "./TopBar.tsx";

/** With the code of terminals. */
const ShellDrawer = lazy(() => import("../features/shells/ShellDrawer.tsx"));

const FLEET_TYPES = ["cluster", "clusterRegistrationToken"];

export function Shell({ children }: { children: React.ReactNode }) {
  const scope = useRouteScope();
  const main = useRef<HTMLElement>(null);
  const [open, setOpen] = useState<"palette" | "map" | "about">();
  const freshness = useFreshness();
  const offline = freshness.state === "lost";
  useLiveFeed("/v3/subscribe", FLEET_TYPES);
  useGoKeys(scope, () => setOpen("map"));
  usePaletteKey(() => setOpen("palette"));
  useShellKey(scope);
  useFocusAfterMove(scope, main);
  return (
    <div className={styles.app}>
      <a className={styles.skip} href="#main">
        Skip to the page
      </a>
      <Past when={offline}>
        <TopBar
          scope={scope}
          onSearch={() => setOpen("palette")}
          onHelp={() => setOpen("map")}
          onAbout={() => setOpen("about")}
        />
        <Sidebar scope={scope} />
      </Past>
      <section className={styles.note} aria-label="Connection" role="status">
        {offline && <OfflineNotice heardAt={freshness.heardAt} />}
      </section>
      <Past when={offline}>
        <main ref={main} id="main" className={styles.main} tabIndex={-1}>
          {children}
        </main>
      </Past>
      <ShellDrawerWhenUsed />
      <Foot scope={scope} />
      <Toasts />
      {open === "map" && <KeyboardMap onClose={() => setOpen(undefined)} />}
      {open === "about" && <AboutDialog onClose={() => setOpen(undefined)} />}
      {open === "palette" && (
        <Past when={offline}>
          <Palette
            scope={scope}
            onHelp={() => setOpen("map")}
            onAbout={() => setOpen("about")}
            onClose={() => setOpen(undefined)}
          />
        </Past>
      )}
    </div>
  );
}

function useGoKeys({ cluster }: RouteScope, onHelp: () => void): void {
  const navigate = useNavigate();
  useShortcut("?", onHelp);
  useShortcut("g c", () => void navigate(paths.clusters()));
  useShortcut("g o", () => cluster && void navigate(paths.cluster(cluster)));
  useShortcut("g n", () => cluster && void navigate(paths.nodes(cluster)));
}

/** Loaded with the first shell. They end with the login, which ends this frame. */
function ShellDrawerWhenUsed() {
  const { all } = useShells();
  useEffect(() => closeShells, []);
  if (all.length === 0) return null;
  return (
    <Suspense fallback={null}>
      <ShellDrawer />
    </Suspense>
  );
}

/** Control and backquote show or hide the shells, also while typing in one. */
function useShellKey({ cluster: reference }: RouteScope): void {
  const { data: clusters = [] } = useQuery(clustersQuery);
  const cluster = reference ? byRef(clusters, reference) : undefined;
  const toggle = useEffectEvent(() => {
    const { isOpen, shown } = currentShells();
    if (isOpen) {
      hideShells();
      document.getElementById("main")?.focus();
    } else if (shown !== undefined) selectShell(shown);
    else if (cluster && !shellObstacle(cluster)) showShell(cluster);
  });
  useEffect(() => {
    const listener = (event: KeyboardEvent) => {
      if (event.code !== "Backquote" || !event.ctrlKey) return;
      event.preventDefault();
      if (!document.querySelector("dialog[open]")) toggle();
    };
    document.addEventListener("keydown", listener);
    return () => document.removeEventListener("keydown", listener);
  }, []);
}

/** Also works while typing, like in other applications; not on top of a dialog. */
function usePaletteKey(onOpen: () => void): void {
  const open = useEffectEvent(onOpen);
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      if (!document.querySelector("dialog[open]")) open();
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
}

/** A new page starts at its top, also for screen readers; filters do not move the focus. */
function useFocusAfterMove(scope: RouteScope, main: React.RefObject<HTMLElement | null>): void {
  const first = useRef(true);
  const path = scope.path;
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    if (path) main.current?.focus({ preventScroll: true });
    main.current?.scrollTo({ top: 0 });
  }, [path, main]);
}
