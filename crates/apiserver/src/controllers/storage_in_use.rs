//! Keeps true: a claim, volume or class of attributes that is being deleted stays as long as it is
//! used, and goes then. Admission gives each of them the finalizer that holds it; whoever took it away
//! finds it there again.
//!
//! Watches these kinds, and pods: what is used shows there. A claim is used by pods that have a node,
//! a volume while it is bound, a class by the claims and volumes that name it.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::Value;

use crate::admission::built_in::volumes;
use crate::backoff::pause_after;
use crate::fields::{items, str_of};
use crate::registry::{ListQuery, Registry, Subscription, Target, Update, WriteOptions};
use crate::resource::Resource;
use crate::stored::Stored;
use crate::strategy::Operation;

/// What is held, and by which finalizer.
const HELD: [(&str, &str, &str); 3] = [
    ("", "persistentvolumeclaims", volumes::CLAIM),
    ("", "persistentvolumes", volumes::VOLUME),
    ("storage.k8s.io", "volumeattributesclasses", volumes::CLASS),
];

/// Index into [`HELD`], namespace and name.
type Place = (usize, String, String);

/// Runs until the resources are served no more.
pub async fn run(registry: Arc<Registry>) {
    let find = |(group, plural, _): (&str, &str, &str)| registry.find(group, plural);
    let kinds: Option<Vec<Arc<Resource>>> = HELD.into_iter().map(find).collect();
    let (Some(kinds), Some(pods)) = (kinds, registry.find("", "pods")) else { return };
    let [claims, volumes, classes] = [0, 1, 2].map(|kind| registry.subscribe(&kinds[kind]));
    let mut followed = Followed { claims, volumes, classes, pods: registry.subscribe(&pods) };
    let mut due = BTreeMap::new();
    let mut failures = 0;
    loop {
        let more = if failures == 0 {
            followed.next(&mut due).await
        } else {
            let pause = pause_after(failures);
            tokio::time::timeout(pause, followed.next(&mut due)).await.unwrap_or(true)
        };
        if !more {
            return;
        }
        failures = match settle(&registry, &kinds, &mut due).await {
            Ok(()) => 0,
            Err(status) => {
                tracing::warn!(%status, "cannot hold storage, or let go of it");
                failures + 1
            }
        };
    }
}

struct Followed {
    claims: Subscription,
    volumes: Subscription,
    classes: Subscription,
    pods: Subscription,
}

impl Followed {
    /// Waits for a change, and notes what is due: a finalizer to be taken or to be set. False when a
    /// resource is gone.
    async fn next(&mut self, due: &mut BTreeMap<Place, Value>) -> bool {
        let (kind, update) = tokio::select! {
            update = self.claims.next() => (Some(0), update),
            update = self.volumes.next() => (Some(1), update),
            update = self.classes.next() => (Some(2), update),
            update = self.pods.next() => (None, update),
        };
        let Some(update) = update else { return false };
        let Some(kind) = kind else { return true };
        let mut note = |object: &Stored, deleted: bool| {
            let place = (kind, object.namespace.to_string(), object.name.to_string());
            let value = object.value();
            // It must hold until its end begins, and may let go from then on.
            if !deleted && value.is_terminating() == holds(&value, kind) {
                due.insert(place, value);
            } else {
                due.remove(&place);
            }
        };
        match update {
            Update::Reset(objects) => objects.iter().for_each(|object| note(object, false)),
            Update::Events(events) => {
                events.iter().for_each(|event| note(&event.current, event.deleted));
            }
        }
        true
    }
}

fn holds(object: &Value, kind: usize) -> bool {
    object.finalizers().iter().any(|finalizer| *finalizer == HELD[kind].2)
}

/// Takes the finalizer from everything that ends and that nobody uses, and sets it where it lacks.
async fn settle(
    registry: &Registry,
    kinds: &[Arc<Resource>],
    due: &mut BTreeMap<Place, Value>,
) -> Result<(), Status> {
    let places: Vec<Place> = due.keys().cloned().collect();
    for place in places {
        let object = &due[&place];
        let (kind, namespace, name) = &place;
        let ends = object.is_terminating();
        let used = match kind {
            _ if !ends => false,
            0 => is_claim_used(registry, object).await?,
            1 => object["status"]["phase"] == "Bound",
            _ => is_class_used(registry, name).await?,
        };
        if used {
            continue;
        }
        let target = Target { resource: &kinds[*kind], namespace, name };
        let finalizer = HELD[*kind].2;
        let change = |old: &Value| {
            let mut new = old.clone();
            let others = items(&old["metadata"]["finalizers"]).iter();
            let mut wanted: Vec<Value> = others.filter(|one| *one != finalizer).cloned().collect();
            if !old.is_terminating() {
                wanted.push(finalizer.into());
            }
            new.set_meta("finalizers", wanted);
            Ok(new)
        };
        let own = WriteOptions::system();
        let options = WriteOptions { manager: "kube-controller-manager".to_owned(), ..own };
        match registry.modify(&target, Operation::Update, &options, &change).await {
            Err(status) if status.code != 404 => return Err(status),
            _ => drop(due.remove(&place)),
        }
    }
    Ok(())
}

/// Whether a pod that has a node names the claim, or has made it.
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
