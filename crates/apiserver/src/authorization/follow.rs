//! Keeping the authorizer, the initial policy and the aggregated roles in step with what is stored.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::Value;

use super::RBAC_GROUP;
use super::aggregation::aggregate_all;
use super::bootstrap::{Reconciled, reconciled};
use super::rbac::{RbacAuthorizer, RbacKind};
use crate::registry::{
    DeleteOptions, ListQuery, Registry, Subscription, Target, Update, WriteOptions,
};
use crate::resource::Resource;
use crate::strategy::Operation;
use crate::tasks::{Tasks, WatchedTasks};

/// Follows the four kinds and gathers aggregated roles, until dropped.
pub struct RbacFollower {
    tasks: Tasks,
}

impl RbacFollower {
    /// What it does in tasks of its own.
    pub fn tasks(&self) -> WatchedTasks {
        self.tasks.watched()
    }
}

/// Adds what the stored roles and bindings lack of `policy`, loads all into `rbac`, then follows
/// changes in tasks of its own. When this returns, decisions are right. The four RBAC resources
/// must be installed.
///
/// # Errors
/// When one of them is not served, or the policy cannot be written.
pub async fn start(
    registry: &Arc<Registry>,
    rbac: &Arc<RbacAuthorizer>,
    policy: Vec<Value>,
) -> Result<RbacFollower, Status> {
    apply_policy(registry, policy).await?;
    registry.fresh().await?;
    let mut tasks = Tasks::default();
    for kind in RbacKind::ALL {
        let mut subscription = registry.subscribe(&resource(registry, kind)?);
        let first = subscription.next().await.ok_or_else(Status::unknown_resource)?;
        take(rbac, kind, first);
        tasks.spawn(follow(rbac.clone(), kind, subscription));
    }
    tasks.spawn(aggregate(registry.clone()));
    Ok(RbacFollower { tasks })
}

async fn follow(rbac: Arc<RbacAuthorizer>, kind: RbacKind, mut subscription: Subscription) {
    while let Some(update) = subscription.next().await {
        take(&rbac, kind, update);
    }
    tracing::debug!(kind = kind.kind(), "no longer served, no longer followed");
}

fn take(rbac: &RbacAuthorizer, kind: RbacKind, update: Update) {
    match update {
        Update::Reset(objects) => {
            let values: Vec<Value> = objects.iter().map(|object| object.value()).collect();
            rbac.replace_all(kind, &values);
        }
        Update::Events(events) => {
            for event in events {
                let object = &event.current;
                if event.deleted {
                    rbac.remove(kind, &object.namespace, &object.name);
                } else {
                    rbac.put(kind, &object.value());
                }
            }
        }
    }
}

/// Writes what the stored roles and bindings lack of `policy`, aggregated rules included.
///
/// # Errors
/// The first write that fails.
pub async fn apply_policy(registry: &Registry, policy: Vec<Value>) -> Result<(), Status> {
    for kind in RbacKind::ALL {
        let resource = resource(registry, kind)?;
        let wanted = policy.iter().filter(|object| object["kind"] == kind.kind());
        // Together, so that the storage commits them together.
        let writes = wanted.map(|object| apply(registry, &resource, object.clone()));
        futures::future::try_join_all(writes).await?;
    }
    gather(registry).await
}

async fn apply(registry: &Registry, resource: &Resource, wanted: Value) -> Result<(), Status> {
    let options = WriteOptions::system();
    let name = wanted.name().to_owned();
    let namespace = wanted.namespace().to_owned();
    let target = Target { resource, namespace: &namespace, name: &name };
    let stored = match registry.get(resource, &namespace, &name).await {
        Ok(stored) => Some(stored.value()),
        Err(status) if status.code == 404 => None,
        Err(status) => return Err(status),
    };
    match reconciled(stored.as_ref(), &wanted) {
        Reconciled::Keep => {}
        Reconciled::Create(object) => {
            registry.create(resource, &namespace, object, &options).await?;
        }
        Reconciled::Update(object) => {
            registry.replace(&target, Operation::Update, object, &options).await?;
        }
        Reconciled::Recreate(object) => {
            registry.delete(&target, &DeleteOptions::default(), &options).await?;
            registry.create(resource, &namespace, object, &options).await?;
        }
    }
    Ok(())
}

/// Gathers again whenever a ClusterRole changed.
async fn aggregate(registry: Arc<Registry>) {
    let Ok(resource) = resource(&registry, RbacKind::ClusterRole) else { return };
    let mut subscription = registry.subscribe(&resource);
    while subscription.next().await.is_some() {
        if let Err(status) = gather(&registry).await {
            // The next change tries again; a conflict means that there is one.
            tracing::warn!(%status, "aggregated roles were not brought up to date");
        }
    }
}

/// Brings the rules of all aggregating roles up to date.
async fn gather(registry: &Registry) -> Result<(), Status> {
    let resource = resource(registry, RbacKind::ClusterRole)?;
    let list = registry.list(&resource, &ListQuery::all("")).await?;
    let mut roles: Vec<Value> = list.items.iter().map(|object| object.value()).collect();
    for role in aggregate_all(&mut roles) {
        let target = Target { resource: &resource, namespace: "", name: role.name() };
        let set = |current: &Value| {
            let mut changed = current.clone();
            changed["rules"] = role["rules"].clone();
            Ok(changed)
        };
        let options = WriteOptions::system();
        registry.modify(&target, Operation::Update, &options, &set).await?;
    }
    Ok(())
}

fn resource(registry: &Registry, kind: RbacKind) -> Result<Arc<Resource>, Status> {
    registry.find(RBAC_GROUP, kind.plural()).ok_or_else(Status::unknown_resource)
}
