//! Rules that say which writes a webhook or policy is about: operations, groups, versions,
//! resources, scope, and the selectors beside them.

pub mod validate;

use api_meta::labels::LabelSelector;
use api_meta::status::Status;
use serde_json::Value;

use crate::catalog::Catalog;
use crate::fields::{items, str_of};
use crate::registry::Registry;
use crate::registry::admission::Request;
use crate::resource::{Backend, Resource};

/// The objects of a write.
#[derive(Clone, Copy)]
pub struct Objects<'a> {
    pub new: Option<&'a Value>,
    pub old: Option<&'a Value>,
}

/// One entry of `rules`, `resourceRules` or `excludeResourceRules`.
pub struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource.
    resources: Vec<(String, String)>,
    /// Names of objects; empty for all.
    names: Vec<String>,
    scope: Scope,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Cluster,
    Namespaced,
}

impl Rule {
    /// Reads a rule as it was validated and defaulted.
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
                "Cluster" => Scope::Cluster,
                "Namespaced" => Scope::Namespaced,
                _ => Scope::All,
            },
        }
    }

    /// Whether it names the write as if it were one of `resource`.
    fn names(&self, request: &Request<'_>, resource: &Resource) -> bool {
        self.covers_scope(request.resource)
            && any_is(&self.operations, request.operation.as_str())
            && any_is(&self.groups, &resource.group)
            && any_is(&self.versions, &resource.version)
            && self.resources.iter().any(|(plural, subresource)| {
                is(plural, &resource.plural) && is(subresource, request.subresource)
            })
            && (self.names.is_empty() || self.names.iter().any(|name| name == request.name))
    }

    fn covers_scope(&self, resource: &Resource) -> bool {
        match self.scope {
            Scope::All => true,
            Scope::Cluster => !resource.namespaced,
            Scope::Namespaced => resource.namespaced,
        }
    }
}

fn is(pattern: &str, text: &str) -> bool {
    pattern == "*" || pattern == text
}

fn any_is(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| is(pattern, text))
}

/// The resource that a write is to be looked at as: its own if a rule names it, else the first in
/// another version or group that a rule names, where that counts (`equivalent`).
pub fn named_by<'r>(
    rules: &[Rule],
    request: &Request<'r>,
    catalog: &'r Catalog,
    equivalent: bool,
) -> Option<&'r Resource> {
    if rules.iter().any(|rule| rule.names(request, request.resource)) {
        return Some(request.resource);
    }
    if !equivalent {
        return None;
    }
    rules
        .iter()
        .find_map(|rule| others(catalog, request).find(|resource| rule.names(request, resource)))
}

/// The same resource under the other names that it is served by: those in which the same is stored,
/// its other versions first.
fn others<'r>(catalog: &'r Catalog, request: &Request<'r>) -> impl Iterator<Item = &'r Resource> {
    let own = request.resource;
    let versions = catalog.versions(&own.group).into_iter();
    let versions = versions.filter(move |version| *version != own.version);
    let versions = versions
        .filter_map(move |version| catalog.get(&own.group, version, &own.plural).map(|r| &**r));
    let groups = catalog.all().map(|other| &**other).filter(move |other| {
        other.group != own.group && other.plural == own.plural && same_storage(own, other)
    });
    versions.chain(groups)
}

fn same_storage(one: &Resource, other: &Resource) -> bool {
    match (&one.backend, &other.backend) {
        (Backend::Stored { prefix: one }, Backend::Stored { prefix: other }) => one == other,
        _ => false,
    }
}

/// Whether the selector takes the object as it is or as it was.
pub fn selects(selector: &LabelSelector, objects: Objects<'_>) -> bool {
    let matches = |object: Option<&Value>| {
        object.is_some_and(|object| selector.matches_labels(&object["metadata"]["labels"]))
    };
    selector.is_everything() || matches(objects.new) || matches(objects.old)
}

/// Whether the namespace of the write is one of those that the selector takes.
pub async fn in_namespaces(
    selector: &LabelSelector,
    registry: &Registry,
    request: &Request<'_>,
    objects: Objects<'_>,
) -> Result<bool, Status> {
    if selector.is_everything() || request.namespace.is_empty() {
        return Ok(true);
    }
    // A namespace that is being written has the labels that it is being given.
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
