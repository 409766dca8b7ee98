//! Invariant: every live namespace has the ServiceAccount `default` and the ConfigMap
//! `kube-root-ca.crt` with the current certificate.
//!
//! Watches namespaces, and the two kinds by name; each change maps to its namespace. Owns no
//! condition.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use apiserver::registry::{Registry, Subscription, Update, WriteOptions, WriteTarget};
use apiserver::retry::RETRY;
use apiserver::service_accounts::DEFAULT_ACCOUNT;
use apiserver::stored::Stored;
use apiserver::strategy::Operation;
use serde_json::{Value, json};

/// The name of the ConfigMap with the CA certificate.
pub const CERTIFICATE: &str = "kube-root-ca.crt";
const CERTIFICATE_KEY: &str = "ca.crt";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when \
    using internal endpoints such as the internal service IP or kubernetes.default.svc. No other \
    usage is guaranteed across distributions of Kubernetes clusters.";

/// Reconciles until the resources are no longer served. `root_ca_pem` is the CA certificate; if it
/// is empty, no ConfigMaps are created. Failures are retried with backoff.
pub async fn run(registry: Arc<Registry>, root_ca_pem: String) {
    let find = |plural: &str| registry.find("", plural);
    let (Some(namespaces), Some(accounts), Some(maps)) =
        (find("namespaces"), find("serviceaccounts"), find("configmaps"))
    else {
        return;
    };
    let mut subscriptions = Subscriptions {
        namespaces: registry.subscribe(&namespaces),
        accounts: registry.subscribe(&accounts),
        maps: registry.subscribe(&maps),
    };
    let mut pending = BTreeSet::new();
    let mut failures = 0;
    loop {
        let more = if failures == 0 {
            subscriptions.next(&mut pending).await
        } else {
            let pause = RETRY.delay(failures);
            let next = tokio::time::timeout(pause, subscriptions.next(&mut pending)).await;
            next.unwrap_or(true)
        };
        if !more {
            return;
        }
        let mut failed = BTreeSet::new();
        for namespace in std::mem::take(&mut pending) {
            if let Err(status) = reconcile(&registry, &namespace, &root_ca_pem).await {
                tracing::warn!(namespace, %status, "cannot fill a namespace");
                failed.insert(namespace);
            }
        }
        failures = if failed.is_empty() { 0 } else { failures + 1 };
        pending = failed;
    }
}

struct Subscriptions {
    namespaces: Subscription,
    accounts: Subscription,
    maps: Subscription,
}

impl Subscriptions {
    /// Waits for a change and adds its namespaces to `pending`. Returns false when a resource is no
    /// longer served.
    async fn next(&mut self, pending: &mut BTreeSet<String>) -> bool {
        let (update, name) = tokio::select! {
            update = self.namespaces.next() => (update, None),
            update = self.accounts.next() => (update, Some(DEFAULT_ACCOUNT)),
            update = self.maps.next() => (update, Some(CERTIFICATE)),
        };
        let Some(update) = update else { return false };
        let mut add = |object: &Stored| match name {
            None => {
                pending.insert(object.name.to_string());
            }
            Some(name) if *object.name == *name => {
                pending.insert(object.namespace.to_string());
            }
            Some(_) => {}
        };
        match update {
            Update::Reset(objects) => objects.iter().for_each(|object| add(object)),
            Update::Events(events) => events.iter().for_each(|event| add(&event.current)),
        }
        true
    }
}

/// The field manager is that of Kubernetes, where another program writes these objects.
fn options() -> WriteOptions {
    WriteOptions { manager: "kube-controller-manager".to_owned(), ..WriteOptions::system() }
}

async fn reconcile(registry: &Registry, namespace: &str, ca_pem: &str) -> Result<(), Status> {
    let Some(namespaces) = registry.find("", "namespaces") else { return Ok(()) };
    match registry.get(&namespaces, "", namespace).await {
        Ok(found) if !found.value().is_terminating() => {}
        Ok(_) => return Ok(()),
        Err(status) if status.code == 404 => return Ok(()),
        Err(status) => return Err(status),
    }
    if let Some(accounts) = registry.find("", "serviceaccounts")
        && is_missing(registry.get(&accounts, namespace, DEFAULT_ACCOUNT).await)?
    {
        let account = json!({"metadata": {"name": DEFAULT_ACCOUNT}});
        ignore_races(registry.create(&accounts, namespace, account, &options()).await)?;
    }
    if ca_pem.is_empty() {
        return Ok(());
    }
    let Some(maps) = registry.find("", "configmaps") else { return Ok(()) };
    let found = match registry.get(&maps, namespace, CERTIFICATE).await {
        Err(status) if status.code == 404 => None,
        other => Some(other?.value()),
    };
    let data = json!({CERTIFICATE_KEY: ca_pem});
    match found {
        None => {
            let map = json!({
                "metadata": {
                    "name": CERTIFICATE,
                    "annotations": {"kubernetes.io/description": DESCRIPTION},
                },
                "data": data,
            });
            ignore_races(registry.create(&maps, namespace, map, &options()).await)
        }
        Some(found) if found["data"] == data => Ok(()),
        Some(_) => {
            let target = WriteTarget { resource: &maps, namespace, name: CERTIFICATE };
            let change = |old: &Value| {
                let mut new = old.clone();
                new["data"] = data.clone();
                Ok(new)
            };
            let options = options();
            registry.modify(&target, Operation::Update, &options, &change).await.map(drop)
        }
    }
}

fn is_missing<T>(found: Result<T, Status>) -> Result<bool, Status> {
    match found {
        Ok(_) => Ok(false),
        Err(status) if status.code == 404 => Ok(true),
        Err(status) => Err(status),
    }
}

/// Ignores that the namespace was deleted or the object created meanwhile.
fn ignore_races<T>(result: Result<T, Status>) -> Result<(), Status> {
    match result {
        Err(status) if !matches!(status.code, 403 | 404 | 409) => Err(status),
        _ => Ok(()),
    }
}
