/**
 * The scope path: all clusters, then the cluster, which is a switcher that filters as one types.
 */

import { Combobox, useCombobox } from "@mantine/core";
import { IconChevronDown } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { clustersQuery } from "../api/queries.ts";
import type { Cluster } from "../api/types.ts";
import {
  byRef,
  isProduction,
  matches,
  sorted,
  stateWord,
  toneOf,
} from "../features/clusters/model.ts";
import { monogram } from "../lib/names.ts";
import { paths } from "../paths.ts";
import { Shape } from "../ui/StateMark.tsx";
import { Monogram, Tag } from "../ui/Tags.tsx";
import type { RouteScope } from "./routeScope.ts";
import styles from "./ScopePath.module.css";

/** More are found by typing. */
const OPTIONS_SHOWN = 50;

const EXACTLY = { exact: true, includeSearch: false } as const;

export function ScopePath({ scope }: { scope: RouteScope }) {
  const { data: clusters = [] } = useQuery(clustersQuery);
  const cluster = scope.cluster ? byRef(clusters, scope.cluster) : undefined;
  return (
    <nav
      className={styles.path}
      data-within={scope.cluster ? "cluster" : undefined}
      aria-label="Where you are"
    >
      <Link className={styles.part} data-home activeOptions={EXACTLY} {...paths.clusters()}>
        All clusters
      </Link>
      {scope.cluster && (
        <span className={styles.separator} aria-hidden="true">
          /
        </span>
      )}
      <Switcher scope={scope} cluster={cluster} clusters={clusters} />
    </nav>
  );
}

interface SwitcherProps {
  scope: RouteScope;
  cluster: Cluster | undefined;
  clusters: readonly Cluster[];
}

function Switcher({ scope, cluster, clusters }: SwitcherProps) {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const combobox = useCombobox({
    onDropdownClose: () => {
      combobox.resetSelectedOption();
      setText("");
    },
    onDropdownOpen: () => combobox.focusSearchInput(),
  });
  const open = combobox.dropdownOpened;
  const found = open ? sorted(clusters, "name", false).filter((one) => matches(one, text)) : [];
  const choose = (name: string) => {
    combobox.closeDropdown();
    // Another cluster, the same page.
    const to = {
      overview: paths.cluster(name),
      nodes: paths.nodes(name),
      conditions: paths.conditions(name),
      audit: paths.clusterAudit(name),
    };
    void navigate(to[scope.view]);
  };
  return (
    <Combobox
      store={combobox}
      position="bottom-start"
      offset={4}
      width={300}
      // Inside the landmark of its button.
      withinPortal={false}
      onOptionSubmit={choose}
      transitionProps={{ transition: "fade", duration: 120, exitDuration: 80 }}
    >
      <Combobox.Target targetType="button">
        <button
          type="button"
          className={styles.part}
          data-bare={!scope.cluster || undefined}
          title={cluster?.name}
          onClick={() => combobox.toggleDropdown()}
        >
          {scope.cluster && <Monogram letters={monogram(scope.cluster)} />}
          {scope.cluster && <b>{cluster?.name ?? scope.cluster}</b>}{" "}
          {cluster && isProduction(cluster) && (
            <span className={styles.tag}>
              <Tag inverse>production</Tag>
            </span>
          )}
          <span className="hidden">{scope.cluster ? " – switch cluster" : "Go to a cluster"}</span>
          <IconChevronDown size={12} stroke={2} aria-hidden="true" />
        </button>
      </Combobox.Target>
      <Combobox.Dropdown className={styles.dropdown}>
        <Combobox.Search
          classNames={{ input: styles.search ?? "" }}
          aria-label="Find a cluster"
          placeholder="Find a cluster"
          value={text}
          spellCheck={false}
          onChange={(event) => {
            setText(event.currentTarget.value);
            combobox.selectFirstOption();
          }}
        />
        <Combobox.Options className={styles.options} aria-label="Clusters">
          {found.slice(0, OPTIONS_SHOWN).map((one) => (
            <Combobox.Option
              key={one.id}
              value={one.name}
              className={styles.option}
              active={one.id === cluster?.id}
            >
              <Monogram letters={monogram(one.name)} />
              <span className="grow ellipsis">{one.name}</span>
              {isProduction(one) && <Tag>production</Tag>}
              <Shape tone={toneOf(one)} />
              <span className="hidden">{stateWord(one)}</span>
            </Combobox.Option>
          ))}
          {open && found.length === 0 && (
            // Screen readers ignore a list box without an option.
            <Combobox.Option value="" disabled className={styles.empty}>
              No cluster matches
            </Combobox.Option>
          )}
        </Combobox.Options>
      </Combobox.Dropdown>
    </Combobox>
  );
}
