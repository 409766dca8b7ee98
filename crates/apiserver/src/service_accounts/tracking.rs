//! On which day a token that lives in a Secret was used last.
//!
//! The day is a label of the Secret, from which kube-controller-manager's cleaner tells whether
//! anybody needs the token; a ConfigMap says since when days are kept. The cleaner first marks a
//! Secret invalid, by another label, and removes it later: whoever misses it takes the mark away.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::legacy::SECRET_TYPE;
use crate::registry::{Registry, Target, WriteOptions};
use crate::strategy::Operation;

pub(super) const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const NAMESPACE: &str = "kube-system";
const CONFIG_MAP: &str = "kube-apiserver-legacy-service-account-token-tracking";
/// Entry of the ConfigMap.
const SINCE: &str = "since";
const DAY: &str = "%Y-%m-%d";
/// Uses that wait to be written. One that finds no room is told again by the next use.
const WAITING_MAX: usize = 256;

/// A Secret whose token was used on a day that its label does not say.
pub struct Use {
    namespace: String,
    name: String,
    day: String,
}

/// Takes uses, and gives them to [`record`].
pub fn channel() -> (mpsc::Sender<Use>, mpsc::Receiver<Use>) {
    mpsc::channel(WAITING_MAX)
}

/// Tells that the token of `secret` was used at `now` (unix seconds), unless its label says so.
pub(super) fn tell(uses: &mpsc::Sender<Use>, secret: &Value, now: i64) {
    let Ok(now) = Timestamp::from_second(now) else { return };
    let day = now.strftime(DAY).to_string();
    if secret["metadata"]["labels"][LAST_USED] == day {
        return;
    }
    let (namespace, name) = (secret.namespace().to_owned(), secret.name().to_owned());
    // Losing one is harmless, waiting in the way of a request is not.
    let _ = uses.try_send(Use { namespace, name, day });
}

/// Publishes since when days are kept, and writes them until nobody can tell of a use any more.
pub async fn record(registry: Arc<Registry>, mut uses: mpsc::Receiver<Use>) {
    if let Err(status) = publish(&registry).await {
        tracing::warn!(%status, "since when uses of tokens are kept was not published");
    }
    while let Some(used) = uses.recv().await {
        if let Err(status) = mark(&registry, &used).await {
            let (namespace, name) = (&used.namespace, &used.name);
            tracing::warn!(%status, namespace, name, "the use of a token was not written");
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
    let target = Target { resource: &secrets, namespace: &used.namespace, name: &used.name };
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
