//! Nodes as callers read and write them: what is stored here is read, and what the node itself
//! holds is written in its cluster.
//!
//! Labels, annotations, taints, cordons and removals go into the cluster as the caller, who needs
//! the right there and the same right on the node's object here. The object here follows the
//! cluster; an answer waits for that, so that the next read shows what was written.

use std::sync::Arc;
use std::time::Duration;

use api_management::Node;
use feature_kit::downstream::{Location, with_cluster_timeout};
use feature_kit::view::{in_clusters, resource_of};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Node as KubeNode;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use rest_view::store::{DeleteOptions, may};
use rest_view::{ApiError, Context, Key, Store};
use serde_json::{Value, json};

use super::change::Change;

/// Longest wait until the object here has followed. After that the response shows what was
/// requested.
const FOLLOW_TIME_MAX: Duration = Duration::from_secs(5);
const FOLLOW_INTERVAL: Duration = Duration::from_millis(100);
/// Attempts of a write of taints that meets concurrent writes.
const WRITE_ATTEMPTS_MAX: usize = 5;

async fn allowed(context: &Context<'_>, verb: &str, key: &Key) -> Result<bool, ApiError> {
    match may(context, verb, &resource_of::<Node>(), key).await {
        Err(error) if error.is_forbidden() => Ok(false),
        other => other,
    }
}

/// See the module.
#[derive(Clone)]
pub struct NodeStore {
    inner: Arc<dyn Store>,
}

impl Default for NodeStore {
    fn default() -> Self {
        Self { inner: in_clusters::<Node>() }
    }
}

impl NodeStore {
    /// Changes the downstream node as the caller, and waits until the object here shows it.
    pub async fn change(
        &self,
        context: &Context<'_>,
        stored: &Value,
        change: &Change,
    ) -> Result<(), ApiError> {
        require(context, "update", stored).await?;
        let name = joined_name(stored)?;
        let client = client_of(context, stored);
        with_cluster_timeout(write(&client, name, change)).await?;
        self.follow(context, &Key::of(stored), |read| match read {
            Ok(stored) => change.is_in(stored),
            Err(error) => error.is_not_found() || error.is_forbidden(),
        })
        .await;
        Ok(())
    }

    /// Reads the object here until it is as `is_shown` wants it.
    async fn follow(
        &self,
        context: &Context<'_>,
        key: &Key,
        is_shown: impl Fn(&Result<Value, ApiError>) -> bool + Send + Sync,
    ) {
        let shown = async {
            while !is_shown(&self.inner.get(context, key).await) {
                tokio::time::sleep(FOLLOW_INTERVAL).await;
            }
        };
        if tokio::time::timeout(FOLLOW_TIME_MAX, shown).await.is_err() {
            let node = &key.name;
            tracing::warn!(node, "what was written of a node is not shown here yet");
        }
    }

    async fn remove(
        &self,
        context: &Context<'_>,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<Option<Value>, ApiError> {
        let stored = self.inner.get(context, key).await?;
        require(context, "delete", &stored).await?;
        let client = client_of(context, &stored);
        let is_there = match name_of(&stored) {
            Some(name) => with_cluster_timeout(delete(&client, name)).await?,
            None => false,
        };
        if !is_there {
            // Nothing in the cluster would take the object here along.
            return self.inner.delete(context, key, options).await;
        }
        let is_gone = |read: &Result<Value, ApiError>| matches!(read, Err(error) if error.is_not_found() || error.is_forbidden());
        self.follow(context, key, is_gone).await;
        match self.inner.get(context, key).await {
            Ok(stored) => Ok(Some(stored)),
            Err(error) if error.is_not_found() || error.is_forbidden() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn update(
        &self,
        context: &Context<'_>,
        key: &Key,
        mut object: Value,
    ) -> Result<Value, ApiError> {
        let current = self.inner.get(context, key).await?;
        if current["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
            let text = format!("node \"{}\" was changed meanwhile; read it again", key.name);
            return Err(ApiError::new(409, "Conflict", text));
        }
        let change = Change::between(&current, &object);
        let requested = std::mem::replace(&mut object["status"], current["status"].clone());
        let mut written = self.inner.replace(context, key, object).await?;
        if change.is_empty() {
            return Ok(written);
        }
        self.change(context, &current, &change).await?;
        match self.inner.get(context, key).await {
            Ok(followed) if change.is_in(&followed) => Ok(followed),
            _ => {
                written["status"] = requested;
                Ok(written)
            }
        }
    }
}

/// As [`name_of`], for what needs the node.
///
/// # Errors
/// 409 while it has not joined its cluster.
pub fn joined_name(stored: &Value) -> Result<&str, ApiError> {
    let text = "the node has not joined its cluster yet";
    name_of(stored).ok_or_else(|| ApiError::new(409, "NotReady", text))
}

/// The name of the downstream node, also while nothing is observed of it yet.
fn name_of(stored: &Value) -> Option<&str> {
    let names = [&stored["status"]["nodeName"], &stored["spec"]["requestedHostname"]];
    names.into_iter().filter_map(Value::as_str).find(|name| !name.is_empty())
}

/// Acts in the node's cluster as the caller.
pub fn client_of(context: &Context<'_>, stored: &Value) -> Client {
    Location { cluster: Key::of(stored).namespace, project: None }.client(context)
}

/// Refuses who lacks the right on the object here.
///
/// # Errors
/// 403, or the API did not answer.
pub async fn require(context: &Context<'_>, verb: &str, stored: &Value) -> Result<(), ApiError> {
    let key = Key::of(stored);
    if allowed(context, verb, &key).await? {
        return Ok(());
    }
    let text = format!("you may not {verb} node \"{}:{}\"", key.namespace, key.name);
    Err(ApiError::new(403, "Forbidden", text))
}

async fn write(client: &Client, name: &str, change: &Change) -> Result<(), ApiError> {
    let api: Api<KubeNode> = Api::all(client.clone());
    let mut attempt = 1;
    loop {
        let current = match change.needs_current() {
            true => Some(json!(api.get(name).await?)),
            false => None,
        };
        let patch = Patch::Merge(change.patch(current.as_ref()));
        match api.patch(name, &PatchParams::default(), &patch).await.map_err(ApiError::from) {
            Ok(_) => return Ok(()),
            Err(error) if error.is_conflict() && attempt < WRITE_ATTEMPTS_MAX => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Whether there was such a node.
async fn delete(client: &Client, name: &str) -> Result<bool, ApiError> {
    let api: Api<KubeNode> = Api::all(client.clone());
    match api.delete(name, &DeleteParams::default()).await.map_err(ApiError::from) {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

impl Store for NodeStore {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.inner)
    }
    fn replace<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(self.update(context, key, object))
    }
    fn delete<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        Box::pin(self.remove(context, key, options))
    }
}
