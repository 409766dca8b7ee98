/**
 * A menu below a button: arrows move, letters jump, Escape closes. The style is Drover's, the
 * behaviour Mantine's.
 */

import { Menu as Behaviour } from "@mantine/core";
import { IconCheck, IconLock } from "@tabler/icons-react";
import styles from "./Menu.module.css";

const FADE = { transition: "fade", duration: 120, exitDuration: 80 } as const;

interface MenuProps {
  label: string;
  /** One button. */
  trigger: React.ReactElement;
  children: React.ReactNode;
}

export function Menu({ label, trigger, children }: MenuProps) {
  return (
    <Behaviour
      position="bottom-end"
      offset={4}
      transitionProps={FADE}
      withInitialFocusPlaceholder={false}
      // Inside the landmark of its button.
      withinPortal={false}
    >
      <Behaviour.Target>{trigger}</Behaviour.Target>
      <Behaviour.Dropdown className={styles.menu} aria-label={label}>
        {children}
      </Behaviour.Dropdown>
    </Behaviour>
  );
}

interface MenuItemProps {
  icon?: React.ReactNode;
  danger?: boolean;
  /** Why the user has no right to it, and who can grant it: shown below its text. */
  deniedBecause?: string | undefined;
  onSelect(): void;
  children: React.ReactNode;
}

export function MenuItem({ icon, danger, deniedBecause, onSelect, children }: MenuItemProps) {
  const denied = deniedBecause !== undefined;
  return (
    <Behaviour.Item
      className={styles.item}
      data-danger={(danger && !denied) || undefined}
      ref={denied ? markDisabled : undefined}
      data-denied={denied || undefined}
      closeMenuOnClick={!denied}
      onClick={(event) => {
        if (denied) return;
        // A dialog that opens now returns the focus to the element that has it.
        triggerOf(event.currentTarget)?.focus();
        onSelect();
      }}
    >
      <span className={styles.icon}>
        {denied ? <IconLock size={16} stroke={1.5} aria-hidden="true" /> : icon}
      </span>
      <span className="grow">
        {children}
        {denied && <span className={styles.why}>{deniedBecause}</span>}
      </span>
    </Behaviour.Item>
  );
}

interface MenuLinkProps {
  icon?: React.ReactNode;
  /** An address outside the interface. */
  href: string;
  children: React.ReactNode;
}

/** An entry that leads out of the interface: a link, which can be opened in a tab of its own. */
export function MenuLink({ icon, href, children }: MenuLinkProps) {
  return (
    <Behaviour.Item component="a" className={styles.item} href={href}>
      <span className={styles.icon}>{icon}</span>
      <span className="grow">{children}</span>
    </Behaviour.Item>
  );
}

/** Not with Mantine's own property: then arrow keys skip it, and its reason is not read. */
function markDisabled(item: HTMLElement | null): void {
  item?.setAttribute("aria-disabled", "true");
}

interface MenuChoiceProps {
  icon?: React.ReactNode;
  checked: boolean;
  onSelect(): void;
  children: string;
}

/** One of several choices, of which one is selected. */
export function MenuChoice({ icon, checked, onSelect, children }: MenuChoiceProps) {
  return (
    <Behaviour.RadioItem
      className={styles.item}
      value={children}
      checked={checked}
      checkIcon={NO_INDICATOR}
      closeMenuOnClick
      onChange={onSelect}
    >
      <span className={styles.icon}>{icon}</span>
      <span className="grow">{children}</span>
      {checked && <IconCheck size={16} stroke={1.5} aria-hidden="true" />}
    </Behaviour.RadioItem>
  );
}

/** The tick is at the end instead. */
const NO_INDICATOR = <span hidden />;

function triggerOf(item: HTMLElement): HTMLElement | null {
  const id = item.closest("[role=menu]")?.getAttribute("aria-labelledby");
  return id ? document.getElementById(id) : null;
}

export function MenuGroup({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <fieldset className={styles.group}>
      <legend className={styles.title}>{title}</legend>
      {children}
    </fieldset>
  );
}
