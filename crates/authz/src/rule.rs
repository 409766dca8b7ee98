//! One rule, and whether it allows one request.

use serde::{Deserialize, Deserializer, Serialize};

/// Matches every verb, group, resource or path.
pub const ALL: &str = "*";

/// A rule of a Role or ClusterRole, as on the wire (`rbac.authorization.k8s.io/v1`).
///
/// Absent and `null` lists read as empty; an empty list of names means every name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    #[serde(default, deserialize_with = "list")]
    pub verbs: Vec<String>,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    #[serde(
        default,
        rename = "nonResourceURLs",
        deserialize_with = "list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub non_resource_urls: Vec<String>,
}

fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(deserializer)?.unwrap_or_default())
}

/// A request as rules see it. Empty text means "none": no subresource, no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedAction<'a> {
    Resource {
        verb: &'a str,
        group: &'a str,
        resource: &'a str,
        subresource: &'a str,
        name: &'a str,
    },
    /// A path that is no resource: `/metrics`.
    Path { verb: &'a str, path: &'a str },
}

impl PolicyRule {
    /// A rule about resources.
    pub fn resources(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Self {
        Self {
            verbs: owned(verbs),
            api_groups: owned(groups),
            resources: owned(resources),
            ..Self::default()
        }
    }

    /// A rule about paths that are no resources.
    pub fn paths(paths: &[&str], verbs: &[&str]) -> Self {
        Self { verbs: owned(verbs), non_resource_urls: owned(paths), ..Self::default() }
    }

    /// Limits the rule to objects with these names.
    pub fn with_names(mut self, names: &[&str]) -> Self {
        self.resource_names = owned(names);
        self
    }

    /// Whether this rule alone allows the action.
    ///
    /// A rule with names allows no action without a name: create, deletecollection, and list or
    /// watch of a whole collection.
    pub fn allows(&self, action: &RequestedAction<'_>) -> bool {
        match *action {
            RequestedAction::Resource { verb, group, resource, subresource, name } => {
                has(&self.verbs, verb)
                    && has(&self.api_groups, group)
                    && self.resources.iter().any(|r| resource_matches(r, resource, subresource))
                    && (self.resource_names.is_empty()
                        || self.resource_names.iter().any(|n| n == name))
            }
            RequestedAction::Path { verb, path } => {
                has(&self.verbs, verb)
                    && self.non_resource_urls.iter().any(|pattern| path_matches(pattern, path))
            }
        }
    }
}

/// Whether any rule allows the action.
pub fn rules_allow<'r>(
    rules: impl IntoIterator<Item = &'r PolicyRule>,
    action: &RequestedAction<'_>,
) -> bool {
    rules.into_iter().any(|rule| rule.allows(action))
}

fn owned(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

fn has(list: &[String], requested: &str) -> bool {
    list.iter().any(|item| item == ALL || item == requested)
}

/// `*`, `pods`, `pods/log`, `*/log`.
fn resource_matches(pattern: &str, resource: &str, subresource: &str) -> bool {
    if pattern == ALL {
        return true;
    }
    match pattern.split_once('/') {
        None => subresource.is_empty() && pattern == resource,
        Some((parent, sub)) => {
            !subresource.is_empty() && sub == subresource && (parent == ALL || parent == resource)
        }
    }
}

/// A star is special only at the end, where it matches any text, including none.
pub(crate) fn path_matches(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix(ALL) {
        Some(prefix) => path.starts_with(prefix),
        None => pattern == path,
    }
}
