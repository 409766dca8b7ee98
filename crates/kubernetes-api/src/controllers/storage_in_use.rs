//! Invariant: a claim, volume or VolumeAttributesClass that is being deleted remains as long as it
//! is used, and is then deleted. Admission gives each of them a finalizer; this controller restores
//! it if it is removed before the deletion.
//!
//! Watches these kinds, and pods, which show what is used. A claim is used by pods that have a
//! node, a volume while it is bound, a class by the claims and volumes that name it. Owns no
//! condition.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use apiserver::admission::built_in::volumes;
use apiserver::fields::{items, str_of};
use apiserver::registry::{ListQuery, Registry, Subscription, Update, WriteOptions, WriteTarget};
use apiserver::resource::Resource;
use apiserver::retry::RETRY;
use apiserver::stored::Stored;
use apiserver::strategy::Operation;
use serde_json::Value;

/// The protected kinds and their finalizers.
const PROTECTED: [(&str, &str, &str); 3] = [
    ("", "persistentvolumeclaims", volumes::CLAIM),
    ("", "persistentvolumes", volumes::VOLUME),
    ("storage.k8s.io", "volumeattributesclasses", volumes::CLASS),
];

/// An object: index into [`PROTECTED`], namespace and name.
type ProtectedObject = (usize, String, String);

/// Reconciles until the resources are no longer served. Failures are logged and retried with
/// backoff.
pub async fn run(registry: Arc<Registry>) {
    let find = |(group, plural, _): (&str, &str, &str)| registry.find(group, plural);
    let kinds: Option<Vec<Arc<Resource>>> = PROTECTED.into_iter().map(find).collect();
    let (Some(kinds), Some(pods)) = (kinds, registry.find("", "pods")) else { return };
    let [claims, volumes, classes] = [0, 1, 2].map(|kind| registry.subscribe(&kinds[kind]));
    let mut subscriptions =
        Subscriptions { claims, volumes, classes, pods: registry.subscribe(&pods) };
    let mut due = BTreeMap::new();
    let mut failures = 0;
    loop {
        let more = if failures == 0 {
            subscriptions.next(&mut due).await
        } else {
            let pause = RETRY.delay(failures);
            tokio::time::timeout(pause, subscriptions.next(&mut due)).await.unwrap_or(true)
        };
        if !more {
            return;
        }
        failures = match update_finalizers(&registry, &kinds, &mut due).await {
            Ok(()) => 0,
            Err(status) => {
                tracing::warn!(%status, "cannot update the finalizers of storage in use");
                failures + 1
            }
        };
    }
}

struct Subscriptions {
    claims: Subscription,
    volumes: Subscription,
    classes: Subscription,
    pods: Subscription,
}

impl Subscriptions {
    /// Waits for a change, and records the objects whose finalizer must be removed or added.
    /// Returns false when a resource is no longer served.
    async fn next(&mut self, due: &mut BTreeMap<ProtectedObject, Value>) -> bool {
        let (kind, update) = tokio::select! {
            update = self.claims.next() => (Some(0), update),
            update = self.volumes.next() => (Some(1), update),
            update = self.classes.next() => (Some(2), update),
            update = self.pods.next() => (None, update),
        };
        let Some(update) = update else { return false };
        let Some(kind) = kind else { return true };
        let mut record = |object: &Stored, deleted: bool| {
            let key = (kind, object.namespace.to_string(), object.name.to_string());
            let value = object.value();
            // The finalizer must be present before the deletion and may be removed afterwards.
            if !deleted && value.is_terminating() == has_finalizer(&value, kind) {
                due.insert(key, value);
            } else {
                due.remove(&key);
            }
        };
        match update {
            Update::Reset(objects) => objects.iter().for_each(|object| record(object, false)),
            Update::Events(events) => {
                events.iter().for_each(|event| record(&event.current, event.deleted));
            }
        }
        true
    }
}

fn has_finalizer(object: &Value, kind: usize) -> bool {
    object.finalizers().iter().any(|finalizer| *finalizer == PROTECTED[kind].2)
}

/// Removes the finalizer of every terminating object that is not used, and adds missing finalizers.
async fn update_finalizers(
    registry: &Registry,
    kinds: &[Arc<Resource>],
    due: &mut BTreeMap<ProtectedObject, Value>,
) -> Result<(), Status> {
    let keys: Vec<ProtectedObject> = due.keys().cloned().collect();
    for key in keys {
        let object = &due[&key];
        let (kind, namespace, name) = &key;
        let is_terminating = object.is_terminating();
        let is_used = match kind {
            _ if !is_terminating => false,
            0 => is_claim_used(registry, object).await?,
            1 => object["status"]["phase"] == "Bound",
            _ => is_class_used(registry, name).await?,
        };
        if is_used {
            continue;
        }
        let target = WriteTarget { resource: &kinds[*kind], namespace, name };
        let finalizer = PROTECTED[*kind].2;
        let change = |old: &Value| {
            let mut new = old.clone();
            let others = items(&old["metadata"]["finalizers"]).iter();
            let mut finalizers: Vec<Value> =
                others.filter(|one| *one != finalizer).cloned().collect();
            if !old.is_terminating() {
                finalizers.push(finalizer.into());
            }
            new.set_meta("finalizers", finalizers);
            Ok(new)
        };
        let own = WriteOptions::system();
        let options = WriteOptions { manager: "kube-controller-manager".to_owned(), ..own };
        match registry.modify(&target, Operation::Update, &options, &change).await {
            Err(status) if status.code != 404 => return Err(status),
            _ => drop(due.remove(&key)),
        }
    }
    Ok(())
}

/// Whether a pod that has a node names the claim, or has created it.
async fn is_claim_used(registry: &Registry, claim: &Value) -> Result<bool, Status> {
    let Some(pods) = registry.find("", "pods") else { return Ok(false) };
    let pods = registry.list(&pods, &ListQuery::all(claim.namespace())).await?;
    Ok(pods.items.iter().any(|pod| {
        let pod = pod.value();
        let mut volumes = items(&pod["spec"]["volumes"]).iter();
        let made = |volume: &Value| format!("{}-{}", pod.name(), str_of(&volume["name"]));
        !str_of(&pod["spec"]["nodeName"]).is_empty()
            && volumes.any(|volume| {
                volume["persistentVolumeClaim"]["claimName"] == claim.name()
                    || volume["ephemeral"].is_object() && made(volume) == claim.name()
            })
    }))
}

async fn is_class_used(registry: &Registry, class: &str) -> Result<bool, Status> {
    for plural in ["persistentvolumeclaims", "persistentvolumes"] {
        let Some(resource) = registry.find("", plural) else { continue };
        let list = registry.list(&resource, &ListQuery::all("")).await?;
        let names = |object: &Value| {
            object["spec"]["volumeAttributesClassName"] == class
                || object["status"]["currentVolumeAttributesClassName"] == class
        };
        if list.items.iter().any(|object| names(&object.value())) {
            return Ok(true);
        }
    }
    Ok(false)
}
