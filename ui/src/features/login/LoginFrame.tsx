/** The frame of the pages before a login: a picture beside what is to be done. */

import { GUIDE } from "../../paths.ts";
import { Logo } from "../../ui/Logo.tsx";
import { HerdArt } from "./HerdArt.tsx";
import styles from "./LoginPage.module.css";

interface LoginFrameProps {
  version: string;
  children: React.ReactNode;
}

export function LoginFrame({ version, children }: LoginFrameProps) {
  return (
    <div className={styles.login}>
      <header className={styles.art}>
        <HerdArt />
        <p className={styles.logo}>
          <Logo size={28} />
          Drover
        </p>
        <div>
          <p className={styles.host}>{window.location.host}</p>
          <p className="second">Every Kubernetes cluster you have, in one place.</p>
        </div>
      </header>
      <main className={styles.main}>
        {children}
        <p className={styles.version}>
          Drover {version}
          <a className="link" href={GUIDE}>
            Guide
          </a>
          <a className="link" href="/licences.txt">
            Licences
          </a>
        </p>
      </main>
    </div>
  );
}
