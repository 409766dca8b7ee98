/** The top bar: home, the scope path, search, help, person. */

import { IconHelp, IconSearch } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { paths } from "../paths.ts";
import { IconButton } from "../ui/Button.tsx";
import { Logo } from "../ui/Logo.tsx";
import { Key } from "../ui/Tags.tsx";
import { PersonMenu } from "./PersonMenu.tsx";
import type { Place } from "./place.ts";
import { ScopePath } from "./ScopePath.tsx";
import styles from "./TopBar.module.css";

interface TopBarProps {
  place: Place;
  onSearch(): void;
  onHelp(): void;
}

export function TopBar({ place, onSearch, onHelp }: TopBarProps) {
  return (
    <header className={styles.top}>
      <Link className={styles.logo} aria-label="Drover, all clusters" {...paths.clusters()}>
        <Logo size={22} />
        <span>Drover</span>
      </Link>
      <ScopePath place={place} />
      <span className="grow" />
      <button type="button" className={styles.find} onClick={onSearch}>
        <IconSearch size={16} stroke={1.5} aria-hidden="true" />
        <span className="grow">Search or jump to…</span>
        <Key>Ctrl K</Key>
      </button>
      <IconButton label="Keyboard map" onClick={onHelp}>
        <IconHelp size={16} stroke={1.5} />
      </IconButton>
      <PersonMenu />
    </header>
  );
}
