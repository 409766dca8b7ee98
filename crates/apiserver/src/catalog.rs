//! The set of served resources. It is a snapshot: a change creates a new one, so a request sees one
//! state throughout.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::resource::Resource;

/// The served resources by group, version and plural.
#[derive(Clone, Default)]
pub struct Catalog {
    /// Group → version → plural.
    groups: BTreeMap<String, BTreeMap<String, BTreeMap<String, Arc<Resource>>>>,
}

impl Catalog {
    /// Adds a resource; for chains of calls.
    pub fn with(mut self, resource: Resource) -> Self {
        self.insert(Arc::new(resource));
        self
    }
    /// Adds a resource, or replaces the one with the same group, version and plural.
    pub fn insert(&mut self, resource: Arc<Resource>) {
        self.groups
            .entry(resource.group.clone())
            .or_default()
            .entry(resource.version.clone())
            .or_default()
            .insert(resource.plural.clone(), resource);
    }
    /// Removes a resource in all versions.
    pub fn remove(&mut self, group: &str, plural: &str) {
        if let Some(versions) = self.groups.get_mut(group) {
            for resources in versions.values_mut() {
                resources.remove(plural);
            }
            versions.retain(|_, resources| !resources.is_empty());
            if versions.is_empty() {
                self.groups.remove(group);
            }
        }
    }
    /// Removes one version of a resource.
    pub fn remove_version(&mut self, group: &str, version: &str, plural: &str) {
        let Some(versions) = self.groups.get_mut(group) else { return };
        if let Some(resources) = versions.get_mut(version) {
            resources.remove(plural);
        }
        versions.retain(|_, resources| !resources.is_empty());
        if versions.is_empty() {
            self.groups.remove(group);
        }
    }
    /// Finds a resource.
    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.groups.get(group)?.get(version)?.get(plural)
    }
    /// Whether any resource of the group is served.
    pub fn has_group(&self, group: &str) -> bool {
        self.groups.contains_key(group)
    }
    /// Whether any resource of the version is served.
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        self.groups.get(group).is_some_and(|versions| versions.contains_key(version))
    }
    /// The names of all groups, in alphabetical order.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }
    /// The versions of a group, most preferred first.
    pub fn versions(&self, group: &str) -> Vec<&str> {
        let mut versions: Vec<&str> =
            self.groups.get(group).into_iter().flatten().map(|(v, _)| v.as_str()).collect();
        versions.sort_by(|a, b| compare_versions(b, a));
        versions
    }
    /// The resources of a version, by plural.
    pub fn resources(&self, group: &str, version: &str) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups.get(group).and_then(|v| v.get(version)).into_iter().flat_map(|r| r.values())
    }
    /// All resources in all versions, by group, version and plural.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups.values().flat_map(|v| v.values()).flat_map(|r| r.values())
    }
}

/// Compares version names like Kubernetes: GA above beta above alpha, then by number; other names
/// below all of these, in alphabetical order.
pub fn compare_versions(a: &str, b: &str) -> std::cmp::Ordering {
    fn rank(version: &str) -> Option<(u8, u64, u64)> {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major = rest[..digits].parse().ok()?;
        match &rest[digits..] {
            "" => Some((3, major, 0)),
            tail => {
                let (stage, minor) = tail
                    .strip_prefix("beta")
                    .map(|minor| (2, minor))
                    .or_else(|| tail.strip_prefix("alpha").map(|minor| (1, minor)))?;
                Some((stage, major, minor.parse().ok()?))
            }
        }
    }
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => std::cmp::Ordering::Greater,
        (None, Some(_)) => std::cmp::Ordering::Less,
        (None, None) => b.cmp(a),
    }
}
