//! Admission by quotas: an object that would exceed a ResourceQuota of its namespace is refused, and
//! one that fits is charged to the quota's status before it is written.
//!
//! The charge is a compare-and-swap of the quota object, so that of any number of writes at the same
//! time only so many pass as fit. A write that fails afterwards stays charged, and nothing is given
//! back when objects go: the quota controller counts anew. A quota whose status says nothing yet
//! about a resource that it limits refuses that resource.
//!
//! [`request`] compares one write with one quota; [`count`] counts anew for the controller; [`usage`] says how much an object takes, [`scope`]
//! which objects a quota is about.

pub(crate) mod amounts;
mod count;
pub(crate) mod pod;
pub mod quality;
mod request;
mod scope;
#[cfg(test)]
mod tests;
mod usage;

use api_meta::status::Status;
use serde_json::Value;

pub use count::status;

use self::request::Request;
use crate::built_in_plugins::Switchable;
use crate::registry::{ListQuery, Registry, Target, Version, WriteOptions};
use crate::resource::Resource;
use crate::strategy::{Operation, Write};

/// Charges a write to every quota of its namespace that it counts for. A dry run is only compared. The
/// caches must hold what was committed before the write began.
///
/// # Errors
/// 403 when a quota is exceeded or not counted yet, with the numbers; nothing is charged then, unless
/// another write took the rest of a further quota in between.
pub(crate) async fn charge(
    registry: &Registry,
    write: &Write<'_>,
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let enforces = registry.has(Switchable::ResourceQuota);
    if !enforces || !usage::is_counted(write.operation, resource, object, old) {
        return Ok(());
    }
    let Some(quotas) = registry.find("", "resourcequotas") else { return Ok(()) };
    let request = Request { name: write.name, resource, object, old };
    let query = ListQuery { version: Version::Any, ..ListQuery::all(write.namespace) };
    let mut changed = Vec::new();
    for quota in registry.list(&quotas, &query).await?.items {
        if request.used_with(&quota.value())?.is_some() {
            changed.push(quota);
        }
    }
    if write.dry_run {
        return Ok(());
    }
    for quota in changed {
        let target = Target { resource: &quotas, namespace: write.namespace, name: &quota.name };
        let charge = |current: &Value| {
            let mut new = current.clone();
            if let Some(used) = request.used_with(current)? {
                new["status"]["used"] = used;
            }
            Ok(new)
        };
        let options = WriteOptions::system();
        let charged = registry.modify(&target, Operation::UpdateStatus, &options, &charge).await;
        match charged {
            // A quota that is gone limits nothing.
            Err(status) if status.code == 404 => {}
            other => drop(other?),
        }
    }
    Ok(())
}
