//! Merges a context with its cluster and user into a kubeconfig, and leaves everything else
//! unchanged. Pure.

use serde_json::{Map, Value, json};

use crate::api::text;

/// A context: its cluster and user.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextEntry {
    cluster: Value,
    user: Value,
}

/// The result of a merge.
#[derive(Debug, PartialEq, Eq)]
pub struct Merged {
    /// Whether the context existed, for the same cluster.
    pub was_known: bool,
    /// The current context afterwards.
    pub current: Option<String>,
}

/// Reasons why a context cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    #[error("it is not a kubeconfig: {0}")]
    Malformed(String),
    #[error("it has {what} \"{name}\" already, which leads to {to}")]
    Taken { what: &'static str, name: String, to: String },
}

impl MergeError {
    /// Whether the name is used by something else.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Taken { .. })
    }
    /// The next step of the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "correct the file, or name another in KUBECONFIG",
            Self::Taken { .. } => "choose another name with --context-name",
        }
    }
}

impl ContextEntry {
    /// The parts of the current context of a kubeconfig.
    pub fn current_of(config: &Value) -> Option<Self> {
        let context = &find_named(config, "contexts", text(config, "current-context"))?["context"];
        let cluster = find_named(config, "clusters", text(context, "cluster"))?;
        let user = find_named(config, "users", text(context, "user"))?;
        Some(Self { cluster: cluster["cluster"].clone(), user: user["user"].clone() })
    }
}

/// Adds the entry under `name`, or renews an existing one of the same server. The current context
/// changes only with `set_current`; other fields of the context, such as its namespace, stay.
pub fn merge(
    config: &mut Value,
    name: &str,
    entry: &ContextEntry,
    set_current: bool,
) -> Result<Merged, MergeError> {
    if config.is_null() {
        *config = json!({"apiVersion": "v1", "kind": "Config"});
    }
    let Value::Object(fields) = config else {
        return Err(MergeError::Malformed("it is not a map".to_owned()));
    };
    for list in ["clusters", "users", "contexts"] {
        let found = fields.entry(list).or_insert(Value::Null);
        if found.is_null() {
            *found = json!([]);
        }
        if !found.is_array() {
            return Err(MergeError::Malformed(format!("field \"{list}\" is not a list")));
        }
    }
    let was_known = is_known(config, name, entry)?;
    put(config, "clusters", name, "cluster", entry.cluster.clone());
    put(config, "users", name, "user", entry.user.clone());
    let mut context = match find_named(config, "contexts", name).map(|known| &known["context"]) {
        Some(Value::Object(known)) => known.clone(),
        _ => Map::new(),
    };
    context.insert("cluster".to_owned(), name.into());
    context.insert("user".to_owned(), name.into());
    put(config, "contexts", name, "context", context.into());
    if set_current {
        config["current-context"] = name.into();
    }
    let current = Some(text(config, "current-context")).filter(|current| !current.is_empty());
    Ok(Merged { was_known, current: current.map(str::to_owned) })
}

/// Whether the name exists with the same server. A name of another cluster is a conflict.
fn is_known(config: &Value, name: &str, entry: &ContextEntry) -> Result<bool, MergeError> {
    let conflict = |what, to: String| MergeError::Taken { what, name: name.to_owned(), to };
    let server = |cluster: &Value| text(&cluster["cluster"], "server").to_owned();
    let known = find_named(config, "clusters", name);
    if let Some(known) = known {
        let same = server(known) == text(&entry.cluster, "server");
        return if same { Ok(true) } else { Err(conflict("a cluster", server(known))) };
    }
    if let Some(context) = find_named(config, "contexts", name) {
        let to = text(&context["context"], "cluster");
        return Err(conflict("a context", format!("cluster \"{to}\"")));
    }
    match find_named(config, "users", name) {
        Some(_) => Err(conflict("a user", "another cluster".to_owned())),
        None => Ok(false),
    }
}

fn find_named<'a>(config: &'a Value, list: &str, name: &str) -> Option<&'a Value> {
    config[list].as_array()?.iter().find(|one| one["name"] == name)
}

