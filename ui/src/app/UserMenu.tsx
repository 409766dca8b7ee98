/** The signed-in user: name, theme, password, signing out. */

import {
  IconBaselineDensityMedium,
  IconBaselineDensitySmall,
  IconBook,
  IconDeviceDesktop,
  IconInfoCircle,
  IconKey,
  IconLogout,
  IconMoon,
  IconSun,
  IconTicket,
} from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { sentence } from "../api/errors.ts";
import { logout, sessionQuery } from "../api/queries.ts";
import { monogram } from "../lib/names.ts";
import { GUIDE, paths } from "../paths.ts";
import { chooseDensity, type Density, useDensity } from "../ui/density.ts";
import { Menu, MenuChoice, MenuGroup, MenuItem, MenuLink } from "../ui/Menu.tsx";
import { notify } from "../ui/Toasts.tsx";
import { chooseTheme, type Theme, useTheme } from "./theme.ts";
import styles from "./UserMenu.module.css";

const THEMES: [Theme, string, typeof IconSun][] = [
  ["system", "As the system", IconDeviceDesktop],
  ["light", "Light", IconSun],
  ["dark", "Dark", IconMoon],
];

const DENSITIES: [Density, string, typeof IconSun][] = [
  ["normal", "Normal", IconBaselineDensityMedium],
  ["dense", "Dense", IconBaselineDensitySmall],
];

export function UserMenu({ onAbout }: { onAbout(): void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const theme = useTheme();
  const density = useDensity();
  const { data: user } = useQuery(sessionQuery);
  const name = user?.name || user?.username || "";
  const leave = useMutation({
    mutationFn: () => logout(client),
    onSuccess: () => void navigate(paths.login()),
    onError: (error) => notify("err", `Still signed in: ${sentence(error)}`),
  });
  return (
    <Menu
      label="You"
      trigger={
        <button type="button" className={styles.user} title={name}>
          <span aria-hidden="true">{monogram(name)}</span>
          <span className="hidden">You: {name}</span>
        </button>
      }
    >
      <div className={styles.who}>
        <div className="strong">{name}</div>
        {user?.username && <div className="small third">{user.username}</div>}
      </div>
      <MenuGroup title="Theme">
        {THEMES.map(([value, word, Icon]) => (
          <MenuChoice
            key={value}
            icon={<Icon size={16} stroke={1.5} />}
            checked={theme === value}
            onSelect={() => chooseTheme(value)}
          >
            {word}
          </MenuChoice>
        ))}
      </MenuGroup>
      <MenuGroup title="Rows of tables">
        {DENSITIES.map(([value, word, Icon]) => (
          <MenuChoice
            key={value}
            icon={<Icon size={16} stroke={1.5} />}
            checked={density === value}
            onSelect={() => chooseDensity(value)}
          >
            {word}
          </MenuChoice>
        ))}
      </MenuGroup>
      <div className={styles.last}>
        <MenuLink icon={<IconBook size={16} stroke={1.5} />} href={GUIDE}>
          Guide
        </MenuLink>
        <MenuItem icon={<IconInfoCircle size={16} stroke={1.5} />} onSelect={onAbout}>
          About Drover
        </MenuItem>
        <MenuItem
          icon={<IconTicket size={16} stroke={1.5} />}
          onSelect={() => void navigate(paths.tokens())}
        >
          Your tokens
        </MenuItem>
        <MenuItem
          icon={<IconKey size={16} stroke={1.5} />}
          onSelect={() => void navigate(paths.password())}
        >
          Change password
        </MenuItem>
        <MenuItem icon={<IconLogout size={16} stroke={1.5} />} onSelect={() => leave.mutate()}>
          Sign out
        </MenuItem>
      </div>
    </Menu>
  );
}
