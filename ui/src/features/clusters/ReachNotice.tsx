/** Warns before an import that agents on other machines could not reach this server. */

import { useQuery } from "@tanstack/react-query";
import { settingQuery } from "../../api/queries.ts";
import { isOwnMachine, portOf } from "../../lib/addresses.ts";
import { Code } from "../../ui/Code.tsx";
import { Notice } from "../../ui/Notice.tsx";
import styles from "./ImportDialog.module.css";

export function ReachNotice() {
  const serverUrl = useQuery(settingQuery("server-url"));
  const url = serverUrl.data ?? "";
  if (!isOwnMachine(url)) return null;
  const better = `https://NAME${portOf(url)}`;
  return (
    <div className={styles.reach}>
      <Notice tone="warn" title={`Agents on other machines cannot reach ${url}.`}>
        <p>
          That address, the setting <code>server-url</code>, leads each machine to itself, and pods
          too. Give it a name that the cluster resolves; start the server with{" "}
          <code className="whole">--server-url {better}</code>, so that its certificate has the
          name, or change the setting if the certificate has it already:
        </p>
        <Code
          text={`drover settings set server-url ${better}`}
          what="the command that changes server-url"
        />
      </Notice>
    </div>
  );
}
