//! Records on which day a token that is stored in a Secret was used last.
//!
//! The day is a label of the Secret, from which the cleaner of kube-controller-manager decides
//! whether the token is still needed; a ConfigMap contains the day since which uses are recorded.
//! The cleaner first marks a Secret invalid, by another label, and deletes it later: to keep the
//! token, remove that label.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::legacy::SECRET_TYPE;
use crate::registry::{Registry, WriteOptions, WriteTarget};
use crate::strategy::Operation;

pub(super) const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const NAMESPACE: &str = "kube-system";
const CONFIG_MAP: &str = "kube-apiserver-legacy-service-account-token-tracking";
/// Key in the ConfigMap.
const SINCE: &str = "since";
const DAY: &str = "%Y-%m-%d";
/// Uses that wait to be written. One that finds no room is reported again by the next use.
const WAITING_MAX: usize = 256;

/// A use of the token of a Secret, on a day that its label does not have yet.
pub struct Use {
    namespace: String,
    name: String,
    day: String,
}

/// A bounded channel of uses to [`record`].
pub fn channel() -> (mpsc::Sender<Use>, mpsc::Receiver<Use>) {
    mpsc::channel(WAITING_MAX)
}

/// Reports that the token of `secret` was used at `now` (unix seconds), unless its label has that
/// day already.
pub(super) fn report_use(uses: &mpsc::Sender<Use>, secret: &Value, now: i64) {
    let Ok(now) = Timestamp::from_second(now) else { return };
    let day = now.strftime(DAY).to_string();
    if secret["metadata"]["labels"][LAST_USED] == day {
        return;
    }
    let (namespace, name) = (secret.namespace().to_owned(), secret.name().to_owned());
    // Losing one is harmless; delaying a request is not.
    let _ = uses.try_send(Use { namespace, name, day });
}

/// Publishes the day since which uses are recorded, and writes uses until all senders are dropped.
pub async fn record(registry: Arc<Registry>, mut uses: mpsc::Receiver<Use>) {
    if let Err(status) = publish(&registry).await {
        tracing::warn!(%status, "cannot publish the day since which uses of tokens are recorded");
    }
    while let Some(used) = uses.recv().await {
        if let Err(status) = mark(&registry, &used).await {
            let (namespace, name) = (&used.namespace, &used.name);
            tracing::warn!(%status, namespace, name, "cannot record the use of a token");
        }
    }
}

async fn publish(registry: &Registry) -> Result<(), Status> {
    let Some(maps) = registry.find("", "configmaps") else { return Ok(()) };
    let today = Timestamp::now().strftime(DAY).to_string();
    let map = json!({"metadata": {"name": CONFIG_MAP}, "data": {SINCE: today}});
    match registry.create(&maps, NAMESPACE, map, &WriteOptions::system()).await {
        Err(status) if status.reason == "AlreadyExists" => Ok(()),
        outcome => outcome.map(drop),
    }
}

async fn mark(registry: &Registry, used: &Use) -> Result<(), Status> {
    let Some(secrets) = registry.find("", "secrets") else { return Ok(()) };
    let target = WriteTarget { resource: &secrets, namespace: &used.namespace, name: &used.name };
    let change = |current: &Value| {
        let mut changed = current.clone();
        if current["type"] == SECRET_TYPE {
            changed["metadata"]["labels"][LAST_USED] = json!(used.day);
        }
        Ok(changed)
    };
    let options = WriteOptions::system();
    match registry.modify(&target, Operation::Update, &options, &change).await {
        Err(status) if status.code == 404 => Ok(()),
        outcome => outcome.map(drop),
    }
}
