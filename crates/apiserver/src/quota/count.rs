//! The usage of a quota, counted from the present objects.

use std::collections::BTreeSet;

use api_meta::quantity::Quantity;
use api_meta::status::Status;
use serde_json::{Value, json};

use super::amounts::{self, Amounts};
use super::{scope, usage};
use crate::registry::{ListQuery, ReadVersion, Registry};
use crate::resource::Backend;

/// The status that a ResourceQuota should have: its limits, and what the objects of its namespace
/// use. For quota controllers. It is counted from the caches, so a concurrent write may be missing.
///
/// # Errors
/// Those of [`Registry::list`]: retry later.
pub async fn status(registry: &Registry, quota: &Value) -> Result<Value, Status> {
    let namespace = quota["metadata"]["namespace"].as_str().unwrap_or_default();
    let hard = amounts::of(&quota["spec"]["hard"]);
    let mut used = Amounts::new();
    let mut counted = BTreeSet::new();
    for resource in registry.catalog().all() {
        let is_stored = matches!(resource.backend, Backend::Stored { .. });
        let measured: Vec<&String> =
            hard.keys().filter(|name| usage::is_measured(resource, name)).collect();
        // Versions of a resource are the same objects.
        let is_new = counted.insert((resource.group.clone(), resource.plural.clone()));
        if !resource.namespaced || !is_stored || measured.is_empty() || !is_new {
            continue;
        }
        for name in &measured {
            used.entry((*name).clone()).or_insert(Quantity::from_whole(0));
        }
        let query = ListQuery { version: ReadVersion::Any, ..ListQuery::all(namespace) };
        for object in registry.list(resource, &query).await?.items {
            let object = object.value();
            if scope::covers(quota, resource, &object) {
                let mut taken = usage::of(resource, &object);
                taken.retain(|name, _| measured.contains(&name));
                amounts::add(&mut used, &taken);
            }
        }
    }
    Ok(json!({"hard": quota["spec"]["hard"], "used": amounts::to_json(&used)}))
}
