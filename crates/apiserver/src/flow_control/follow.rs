//! Applies the stored FlowSchemas and priority levels to the running ones, maintains the initial
//! objects, and sets the condition `Dangling` of each FlowSchema.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::{FlowControl, GROUP, bootstrap};
use crate::registry::{ListQuery, Registry, WriteOptions, WriteTarget};
use crate::resource::Resource;
use crate::strategy::Operation;
use crate::tasks::{Tasks, WatchedTasks};

const SCHEMAS: &str = "flowschemas";
const LEVELS: &str = "prioritylevelconfigurations";

/// Follows the objects until it is dropped.
pub struct FlowControlFollower {
    tasks: Tasks,
}

impl FlowControlFollower {
    /// Its tasks, for the health checks.
    pub fn tasks(&self) -> WatchedTasks {
        self.tasks.watched()
    }
}

/// Writes the initial objects that are missing, puts the stored objects in force, and follows them
/// until the result is dropped.
///
/// # Errors
/// One of the two kinds is not served, or the objects cannot be read or written: the server must
/// not start.
pub async fn start(
    registry: &Arc<Registry>,
    control: &Arc<FlowControl>,
) -> Result<FlowControlFollower, Status> {
    let (schemas, levels) = (resource(registry, SCHEMAS)?, resource(registry, LEVELS)?);
    ensure_initial(registry, &schemas, &levels, false).await?;
    registry.fresh().await?;
    apply_stored(registry, control, &schemas, &levels).await?;
    let mut tasks = Tasks::default();
    tasks.spawn(follow(registry.clone(), control.clone(), schemas, levels));
    Ok(FlowControlFollower { tasks })
}

async fn follow(
    registry: Arc<Registry>,
    control: Arc<FlowControl>,
    schemas: Arc<Resource>,
    levels: Arc<Resource>,
) {
    let (mut of_schemas, mut of_levels) =
        (registry.subscribe(&schemas), registry.subscribe(&levels));
    loop {
        let update = tokio::select! {
            update = of_schemas.next() => update,
            update = of_levels.next() => update,
        };
        if update.is_none() {
            return;
        }
        let outcome = async {
            apply_stored(&registry, &control, &schemas, &levels).await?;
            ensure_initial(&registry, &schemas, &levels, true).await?;
            ensure_conditions(&registry, &schemas, &levels).await
        };
        if let Err(status) = outcome.await {
            // The next change retries. A conflict means that there is a next change.
            tracing::warn!(%status, "cannot apply the stored FlowSchemas and priority levels; retrying at their next change");
        }
    }
}

async fn objects(registry: &Registry, resource: &Resource) -> Result<Vec<Value>, Status> {
    let list = registry.list(resource, &ListQuery::all("")).await?;
    Ok(list.items.iter().map(|object| object.value()).collect())
}

async fn apply_stored(
    registry: &Registry,
    control: &FlowControl,
    schemas: &Resource,
    levels: &Resource,
) -> Result<(), Status> {
    control.configure(&objects(registry, schemas).await?, &objects(registry, levels).await?);
    Ok(())
}

/// Creates or restores initial objects. With `mandatory_only`, optional objects that were deleted
/// stay deleted until the next start.
async fn ensure_initial(
    registry: &Registry,
    schemas: &Resource,
    levels: &Resource,
    mandatory_only: bool,
) -> Result<(), Status> {
    for (resource, initial) in
        [(levels, bootstrap::priority_levels()), (schemas, bootstrap::flow_schemas())]
    {
        let stored = objects(registry, resource).await?;
        let stored = &stored;
        // Concurrently, so that the storage commits them together.
        let writes = initial.into_iter().map(|desired| async move {
            let options = WriteOptions::system();
            match stored.iter().find(|object| object.name() == desired.name()) {
                None if mandatory_only && !bootstrap::is_mandatory(desired.name()) => {}
                None => match registry.create(resource, "", desired, &options).await {
                    Err(status) if status.reason != "AlreadyExists" => return Err(status),
                    _ => {}
                },
                Some(stored) => {
                    if let Some(next) = bootstrap::desired_update(stored, &desired) {
                        let target = WriteTarget { resource, namespace: "", name: desired.name() };
                        registry.replace(&target, Operation::Update, next, &options).await?;
                    }
                }
            }
            Ok::<(), Status>(())
        });
        try_join_all(writes).await?;
    }
    Ok(())
}

/// Sets on each FlowSchema whether the level that it names exists.
async fn ensure_conditions(
    registry: &Registry,
    schemas: &Resource,
    levels: &Resource,
) -> Result<(), Status> {
    let levels: BTreeSet<String> =
        objects(registry, levels).await?.iter().map(|level| level.name().to_owned()).collect();
    for schema in objects(registry, schemas).await? {
        let level = schema["spec"]["priorityLevelConfiguration"]["name"].as_str();
        let level = level.unwrap_or_default();
        let desired = condition(level, levels.contains(level));
        if has_condition(&schema, &desired) {
            continue;
        }
        let target = WriteTarget { resource: schemas, namespace: "", name: schema.name() };
        let change = |current: &Value| {
            let mut next = current.clone();
            next["status"]["conditions"] = json!([desired.clone()]);
            Ok(next)
        };
        let options = WriteOptions::system();
        match registry.modify(&target, Operation::UpdateStatus, &options, &change).await {
            Err(status) if status.code != 404 => return Err(status),
            _ => {}
        }
    }
    Ok(())
}

fn condition(level: &str, exists: bool) -> Value {
    let (status, reason, message) = match exists {
        true => ("False", "Found", "it exists"),
        false => ("True", "NotFound", "there is no such object"),
    };
    let message = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named \"{level}\" \
         {} {message}",
        if exists { "and" } else { "but" },
    );
    json!({
        "type": "Dangling",
        "status": status,
        "lastTransitionTime": jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "reason": reason,
        "message": message,
    })
}

fn has_condition(schema: &Value, desired: &Value) -> bool {
    let conditions = schema["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| {
        ["type", "status", "reason", "message"].iter().all(|key| condition[key] == desired[key])
    })
}

fn resource(registry: &Registry, plural: &str) -> Result<Arc<Resource>, Status> {
    registry.find(GROUP, plural).ok_or_else(Status::unknown_resource)
}
