/** The top bar: home, the scope path, search, help, user. */

import { IconHelp, IconSearch } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { paths } from "../paths.ts";
import { IconButton } from "../ui/Button.tsx";
import { Logo } from "../ui/Logo.tsx";
import { Key } from "../ui/Tags.tsx";
import type { RouteScope } from "./routeScope.ts";
import { ScopePath } from "./ScopePath.tsx";
import styles from "./TopBar.module.css";
import { UserMenu } from "./UserMenu.tsx";

interface TopBarProps {
  scope: RouteScope;
  onSearch(): void;
  onHelp(): void;
  onAbout(): void;
}

export function TopBar({ scope, onSearch, onHelp, onAbout }: TopBarProps) {
  return (
    <header className={styles.top}>
      <Link className={styles.logo} aria-label="Drover, all clusters" {...paths.clusters()}>
        <Logo size={22} />
        <span>Drover</span>
      </Link>
      <ScopePath scope={scope} />
      <span className="grow" />
      <button type="button" className={styles.find} onClick={onSearch}>
        <IconSearch size={16} stroke={1.5} aria-hidden="true" />
        <span className="grow">Search or jump to…</span>
        <Key>Ctrl K</Key>
      </button>
      <IconButton label="Keyboard map" onClick={onHelp}>
        <IconHelp size={16} stroke={1.5} />
      </IconButton>
      <UserMenu onAbout={onAbout} />
    </header>
  );
}