/// Replaces the item of this name in its position, else appends it.
fn put(config: &mut Value, list: &str, name: &str, field: &str, value: Value) {
    let Some(items) = config[list].as_array_mut() else { return };
    match items.iter_mut().find(|one| one["name"] == name) {
        Some(item) => item[field] = value,
        None => items.push(json!({"name": name, field: value})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(token: &str) -> ContextEntry {
        ContextEntry {
            cluster: json!({"server": "https://drover/k8s/clusters/c-1"}),
            user: json!({"token": token}),
        }
    }

    #[test]
    fn a_context_is_added_and_everything_else_stays() {
        let mut config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "work", "extensions": [{"x": 1}],
            "preferences": {"colors": true},
            "clusters": [{"name": "work", "cluster": {"server": "https://work", "odd": [1]}}],
            "users": [{"name": "me", "user": {"exec": {"command": "login"}}}],
            "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me"}}],
        });
        let before = config.clone();
        let merged = merge(&mut config, "north", &entry("t"), false).unwrap();
        assert_eq!(merged, Merged { was_known: false, current: Some("work".to_owned()) });
        for (field, value) in before.as_object().unwrap() {
            match value.as_array().filter(|_| field != "extensions") {
                Some(items) => assert_eq!(config[field][0], items[0], "{field}"),
                None => assert_eq!(&config[field], value, "{field}"),
            }
        }
        assert_eq!(config["contexts"][1]["context"], json!({"cluster": "north", "user": "north"}));
        assert_eq!(config["users"][1]["user"], json!({"token": "t"}));
    }

    #[test]
    fn the_same_cluster_is_renewed_with_its_namespace() {
        let mut config = Value::Null;
        let merged = merge(&mut config, "north", &entry("old"), true).unwrap();
        assert_eq!(merged, Merged { was_known: false, current: Some("north".to_owned()) });
        config["contexts"][0]["context"]["namespace"] = "shop".into();
        let merged = merge(&mut config, "north", &entry("new"), false).unwrap();
        assert!(merged.was_known);
        assert_eq!(config["contexts"][0]["context"]["namespace"], "shop");
        assert_eq!(config["users"], json!([{"name": "north", "user": {"token": "new"}}]));
    }

    #[test]
    fn an_entry_of_another_cluster_is_never_replaced() {
        for (config, said) in [
            (
                json!({"clusters": [{"name": "north", "cluster": {"server": "https://other"}}]}),
                "a cluster \"north\" already, which leads to https://other",
            ),
            (
                json!({"contexts": [{"name": "north", "context": {"cluster": "other"}}]}),
                "a context \"north\"",
            ),
            (json!({"users": [{"name": "north", "user": {}}]}), "a user \"north\""),
        ] {
            let error = merge(&mut config.clone(), "north", &entry("t"), false).unwrap_err();
            assert!(error.is_conflict() && error.to_string().contains(said), "{error}");
        }
        for odd in [json!([]), json!(7), json!({"users": {"a": 1}})] {
            let error = merge(&mut odd.clone(), "north", &entry("t"), false).unwrap_err();
            assert!(!error.is_conflict(), "{odd}: {error}");
        }
    }

    #[test]
    fn the_current_context_is_read_with_its_cluster_and_user() {
        let config = json!({
            "current-context": "b",
            "contexts": [{"name": "a", "context": {"cluster": "x", "user": "x"}},
                         {"name": "b", "context": {"cluster": "y", "user": "z"}}],
            "clusters": [{"name": "x", "cluster": {"server": "s1"}},
                         {"name": "y", "cluster": {"server": "s2"}}],
            "users": [{"name": "x", "user": {}}, {"name": "z", "user": {"token": "t"}}],
        });
        let entry = ContextEntry::current_of(&config).unwrap();
        assert_eq!(
            entry,
            ContextEntry { cluster: json!({"server": "s2"}), user: json!({"token": "t"}) }
        );
        assert_eq!(ContextEntry::current_of(&json!({"current-context": "b"})), None);
        assert_eq!(ContextEntry::current_of(&json!(null)), None);
    }
}
