//! Updates the authorizer, the initial policy and the aggregated roles from the storage.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::Value;

use super::RBAC_GROUP;
use super::aggregation::aggregate_all;
use super::bootstrap::{PolicyAction, compare_with_stored};
use super::rbac::{RbacAuthorizer, RbacKind};
use crate::registry::{
    DeleteOptions, ListQuery, Registry, Subscription, Update, WriteOptions, WriteTarget,
};
use crate::resource::Resource;
use crate::strategy::Operation;
use crate::tasks::{Tasks, WatchedTasks};

/// Follows the four RBAC kinds and reconciles aggregated roles, until dropped.
pub struct RbacFollower {
    tasks: Tasks,
}

impl RbacFollower {
    /// The tasks of the follower, for their supervision.
    pub fn tasks(&self) -> WatchedTasks {
        self.tasks.watched()
    }
}

/// Adds to the stored roles and bindings what they lack of `policy`, loads all of them into `rbac`,
/// then follows their changes in tasks. When this returns, decisions are based on the stored
/// objects. The four RBAC resources must be installed.
///
/// # Errors
/// A kind is not served, or the policy cannot be written. The caller does not serve requests.
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
        apply_update(rbac, kind, first);
        tasks.spawn(follow(rbac.clone(), kind, subscription));
    }
    tasks.spawn(reconcile_aggregated_roles(registry.clone()));
    Ok(RbacFollower { tasks })
}

async fn follow(rbac: Arc<RbacAuthorizer>, kind: RbacKind, mut subscription: Subscription) {
    while let Some(update) = subscription.next().await {
        apply_update(&rbac, kind, update);
    }
    tracing::debug!(kind = kind.kind(), "no longer served, no longer followed");
}

fn apply_update(rbac: &RbacAuthorizer, kind: RbacKind, update: Update) {
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

/// Writes what the stored roles and bindings lack of `policy`, then updates aggregated roles.
///
/// # Errors
/// The status of the first write that fails.
pub async fn apply_policy(registry: &Registry, policy: Vec<Value>) -> Result<(), Status> {
    for kind in RbacKind::ALL {
        let resource = resource(registry, kind)?;
        let desired = policy.iter().filter(|object| object["kind"] == kind.kind());
        // Concurrently, so that the storage commits them in one batch.
        let writes = desired.map(|object| apply_object(registry, &resource, object.clone()));
        futures::future::try_join_all(writes).await?;
    }
    update_aggregated_roles(registry).await
}

async fn apply_object(
    registry: &Registry,
    resource: &Resource,
    desired: Value,
) -> Result<(), Status> {
    let options = WriteOptions::system();
    let name = desired.name().to_owned();
    let namespace = desired.namespace().to_owned();
    let target = WriteTarget { resource, namespace: &namespace, name: &name };
    let stored = match registry.get(resource, &namespace, &name).await {
        Ok(stored) => Some(stored.value()),
        Err(status) if status.code == 404 => None,
        Err(status) => return Err(status),
    };
    match compare_with_stored(stored.as_ref(), &desired) {
        PolicyAction::Retain => {}
        PolicyAction::Create(object) => {
            registry.create(resource, &namespace, object, &options).await?;
        }
        PolicyAction::Update(object) => {
            registry.replace(&target, Operation::Update, object, &options).await?;
        }
        PolicyAction::Recreate(object) => {
            registry.delete(&target, &DeleteOptions::default(), &options).await?;
            registry.create(resource, &namespace, object, &options).await?;
        }
    }
    Ok(())
}

/// Updates aggregated roles whenever a ClusterRole changed.
async fn reconcile_aggregated_roles(registry: Arc<Registry>) {
    let Ok(resource) = resource(&registry, RbacKind::ClusterRole) else { return };
    let mut subscription = registry.subscribe(&resource);
    while subscription.next().await.is_some() {
        if let Err(status) = update_aggregated_roles(&registry).await {
            // Retried on the next change; a conflict means that there is one.
            tracing::warn!(%status, "aggregated roles were not brought up to date");
        }
    }
}

/// Updates the rules of all aggregating roles.
async fn update_aggregated_roles(registry: &Registry) -> Result<(), Status> {
    let resource = resource(registry, RbacKind::ClusterRole)?;
    let list = registry.list(&resource, &ListQuery::all("")).await?;
    let mut roles: Vec<Value> = list.items.iter().map(|object| object.value()).collect();
    for role in aggregate_all(&mut roles) {
        let target = WriteTarget { resource: &resource, namespace: "", name: role.name() };
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
