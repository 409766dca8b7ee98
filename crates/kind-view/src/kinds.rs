//! The kinds of one place, and their ids as types of the view.

use std::collections::{BTreeMap, BTreeSet};

use rest_view::KubeResource;
use serde_json::Value;

/// Group of kinds that moved to [`MOVED_TO`].
const MOVED_FROM: &str = "extensions";
const MOVED_TO: &str = "apps";

/// Kinds of one place that are used; some clusters have a few hundred.
const KINDS_MAX: usize = 5_000;

/// A kind that a cluster serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedKind {
    /// Where its objects are.
    pub resource: KubeResource,
    /// What the API offers, such as `list`.
    pub verbs: BTreeSet<String>,
}

impl ServedKind {
    /// Id of the type: `group.kind`, or `kind` of the core group; lower case.
    pub fn id(&self) -> String {
        joined(&self.resource.group, &self.resource.kind).to_lowercase()
    }
    /// Plural of the type: `group.resource`, or `resource` of the core group.
    pub fn plural(&self) -> String {
        joined(&self.resource.group, &self.resource.plural)
    }
    /// Whether the API offers the verb.
    pub fn offers(&self, verb: &str) -> bool {
        self.verbs.contains(verb)
    }
}

fn joined(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{group}.{name}") }
}

/// All kinds of one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    by_id: BTreeMap<String, ServedKind>,
    /// Lower-case plurals.
    ids: BTreeMap<String, String>,
}

impl Kinds {
    /// The type with this id or plural, in any case.
    pub fn find(&self, name: &str) -> Option<&ServedKind> {
        let name = name.to_lowercase();
        self.by_id.get(&name).or_else(|| self.by_id.get(self.ids.get(&name)?))
    }
    /// The id of the type of an object, from its `apiVersion` and `kind`.
    pub fn id_of(api_version: &str, kind: &str) -> String {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        joined(group, kind).to_lowercase()
    }
    /// All of them, by id.
    pub fn iter(&self) -> impl Iterator<Item = &ServedKind> {
        self.by_id.values()
    }

    /// Adds a kind, unless its group has it already in a version that comes before this one.
    pub fn add(&mut self, kind: ServedKind) {
        let id = kind.id();
        if self.by_id.contains_key(&id) {
            return;
        }
        self.ids.insert(kind.plural().to_lowercase(), id.clone());
        self.by_id.insert(id, kind);
    }

    /// Removes what another group serves under its newer name.
    pub fn without_moved(mut self) -> Self {
        let moved: Vec<String> = self
            .iter()
            .filter(|kind| kind.resource.group == MOVED_FROM)
            .filter(|kind| {
                self.by_id.contains_key(&joined(MOVED_TO, &kind.resource.kind).to_lowercase())
            })
            .map(ServedKind::id)
            .collect();
        for id in moved {
            self.by_id.remove(&id);
        }
        self
    }

    /// Adds the kinds of an `APIGroupDiscoveryList`: versions are in the order of preference.
    pub fn add_aggregated(&mut self, list: &Value) {
        for group in array(&list["items"]) {
            let name = text(&group["metadata"]["name"]);
            for version in array(&group["versions"]) {
                for resource in array(&version["resources"]) {
                    let of = KubeResource::new(
                        name,
                        text(&version["version"]),
                        text(&resource["resource"]),
                        text(&resource["responseKind"]["kind"]),
                        resource["scope"] == "Namespaced",
                    );
                    self.add_served(of, &resource["verbs"]);
                }
            }
        }
    }

    /// Adds the kinds of an `APIResourceList` of one version.
    pub fn add_listed(&mut self, group: &str, version: &str, list: &Value) {
        for resource in array(&list["resources"]) {
            let plural = text(&resource["name"]);
            // `pods/log` is a part of another resource.
            if plural.contains('/') {
                continue;
            }
            let is_namespaced = resource["namespaced"] == true;
            let kind = text(&resource["kind"]);
            let of = KubeResource::new(group, version, plural, kind, is_namespaced);
            self.add_served(of, &resource["verbs"]);
        }
    }

    fn add_served(&mut self, resource: KubeResource, verbs: &Value) {
        let verbs: BTreeSet<String> =
            array(verbs).iter().map(|verb| text(verb).to_owned()).collect();
        let KubeResource { group, version, plural, kind, .. } = &resource;
        // They become parts of paths.
        let are_names = is_name(version) && is_name(plural) && is_name(kind);
        let is_group = group.is_empty() || is_name(group);
        if are_names && is_group && !verbs.is_empty() && self.by_id.len() < KINDS_MAX {
            self.add(ServedKind { resource, verbs });
        }
    }
}

fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    !text.is_empty() && !text.starts_with('.') && text.bytes().all(is_letter)
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(plural: &str, kind: &str) -> Value {
        json!({"resources": [
            {"name": plural, "kind": kind, "namespaced": true, "verbs": ["get", "list"]},
            {"name": format!("{plural}/status"), "kind": kind, "verbs": ["get"]},
        ]})
    }

    #[test]
    fn a_type_is_found_by_id_and_plural_in_any_case() {
        let mut kinds = Kinds::default();
        kinds.add_listed("", "v1", &listed("pods", "Pod"));
        kinds.add_listed("apps", "v1", &listed("deployments", "Deployment"));
        for name in ["pod", "pods", "Pods"] {
            assert_eq!(kinds.find(name).unwrap().resource.plural, "pods");
        }
        for name in ["apps.deployment", "apps.deployments", "APPS.Deployment"] {
            assert_eq!(kinds.find(name).unwrap().id(), "apps.deployment");
        }
        assert!(kinds.find("deployment").is_none() && kinds.find("pods/status").is_none());
    }

    #[test]
    fn the_preferred_version_and_the_newer_group_win() {
        let mut kinds = Kinds::default();
        kinds.add_listed("example.io", "v2", &listed("widgets", "Widget"));
        kinds.add_listed("example.io", "v1", &listed("widgets", "Widget"));
        kinds.add_listed("apps", "v1", &listed("deployments", "Deployment"));
        kinds.add_listed("extensions", "v1beta1", &listed("deployments", "Deployment"));
        kinds.add_listed("extensions", "v1beta1", &listed("ingresses", "Ingress"));
        let kinds = kinds.without_moved();
        assert_eq!(kinds.find("example.io.widget").unwrap().resource.version, "v2");
        assert!(kinds.find("extensions.deployment").is_none());
        assert!(kinds.find("extensions.ingress").is_some());
    }

    #[test]
    fn what_cannot_be_a_part_of_a_path_is_no_kind() {
        let mut kinds = Kinds::default();
        for (plural, name) in
            [("../secrets", "Pod"), ("pods?x=y", "Pod"), ("pods", ""), ("..", "A")]
        {
            kinds.add_listed("", "v1", &listed(plural, name));
        }
        kinds.add_listed("a/b", "v1", &listed("pods", "Pod"));
        assert_eq!(kinds, Kinds::default());
    }

    #[test]
    fn aggregated_discovery_gives_the_same() {
        let mut aggregated = Kinds::default();
        aggregated.add_aggregated(&json!({"items": [{
            "metadata": {"name": "apps"},
            "versions": [{"version": "v1", "resources": [{
                "resource": "deployments", "scope": "Namespaced", "verbs": ["get", "list"],
                "responseKind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            }]}],
        }]}));
        let mut listed_one = Kinds::default();
        listed_one.add_listed("apps", "v1", &listed("deployments", "Deployment"));
        assert_eq!(aggregated, listed_one);
    }
}
