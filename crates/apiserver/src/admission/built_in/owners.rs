//! OwnerReferencesPermissionEnforcement, which is off by default. A user who sets an owner
//! reference must be allowed to delete the object, because it is deleted with its owner. A user who
//! sets `blockOwnerDeletion` must be allowed to set finalizers on the owner.

use api_meta::status::Status;
use serde_json::Value;

use crate::attributes::{Attributes, Decision};
use crate::built_in_plugins::Switchable;
use crate::fields::{items, str_of};
use crate::registry::Registry;
use crate::registry::admission::{AdmissionOperation, AdmissionRequest};

/// Refuses owner references that the user may not set.
///
/// # Errors
/// 403 with the missing permission.
pub(super) fn check(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    if !registry.has(Switchable::OwnerReferencesPermissionEnforcement) {
        return Ok(());
    }
    let resource = request.resource;
    let is_pod = resource.group.is_empty() && resource.plural == "pods";
    let new = items(&object["metadata"]["ownerReferences"]);
    let before = old.map(|old| items(&old["metadata"]["ownerReferences"])).unwrap_or_default();
    if is_pod && request.subresource == "status" || new == before {
        return Ok(());
    }
    let refused = |text: &str| Err(request.forbidden(Some(object), text));
    if request.operation != AdmissionOperation::Create {
        let delete = Attributes {
            verb: "delete".to_owned(),
            namespace: request.namespace.to_owned(),
            group: resource.group.clone(),
            version: resource.version.clone(),
            resource: resource.plural.clone(),
            subresource: request.subresource.to_owned(),
            name: request.name.to_owned(),
            ..writer_attributes(request)
        };
        if let Some(why) = refusal(registry, &delete) {
            let text = format!("cannot set an ownerRef on a resource you can't delete: {why}");
            return refused(&text);
        }
    }
    let blocks = |reference: &Value| reference["blockOwnerDeletion"] == true;
    let blocked = |reference: &&Value| {
        let mut before = before.iter().filter(|one| one["uid"] == reference["uid"]);
        blocks(reference) && !before.any(blocks)
    };
    let mut blocking = new.iter().filter(blocked).peekable();
    if blocking.peek().is_none()
        || refusal(registry, &finalize_anything_attributes(request)).is_none()
    {
        return Ok(());
    }
    for reference in blocking {
        let owners = match owner_attributes(registry, request, reference) {
            Ok(owners) => owners,
            Err(text) => return refused(&text),
        };
        for owner in owners {
            if let Some(why) = refusal(registry, &owner) {
                let text = format!(
                    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you \
                     can't set finalizers on: {why}"
                );
                return refused(&text);
            }
        }
    }
    Ok(())
}

fn writer_attributes(request: &AdmissionRequest<'_>) -> Attributes {
    Attributes { user: request.options.user.clone(), is_resource: true, ..Attributes::default() }
}

/// Why the authorizer refuses, in the format of Kubernetes, which appends the error; `None` when it
/// allows.
fn refusal(registry: &Registry, attributes: &Attributes) -> Option<String> {
    let Some(authorizer) = registry.authorizer() else {
        return Some("no authorizer, <nil>".to_owned());
    };
    match authorizer.authorize(attributes) {
        Decision::Allow { .. } => None,
        Decision::Deny { reason } | Decision::NoOpinion { reason } => {
            Some(format!("{reason}, <nil>"))
        }
    }
}

fn finalize_anything_attributes(request: &AdmissionRequest<'_>) -> Attributes {
    let any = || "*".to_owned();
    Attributes {
        verb: "update".to_owned(),
        group: any(),
        version: any(),
        resource: any(),
        subresource: "finalizers".to_owned(),
        name: any(),
        ..writer_attributes(request)
    }
}

/// The attributes of an update of the owner's finalizers, for each resource that the owner may
/// belong to.
fn owner_attributes(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    reference: &Value,
) -> Result<Vec<Attributes>, String> {
    let (api_version, kind) = (str_of(&reference["apiVersion"]), str_of(&reference["kind"]));
    let catalog = registry.catalog();
    let owners = catalog.all().filter(|one| one.api_version() == api_version && one.kind == kind);
    let owners: Vec<Attributes> = owners
        .map(|owner| Attributes {
            verb: "update".to_owned(),
            // An owner is in the same namespace.
            namespace: if owner.namespaced { request.namespace } else { "" }.to_owned(),
            group: owner.group.clone(),
            version: owner.version.clone(),
            resource: owner.plural.clone(),
            subresource: "finalizers".to_owned(),
            name: str_of(&reference["name"]).to_owned(),
            ..writer_attributes(request)
        })
        .collect();
    if owners.is_empty() {
        return Err(format!(
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for \
             APIVersion {api_version} Kind {kind}: no matches for kind {kind:?} in version \
             {api_version:?}"
        ));
    }
    Ok(owners)
}
