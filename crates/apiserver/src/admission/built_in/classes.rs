//! DefaultStorageClass and DefaultIngressClass: claims and ingresses without a class get the
//! default one.

use std::cmp::Reverse;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::Value;

use super::all;
use crate::fields::str_of;
use crate::registry::Registry;

/// The deprecated annotation that names the class of a claim.
pub(super) const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// The deprecated annotation that names the class of an ingress.
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";
const DEFAULT_STORAGE: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
const DEFAULT_INGRESS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];

/// Sets the default storage class in a claim that names none. Without a default it stays unset.
///
/// # Errors
/// The classes cannot be read.
pub(super) async fn set_for_claim(registry: &Registry, claim: &mut Value) -> Result<(), Status> {
    if !claim["spec"]["storageClassName"].is_null() || claim.annotation(STORAGE_CLASS).is_some() {
        return Ok(());
    }
    let classes = all(registry, "storage.k8s.io", "storageclasses").await?;
    if let Some(name) = default_name(&classes, &DEFAULT_STORAGE) {
        claim["spec"]["storageClassName"] = name.into();
    }
    Ok(())
}

/// Sets the default ingress class in an ingress that names none. Without a default it stays unset.
///
/// # Errors
/// The classes cannot be read.
pub(super) async fn set_for_ingress(
    registry: &Registry,
    ingress: &mut Value,
) -> Result<(), Status> {
    let has_class = !ingress["spec"]["ingressClassName"].is_null();
    if has_class || ingress.annotation(INGRESS_CLASS).is_some() {
        return Ok(());
    }
    let classes = all(registry, "networking.k8s.io", "ingressclasses").await?;
    if let Some(name) = default_name(&classes, &DEFAULT_INGRESS) {
        ingress["spec"]["ingressClassName"] = name.into();
    }
    Ok(())
}

/// The newest of the classes marked as default; of equally new ones the first by name.
fn default_name<'a>(classes: &'a [Value], marks: &[&str]) -> Option<&'a str> {
    let marked = |class: &&Value| marks.iter().any(|mark| class.annotation(mark) == Some("true"));
    let created = |class: &Value| str_of(&class["metadata"]["creationTimestamp"]).to_owned();
    let defaults = classes.iter().filter(marked);
    let newest = defaults.min_by_key(|class| (Reverse(created(class)), class.name()));
    newest.map(|class| class.name())
}
