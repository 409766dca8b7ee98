//! The 403 response, in the words of Kubernetes: user interfaces and tests parse them.

use api_meta::status::{Status, StatusDetails};
use authz::text::quoted;

use crate::attributes::Attributes;

/// The response to a request that no authorizer allowed. `reason` is that of the authorizer, often
/// empty.
pub fn forbidden(attributes: &Attributes, reason: &str) -> Status {
    let user = quoted(&attributes.user.name);
    let verb = &attributes.verb;
    let tail = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    if !attributes.is_resource {
        let path = quoted(&attributes.path);
        let text = format!("forbidden: User {user} cannot {verb} path {path}{tail}");
        let mut status = Status::new(403, "Forbidden", text);
        status.details = Some(Box::new(StatusDetails::default()));
        return status;
    }
    let resource = if attributes.subresource.is_empty() {
        attributes.resource.clone()
    } else {
        format!("{}/{}", attributes.resource, attributes.subresource)
    };
    let scope = if attributes.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {}", quoted(&attributes.namespace))
    };
    let text = format!(
        "User {user} cannot {verb} resource {} in API group {} {scope}{tail}",
        quoted(&resource),
        quoted(&attributes.group),
    );
    Status::forbidden(&attributes.group, &attributes.resource, &attributes.name, &text)
}
