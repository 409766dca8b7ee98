//! StorageObjectInUseProtection: a finalizer delays the deletion of storage that is in use. And
//! PersistentVolumeClaimResize: claims grow only if their class allows it.

use api_meta::object::ObjectExt;
use api_meta::quantity::Quantity;
use api_meta::status::Status;
use serde_json::Value;

use super::classes::STORAGE_CLASS;
use super::find;
use crate::fields::{items, str_of};
use crate::registry::Registry;
use crate::registry::admission::AdmissionRequest;

/// The finalizer of PersistentVolumeClaims.
pub const CLAIM: &str = "kubernetes.io/pvc-protection";
/// The finalizer of PersistentVolumes.
pub const VOLUME: &str = "kubernetes.io/pv-protection";
/// The finalizer of VolumeAttributesClasses.
pub const CLASS: &str = "kubernetes.io/vac-protection";

/// Adds the finalizer, which a controller removes once nothing uses the object.
pub(super) fn protect(object: &mut Value, finalizer: &str) {
    let mut finalizers = items(&object["metadata"]["finalizers"]).to_vec();
    if !finalizers.iter().any(|one| one == finalizer) {
        finalizers.push(finalizer.into());
        object.set_meta("finalizers", finalizers);
    }
}

/// Refuses to grow a claim that is not bound or whose class does not allow it.
///
/// # Errors
/// 403 with the reason.
pub(super) async fn check_size(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    claim: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let Some(old) = old else { return Ok(()) };
    let size = |claim: &Value| -> Option<Quantity> {
        str_of(&claim["spec"]["resources"]["requests"]["storage"]).parse().ok()
    };
    if size(claim) <= size(old) {
        return Ok(());
    }
    if old["status"]["phase"] != "Bound" {
        let text = "Only bound persistent volume claims can be expanded";
        return Err(request.forbidden(Some(claim), text));
    }
    let class = class_of(claim);
    if !class.is_empty() && class == class_of(old) {
        let class = find(registry, ("storage.k8s.io", "storageclasses"), "", class).await?;
        if class.is_some_and(|class| class["allowVolumeExpansion"] == true) {
            return Ok(());
        }
    }
    let text = "only dynamically provisioned pvc can be resized and the storageclass that \
                provisions the pvc must support resize";
    Err(request.forbidden(Some(claim), text))
}

/// The name of a claim's class; empty when it has none.
fn class_of(claim: &Value) -> &str {
    claim.annotation(STORAGE_CLASS).unwrap_or_else(|| str_of(&claim["spec"]["storageClassName"]))
}
