//! Keeping what is in force in step with the stored FlowSchemas and priority levels, the initial
//! ones in place, and each FlowSchema's condition true.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::{FlowControl, GROUP, bootstrap};
use crate::registry::{ListQuery, Registry, Target, WriteOptions};
use crate::resource::Resource;
use crate::strategy::Operation;
use crate::tasks::{Tasks, WatchedTasks};

const SCHEMAS: &str = "flowschemas";
const LEVELS: &str = "prioritylevelconfigurations";

/// Follows the objects, until dropped.
pub struct FlowControlFollower {
    tasks: Tasks,
}

impl FlowControlFollower {
    /// What it does in tasks of its own.
    pub fn tasks(&self) -> WatchedTasks {
        self.tasks.watched()
    }
}

/// Writes the initial objects that are missing, puts what is stored in force, and goes on doing so.
///
/// # Errors
/// When one of the two kinds is not served, or the objects cannot be written.
pub async fn start(
    registry: &Arc<Registry>,
    control: &Arc<FlowControl>,
) -> Result<FlowControlFollower, Status> {
    let (schemas, levels) = (resource(registry, SCHEMAS)?, resource(registry, LEVELS)?);
    keep_initial(registry, &schemas, &levels, false).await?;
    registry.fresh().await?;
    take(registry, control, &schemas, &levels).await?;
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
            take(&registry, &control, &schemas, &levels).await?;
            keep_initial(&registry, &schemas, &levels, true).await?;
            keep_conditions(&registry, &schemas, &levels).await
        };
        if let Err(status) = outcome.await {
            // The next change tries again; a conflict means that there is one.
            tracing::warn!(%status, "priority and fairness is not as the stored objects say");
        }
    }
}

async fn objects(registry: &Registry, resource: &Resource) -> Result<Vec<Value>, Status> {
    let list = registry.list(resource, &ListQuery::all("")).await?;
    Ok(list.items.iter().map(|object| object.value()).collect())
}

async fn take(
    registry: &Registry,
    control: &FlowControl,
    schemas: &Resource,
    levels: &Resource,
) -> Result<(), Status> {
    control.configure(&objects(registry, schemas).await?, &objects(registry, levels).await?);
    Ok(())
}

/// Writes what the initial objects lack. `mandatory_only`: others that were deleted stay so until
/// the next start.
async fn keep_initial(
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
        // Together, so that the storage commits them together.
        let writes = initial.into_iter().map(|wanted| async move {
            let options = WriteOptions::system();
            match stored.iter().find(|object| object.name() == wanted.name()) {
                None if mandatory_only && !bootstrap::is_mandatory(wanted.name()) => {}
                None => match registry.create(resource, "", wanted, &options).await {
                    Err(status) if status.reason != "AlreadyExists" => return Err(status),
                    _ => {}
                },
                Some(stored) => {
                    if let Some(next) = bootstrap::restored(stored, &wanted) {
                        let target = Target { resource, namespace: "", name: wanted.name() };
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

/// Says of each FlowSchema whether the level that it names is there.
async fn keep_conditions(
    registry: &Registry,
    schemas: &Resource,
    levels: &Resource,
) -> Result<(), Status> {
    let levels: BTreeSet<String> =
        objects(registry, levels).await?.iter().map(|level| level.name().to_owned()).collect();
    for schema in objects(registry, schemas).await? {
        let level = schema["spec"]["priorityLevelConfiguration"]["name"].as_str();
        let level = level.unwrap_or_default();
        let wanted = condition(level, levels.contains(level));
        if is_told(&schema, &wanted) {
            continue;
        }
        let target = Target { resource: schemas, namespace: "", name: schema.name() };
        let change = |current: &Value| {
            let mut next = current.clone();
            next["status"]["conditions"] = json!([wanted.clone()]);
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
    let (status, reason, found) = match exists {
        true => ("False", "Found", "it exists"),
        false => ("True", "NotFound", "there is no such object"),
    };
    let message = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named \"{level}\" \
         {} {found}",
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

fn is_told(schema: &Value, wanted: &Value) -> bool {
    let conditions = schema["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| {
        ["type", "status", "reason", "message"].iter().all(|key| condition[key] == wanted[key])
    })
}

fn resource(registry: &Registry, plural: &str) -> Result<Arc<Resource>, Status> {
    registry.find(GROUP, plural).ok_or_else(Status::unknown_resource)
}
