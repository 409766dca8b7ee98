//! Types that `DynamicSchema` objects describe: in the view from when an object is seen until it is
//! deleted.

use std::sync::Arc;

use api_management::DynamicSchema;
use controller::{Change, Reflector, Whole};
use kube::ResourceExt;
use rest_view::{FieldLocation, LiveTypes};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// The type with fields for the options of drivers, and where a stored cluster has them.
const CLUSTER: &str = "cluster";
const CONFIG_PATH: &str = "spec.genericEngineConfig";
/// The version whose types the objects change.
const VERSION: &str = "/v3";

/// Applies each object to `types`, and each change, until `stop`.
pub(super) fn follow(
    types: LiveTypes,
    schemas: Arc<Reflector<Whole<DynamicSchema>>>,
    stop: CancellationToken,
) {
    schemas.subscribe(move |change| {
        let old = match change {
            Change::Applied { old, .. } => old.and_then(|old| described(old)),
            Change::Deleted { .. } => described(change.object()),
        };
        let new = match change {
            Change::Applied { new, .. } => described(new),
            Change::Deleted { .. } => None,
        };
        types.change(|registry| {
            if let Some(old) = &old {
                old.remove(registry, VERSION);
            }
            if let Some(new) = &new
                && !new.add(registry, VERSION)
            {
                tracing::warn!(kind = new.id, "a dynamic schema is embedded in no type");
            }
        });
        true
    });
    // A watch goes on while somebody holds it.
    tokio::spawn(async move {
        stop.cancelled().await;
        drop(schemas);
    });
}

fn described(schema: &DynamicSchema) -> Option<rest_view::DynamicSchema> {
    let name = schema.name_any();
    let object = json!({"metadata": {"name": name}, "spec": schema.spec});
    match rest_view::DynamicSchema::of(&object) {
        Ok(mut described) => {
            // The options of all drivers are at one place of a cluster.
            if described.embeds && described.id == CLUSTER {
                for field in &mut described.fields {
                    field.location = Some(FieldLocation::path(CONFIG_PATH));
                }
            }
            Some(described)
        }
        Err(error) => {
            tracing::warn!(name, %error, "a dynamic schema describes no type");
            None
        }
    }
}
