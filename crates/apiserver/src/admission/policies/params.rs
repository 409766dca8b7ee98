//! The parameters that a binding names for its policy.

use std::sync::Arc;

use api_meta::labels::LabelSelector;
use serde_json::Value;

use super::policy::Binding;
use crate::catalog::Catalog;
use crate::fields::str_of;
use crate::registry::{ListQuery, Registry};
use crate::resource::{Backend, Resource};

/// Finds the stored resource with this API version and kind.
pub(super) fn resource_of_kind<'c>(
    catalog: &'c Catalog,
    api_version: &str,
    kind: &str,
) -> Option<&'c Arc<Resource>> {
    let (group, version) = api_meta::object::group_version(api_version);
    let stored = |resource: &&Arc<Resource>| matches!(resource.backend, Backend::Stored { .. });
    catalog.resources(group, version).filter(stored).find(|resource| resource.kind == kind)
}

/// Formats a kind like Go does: `group/version, Kind=kind`.
pub(super) fn format_kind(api_version: &str, kind: &str) -> String {
    let (group, version) = api_meta::object::group_version(api_version);
    format!("{group}/{version}, Kind={kind}")
}

/// Reads the parameters for a write in `namespace`. They are one null when the policy or binding
/// names none. They are empty when none exist and `parameterNotFoundAction` is `Allow`.
///
/// # Errors
/// The parameters cannot be read, or none exist and the action is `Deny`.
pub(super) async fn of(
    registry: &Registry,
    resource: Option<&Resource>,
    binding: &Binding,
    namespace: &str,
) -> Result<Vec<Value>, String> {
    let reference = &binding.param_ref;
    let Some(resource) = resource else {
        return Ok(vec![Value::Null]);
    };
    if reference.is_null() {
        return Ok(vec![Value::Null]);
    }
    let named = str_of(&reference["namespace"]);
    let namespace = match (resource.namespaced, named, namespace) {
        (true, "", "") => {
            let text = "cannot use namespaced paramRef in policy binding that matches \
                        cluster-scoped resources";
            return Err(text.to_owned());
        }
        (true, "", own) => own,
        (true, named, _) => named,
        (false, "", _) => "",
        (false, _, _) => {
            let text = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
            return Err(text.to_owned());
        }
    };
    let found = match str_of(&reference["name"]) {
        "" => {
            let mut query = ListQuery::all(namespace);
            let selector = LabelSelector::from_object(&reference["selector"]);
            query.labels = selector.map_err(|error| error.to_string())?;
            let list = registry.list(resource, &query).await;
            list.map_err(|status| status.message)?.items
        }
        name => match registry.get(resource, namespace, name).await {
            Ok(object) => vec![object],
            Err(status) if status.code == 404 => Vec::new(),
            Err(status) => return Err(status.message),
        },
    };
    if found.is_empty() && reference["parameterNotFoundAction"] != "Allow" {
        let text = "no params found for policy binding with `Deny` parameterNotFoundAction";
        return Err(text.to_owned());
    }
    let mut params = Vec::new();
    for object in found {
        let mut object = object.value();
        let converted = registry.convert(resource, &mut object).await;
        converted.map_err(|status| status.message)?;
        params.push(object);
    }
    Ok(params)
}
