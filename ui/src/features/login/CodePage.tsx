/** The end of a login that was begun in a terminal: the code that the terminal waits for. */

import { useEffect } from "react";
import { buttonClass } from "../../ui/Button.tsx";
import { Code } from "../../ui/Code.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { LoginFrame } from "./LoginFrame.tsx";
import styles from "./LoginPage.module.css";

/** What stands after the # of the address, which no server sees. */
interface ReturnedCode {
  code: string;
  /** A test of a provider's configuration, rather than a login. */
  isTest: boolean;
  /** Where the terminal listens on this computer. */
  port?: number;
}

export function readCode(hash: string): ReturnedCode | undefined {
  const values = new URLSearchParams(hash.replace(/^#/, ""));
  const code = values.get("code");
  if (!code) return undefined;
  const port = Number(values.get("port"));
  const isPort = Number.isInteger(port) && port > 0 && port < 65_536;
  return { code, isTest: values.get("for") === "test", ...(isPort ? { port } : {}) };
}

export function CodePage({ hash, version }: { hash: string; version: string }) {
  const returned = readCode(hash);
  useEffect(() => {
    document.title = "Code for a terminal · Drover";
  }, []);
  return (
    <LoginFrame version={version}>
      <div className={styles.form}>
        {returned ? (
          <Returned {...returned} />
        ) : (
          <>
            <h1>No code</h1>
            <p className="second">This page shows the code of a login that began in a terminal.</p>
          </>
        )}
      </div>
    </LoginFrame>
  );
}

function Returned({ code, isTest, port }: ReturnedCode) {
  return (
    <>
      <h1>{isTest ? "You logged in" : "Log in on the command line"}</h1>
      <p className="second">
        {isTest
          ? "Paste this code where the test of the provider began."
          : "A program waits for your login. It will be able to do all that you can do."}
      </p>
      {port && (
        <a
          className={`${buttonClass("primary")} ${styles.provider}`}
          href={`http://127.0.0.1:${port}/?code=${encodeURIComponent(code)}`}
        >
          Continue in the terminal
        </a>
      )}
      {port && (
        <p className="small third">If it runs on another computer, paste this code there:</p>
      )}
      <Code text={code} what="the code" focused={!port} />
      <Notice tone="wait" title="Did you begin this?">
        Give the code to nobody, and close this page if you did not run the command yourself. It is
        good once, for a few minutes.
      </Notice>
    </>
  );
}
