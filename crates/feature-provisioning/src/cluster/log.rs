//! The provisioning log of each cluster: what Drover and the driver say while they make, change and
//! remove it. The last lines are in a ConfigMap `provisioning-log` of the cluster's namespace, key
//! `log`, as in Rancher; this server has them in memory as well.

use std::collections::{BTreeMap, HashMap, VecDeque};

use controller::{Attempt, ReconcileError, ensure, status};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use kube::{Api, Client};
use parking_lot::Mutex;

/// Name of the ConfigMap.
pub const NAME: &str = "provisioning-log";
const KEY: &str = "log";
/// Lines of one cluster; older ones are dropped.
const LINES_MAX: usize = 1_000;
/// Of all lines of one cluster.
const BYTES_MAX: usize = 256 << 10;
/// What is shown for a secret.
const REDACTED: &str = "(secret)";

/// The last lines of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTail {
    /// Number of the first line here: how many were dropped before it.
    pub first: u64,
    /// Each with its time and who says it.
    pub lines: VecDeque<String>,
}

impl LogTail {
    fn push(&mut self, line: String) {
        self.lines.push_back(line);
        let bytes =
            |lines: &VecDeque<String>| lines.iter().map(|line| line.len() + 1).sum::<usize>();
        while self.lines.len() > LINES_MAX || bytes(&self.lines) > BYTES_MAX {
            self.lines.pop_front();
            self.first += 1;
        }
    }

    fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// The log of one cluster in this server.
#[derive(Default)]
struct ClusterLog {
    tail: LogTail,
    is_stored: bool,
}

/// The logs of all clusters.
pub struct ProvisioningLogs {
    client: Client,
    logs: Mutex<HashMap<String, ClusterLog>>,
}

impl ProvisioningLogs {
    /// `client` may read and write the ConfigMaps.
    pub fn new(client: Client) -> Self {
        Self { client, logs: Mutex::default() }
    }

    /// Adds a line. `source`: who says it. `secrets` are not shown.
    pub fn add(&self, cluster: &str, source: &str, text: &str, secrets: &[String]) {
        let line = format!("{} {source}: {}", status::now(), redact(text, secrets));
        let mut logs = self.logs.lock();
        let log = logs.entry(cluster.to_owned()).or_default();
        log.tail.push(line);
        log.is_stored = false;
    }

    /// Reads what an earlier server wrote, if this one has nothing yet.
    ///
    /// # Errors
    /// The API refused.
    pub async fn load(&self, cluster: &str) -> Result<(), ReconcileError> {
        if self.logs.lock().contains_key(cluster) {
            return Ok(());
        }
        let found = self.api(cluster).get_opt(NAME).await;
        let found = found.attempt(|| format!("read the provisioning log of \"{cluster}\""))?;
        let text = found.and_then(|map| map.data?.remove(KEY)).unwrap_or_default();
        let lines = text.lines().map(str::to_owned).collect();
        let log = ClusterLog { tail: LogTail { first: 0, lines }, is_stored: true };
        self.logs.lock().entry(cluster.to_owned()).or_insert(log);
        Ok(())
    }

    /// Stores the lines that are new. One that cannot be stored now comes with the next ones.
    pub async fn store(&self, cluster: &str) {
        let text = match self.logs.lock().get_mut(cluster) {
            Some(log) if !log.is_stored => {
                log.is_stored = true;
                log.tail.text()
            }
            _ => return,
        };
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(NAME.to_owned()),
                namespace: Some(cluster.to_owned()),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([(KEY.to_owned(), text)])),
            ..ConfigMap::default()
        };
        if let Err(error) = ensure::like(&self.api(cluster), &map).await {
            tracing::warn!(cluster, error = error.chain(), "provisioning log not stored");
            if let Some(log) = self.logs.lock().get_mut(cluster) {
                log.is_stored = false;
            }
        }
    }

    /// The last lines.
    pub fn tail(&self, cluster: &str) -> LogTail {
        self.logs.lock().get(cluster).map(|log| log.tail.clone()).unwrap_or_default()
    }

    /// Forgets a cluster; its ConfigMap goes with its namespace.
    pub fn forget(&self, cluster: &str) {
        self.logs.lock().remove(cluster);
    }

    fn api(&self, cluster: &str) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), cluster)
    }
}

/// The text without secrets.
pub fn redact(text: &str, secrets: &[String]) -> String {
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), REDACTED))
}
