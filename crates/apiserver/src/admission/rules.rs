//! Rules that decide which writes a webhook or policy matches: operations, groups, versions,
//! resources, scope, and the selectors beside them.

pub mod validate;

use api_meta::labels::LabelSelector;
use api_meta::status::Status;
use serde_json::Value;

use crate::catalog::Catalog;
use crate::fields::{items, str_of};
use crate::registry::Registry;
use crate::registry::admission::AdmissionRequest;
use crate::resource::{Backend, Resource};

/// The objects of a write: both in an update, one in a create or delete.
#[derive(Clone, Copy)]
pub struct Objects<'a> {
    /// The object as it will be written; absent in a delete.
    pub new: Option<&'a Value>,
    /// The stored object; absent in a create.
    pub old: Option<&'a Value>,
}

/// One entry of `rules`, `resourceRules` or `excludeResourceRules`.
pub struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Pairs of resource and subresource; the latter is empty for the resource itself.
    resources: Vec<(String, String)>,
    /// Names of objects; empty matches all.
    names: Vec<String>,
    scope: RuleScope,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RuleScope {
    All,
    Cluster,
    Namespaced,
}

impl Rule {
    /// Parses a rule that was validated and defaulted. An unknown scope matches everything.
    pub fn read(rule: &Value) -> Self {
        let texts = |field: &str| -> Vec<String> {
            items(&rule[field]).iter().map(|text| str_of(text).to_owned()).collect()
        };
        let split = |text: String| match text.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), subresource.to_owned()),
            None => (text, String::new()),
        };
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources").into_iter().map(split).collect(),
            names: texts("resourceNames"),
            scope: match str_of(&rule["scope"]) {
                "Cluster" => RuleScope::Cluster,
                "Namespaced" => RuleScope::Namespaced,
                _ => RuleScope::All,
            },
        }
    }

    /// Whether the rule matches the write as if it were one of `resource`.
    fn names(&self, request: &AdmissionRequest<'_>, resource: &Resource) -> bool {
        self.covers_scope(request.resource)
            && any_is(&self.operations, request.operation.as_str())
            && any_is(&self.groups, &resource.group)
            && any_is(&self.versions, &resource.version)
            && self.resources.iter().any(|(plural, subresource)| {
                matches_pattern(plural, &resource.plural)
                    && matches_pattern(subresource, request.subresource)
            })
            && (self.names.is_empty() || self.names.iter().any(|name| name == request.name))
    }

    fn covers_scope(&self, resource: &Resource) -> bool {
        match self.scope {
            RuleScope::All => true,
            RuleScope::Cluster => !resource.namespaced,
            RuleScope::Namespaced => resource.namespaced,
        }
    }
}

fn matches_pattern(pattern: &str, text: &str) -> bool {
    pattern == "*" || pattern == text
}

fn any_is(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| matches_pattern(pattern, text))
}

/// The resource that a rule matches: the one of the write if any rule matches it, else, if
/// `equivalent`, the first one with the same storage in another version or group.
pub fn matching_resource<'r>(
    rules: &[Rule],
    request: &AdmissionRequest<'r>,
    catalog: &'r Catalog,
    equivalent: bool,
) -> Option<&'r Resource> {
    if rules.iter().any(|rule| rule.names(request, request.resource)) {
        return Some(request.resource);
    }
    if !equivalent {
        return None;
    }
    rules.iter().find_map(|rule| {
        equivalent_resources(catalog, request).find(|resource| rule.names(request, resource))
    })
}

/// The resources with the same storage as that of the write, its other versions first.
fn equivalent_resources<'r>(
    catalog: &'r Catalog,
    request: &AdmissionRequest<'r>,
) -> impl Iterator<Item = &'r Resource> {
    let own = request.resource;
    let versions = catalog.versions(&own.group).into_iter();
    let versions = versions.filter(move |version| *version != own.version);
    let versions = versions
        .filter_map(move |version| catalog.get(&own.group, version, &own.plural).map(|r| &**r));
    let groups = catalog.all().map(|other| &**other).filter(move |other| {
        other.group != own.group && other.plural == own.plural && has_same_storage(own, other)
    });
    versions.chain(groups)
}

fn has_same_storage(one: &Resource, other: &Resource) -> bool {
    match (&one.backend, &other.backend) {
        (Backend::Stored { prefix: one }, Backend::Stored { prefix: other }) => one == other,
        _ => false,
    }
}

/// Whether the selector matches the new or the old object.
pub fn selects(selector: &LabelSelector, objects: Objects<'_>) -> bool {
    let matches = |object: Option<&Value>| {
        object.is_some_and(|object| selector.matches_labels(&object["metadata"]["labels"]))
    };
    selector.is_everything() || matches(objects.new) || matches(objects.old)
}

/// Whether the selector matches the namespace of the write. Cluster-scoped resources always match,
/// except namespaces themselves.
///
/// # Errors
/// The namespace cannot be read.
pub async fn in_namespaces(
    selector: &LabelSelector,
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    objects: Objects<'_>,
) -> Result<bool, Status> {
    if selector.is_everything() || request.namespace.is_empty() {
        return Ok(true);
    }
    // A namespace that is being written is matched by its new labels.
    if request.is_namespace()
        && request.subresource.is_empty()
        && let Some(object) = objects.new
    {
        return Ok(selector.matches_labels(&object["metadata"]["labels"]));
    }
    let namespaces = registry.find("", "namespaces").ok_or_else(Status::unknown_resource)?;
    let namespace = registry.get(&namespaces, "", request.namespace).await?;
    Ok(selector.matches_labels(&*namespace))
}
