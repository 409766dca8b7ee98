//! OwnerReferencesPermissionEnforcement, where it is turned on: whoever names an owner, with which
//! the object goes, may delete the object; whoever lets it hold up the owner's end may finalize the
//! owner.

use api_meta::status::Status;
use serde_json::Value;

use crate::attributes::{Attributes, Decision};
use crate::built_in_plugins::Switchable;
use crate::fields::{items, str_of};
use crate::registry::Registry;
use crate::registry::admission::{Operation, Request};

/// Refuses owners that the writer may not name.
///
/// # Errors
/// 403.
pub(super) fn check(
    registry: &Registry,
    request: &Request<'_>,
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
    if request.operation != Operation::Create {
        let delete = Attributes {
            verb: "delete".to_owned(),
            namespace: request.namespace.to_owned(),
            group: resource.group.clone(),
            version: resource.version.clone(),
            resource: resource.plural.clone(),
            subresource: request.subresource.to_owned(),
            name: request.name.to_owned(),
            ..of_writer(request)
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
    if blocking.peek().is_none() || refusal(registry, &finalize_anything(request)).is_none() {
        return Ok(());
    }
    for reference in blocking {
        let owners = match owners_of(registry, request, reference) {
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

fn of_writer(request: &Request<'_>) -> Attributes {
    Attributes { user: request.options.user.clone(), is_resource: true, ..Attributes::default() }
}

/// Why it is not allowed, with the place where Kubernetes tells of errors.
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

fn finalize_anything(request: &Request<'_>) -> Attributes {
    let any = || "*".to_owned();
    Attributes {
        verb: "update".to_owned(),
        group: any(),
        version: any(),
        resource: any(),
        subresource: "finalizers".to_owned(),
        name: any(),
        ..of_writer(request)
    }
}

/// What finalizing the owner asks for, for each resource that it may be one of.
fn owners_of(
    registry: &Registry,
    request: &Request<'_>,
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
            ..of_writer(request)
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
