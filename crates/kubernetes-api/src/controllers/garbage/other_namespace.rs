//! Owners in other namespaces, which count as absent: an event on the dependent reports them.

use api_meta::status::Status;
use apiserver::registry::{ListQuery, ReadVersion, Registry};
use apiserver::resource::Resource;
use apiserver::stored::Stored;
use serde_json::json;

use super::collect::options;
use super::graph::Owner;

const COMPONENT: &str = "garbage-collector-controller";
const REASON: &str = "OwnerRefInvalidNamespace";
/// The namespace of events about cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";

/// Writes an event when the owner exists in another namespace than that of the object. A failed
/// write is only logged.
pub async fn report(registry: &Registry, resource: &Resource, object: &Stored, owner: &Owner) {
    if !is_in_other_namespace(registry, object, owner).await {
        return;
    }
    if let Err(status) = write(registry, resource, object, owner).await {
        tracing::debug!(key = %object.key, %status, "cannot write the event of an owner reference");
    }
}

async fn is_in_other_namespace(registry: &Registry, object: &Stored, owner: &Owner) -> bool {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let catalog = registry.catalog();
    let Some(owning) = catalog.all().find(|r| r.group == group && *r.kind == *owner.kind) else {
        return false;
    };
    if !owning.namespaced {
        return false;
    }
    let query = ListQuery { version: ReadVersion::Any, ..ListQuery::all("") };
    let Ok(others) = registry.list(owning, &query).await else { return false };
    others.items.iter().any(|other| other.uid == owner.uid && other.namespace != object.namespace)
}

async fn write(
    registry: &Registry,
    resource: &Resource,
    object: &Stored,
    owner: &Owner,
) -> Result<(), Status> {
    let catalog = registry.catalog();
    let Some(events) = catalog.get("", "v1", "events") else { return Ok(()) };
    let namespace = match &*object.namespace {
        "" => DEFAULT_NAMESPACE,
        namespace => namespace,
    };
    let now = jiff::Timestamp::now();
    let seconds = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let Owner { api_version, kind, name, uid, .. } = owner;
    let message = format!(
        "ownerRef [{api_version}/{kind}, namespace: {0}, name: {name}, uid: {uid}] does not exist \
         in namespace \"{0}\"",
        object.namespace
    );
    let mut about = json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "name": object.name,
        "uid": object.uid,
    });
    if !object.namespace.is_empty() {
        about["namespace"] = (*object.namespace).into();
    }
    let event = json!({
        "metadata": {
            "name": format!("{}.{:x}", object.name, now.as_nanosecond()),
            "namespace": namespace,
        },
        "involvedObject": about,
        "type": "Warning",
        "reason": REASON,
        "message": message,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "count": 1,
        "firstTimestamp": seconds,
        "lastTimestamp": seconds,
    });
    registry.create(events, namespace, event, &options()).await.map(drop)
}
