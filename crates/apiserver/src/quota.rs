//! Admission by quotas: an object that would exceed a ResourceQuota of its namespace is rejected,
//! and one that fits is charged to the status of the quota before it is written.
//!
//! The charge is a compare-and-swap of the quota object: of any number of concurrent writes, only
//! as many pass as fit. A write that fails afterwards stays charged, and deletions return nothing:
//! the quota controller recounts. A quota whose status does not yet contain a resource that it
//! limits rejects that resource.
//!
//! [`request`] compares one write with one quota; [`count`] recounts for the controller; [`usage`]
//! computes how much an object uses; [`scope`] decides which objects a quota covers.

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

use self::request::QuotaRequest;
use crate::built_in_plugins::Switchable;
use crate::registry::{ListQuery, ReadVersion, Registry, WriteOptions, WriteTarget};
use crate::resource::Resource;
use crate::strategy::{Operation, Write};

/// Charges a write to every quota of its namespace that covers it. A dry run is only compared. The
/// caches must hold everything that was committed before the write began.
///
/// # Errors
/// 403 when a quota is exceeded or not counted yet, with the amounts. Nothing is charged then,
/// unless another write used up a further quota in between.
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
    let request = QuotaRequest { name: write.name, resource, object, old };
    let query = ListQuery { version: ReadVersion::Any, ..ListQuery::all(write.namespace) };
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
        let target =
            WriteTarget { resource: &quotas, namespace: write.namespace, name: &quota.name };
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
            // A deleted quota limits nothing.
            Err(status) if status.code == 404 => {}
            other => drop(other?),
        }
    }
    Ok(())
}
