//! Namespaces of the management API for Drover's own data.

use api_management::keys;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ObjectMeta;

/// A namespace with the annotation that marks Drover's own data. It has no owner; the caller adds
/// one if another object's deletion is to delete it.
pub fn system_namespace(name: &str) -> Namespace {
    let annotations = [(keys::SYSTEM_NAMESPACE.to_owned(), "true".to_owned())];
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        annotations: Some(annotations.into()),
        ..ObjectMeta::default()
    };
    Namespace { metadata, ..Namespace::default() }
}
