//! What is to be changed of a downstream node, and whether what is stored here shows it. Pure.

use serde_json::{Map, Value, json};

use super::desired::ANNOTATION_MAX_BYTES;

/// Keys of this domain belong to Kubernetes: a map that leaves them out does not remove them.
const KUBERNETES: &str = "kubernetes.io";
/// Domains below [`KUBERNETES`] whose keys people set.
const OPEN: [&str; 2] = ["node-role.kubernetes.io", "node-restriction.kubernetes.io"];

/// A change of a downstream node. Default: none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// New values by key; null removes. What is not named stays.
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
    /// Taints to be there, and those to be removed. Key and effect identify one.
    tainted: Vec<Value>,
    untainted: Vec<Value>,
    unschedulable: Option<bool>,
}

impl Change {
    /// Whether the scheduler is to leave the node out.
    pub fn cordon(unschedulable: bool) -> Self {
        Self { unschedulable: Some(unschedulable), ..Self::default() }
    }

    /// From what is stored here to what a client wants stored.
    pub fn between(before: &Value, after: &Value) -> Self {
        let (before, after) = (&before["status"], &after["status"]);
        let map = |field: &str| difference(&before[field], &after[field]);
        let (old, new) = (taints(before), taints(after));
        let missing = |taint: &&Value| !old.contains(taint);
        let gone = |taint: &&Value| !new.iter().any(|kept| is_same_taint(kept, taint));
        Self {
            labels: map("nodeLabels"),
            annotations: map("nodeAnnotations"),
            tainted: new.iter().filter(missing).cloned().collect(),
            untainted: old.iter().filter(gone).cloned().collect(),
            unschedulable: None,
        }
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the patch depends on the node's taints as they are.
    pub fn needs_current(&self) -> bool {
        !(self.tainted.is_empty() && self.untainted.is_empty())
    }

    /// The merge patch for the downstream node. `current`: the node, where [`Self::needs_current`];
    /// the patch then holds for this version of it alone.
    pub fn patch(&self, current: Option<&Value>) -> Value {
        let mut metadata = Map::new();
        for (field, map) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            if !map.is_empty() {
                metadata.insert(field.to_owned(), map.clone().into());
            }
        }
        let mut spec = Map::new();
        if let Some(current) = current {
            let version = current["metadata"]["resourceVersion"].clone();
            metadata.insert("resourceVersion".to_owned(), version);
            spec.insert("taints".to_owned(), self.taints_of(&current["spec"]["taints"]));
        }
        if let Some(unschedulable) = self.unschedulable {
            spec.insert("unschedulable".to_owned(), unschedulable.into());
        }
        json!({"metadata": metadata, "spec": spec})
    }

    fn taints_of(&self, current: &Value) -> Value {
        let mut taints: Vec<Value> = current.as_array().cloned().unwrap_or_default();
        let changed = |taint: &Value| {
            let named = self.tainted.iter().chain(&self.untainted);
            named.into_iter().any(|other| is_same_taint(other, taint))
        };
        taints.retain(|taint| !changed(taint));
        taints.extend(self.tainted.iter().cloned());
        taints.into()
    }

    /// Whether what is stored here shows the change.
    pub fn is_in(&self, stored: &Value) -> bool {
        let status = &stored["status"];
        let holds = |desired: &Map<String, Value>, field: &str| {
            let kept = |value: &Value| {
                value.as_str().is_none_or(|text| text.len() <= ANNOTATION_MAX_BYTES)
            };
            let mut desired = desired.iter().filter(|(_, value)| kept(value));
            desired.all(|(key, value)| status[field][key] == *value)
        };
        let there = taints(status);
        let is_there = |taint: &Value| there.iter().any(|other| is_same_taint(other, taint));
        let unschedulable = status["internalNodeSpec"]["unschedulable"] == true;
        holds(&self.labels, "nodeLabels")
            && holds(&self.annotations, "nodeAnnotations")
            && self.tainted.iter().all(is_there)
            && !self.untainted.iter().any(is_there)
            && self.unschedulable.is_none_or(|desired| desired == unschedulable)
    }
}

fn taints(status: &Value) -> &[Value] {
    status["internalNodeSpec"]["taints"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn is_same_taint(one: &Value, other: &Value) -> bool {
    ["key", "effect"].iter().all(|field| one[*field] == other[*field])
}

fn difference(before: &Value, after: &Value) -> Map<String, Value> {
    let none = Map::new();
    let (old, new) = (before.as_object().unwrap_or(&none), after.as_object().unwrap_or(&none));
    let gone = old.keys().filter(|key| !new.contains_key(*key) && !stays(key));
    let gone = gone.map(|key| (key.clone(), Value::Null));
    let set = new.iter().filter(|(key, value)| old.get(*key) != Some(value));
    gone.chain(set.map(|(key, value)| (key.clone(), value.clone()))).collect()
}

/// Whether the key stays though a map leaves it out.
fn stays(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let below = domain.strip_suffix(KUBERNETES);
    let is_kubernetes = below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    is_kubernetes && !OPEN.contains(&domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(labels: Value, taints: Value) -> Value {
        json!({"status": {"nodeLabels": labels, "internalNodeSpec": {"taints": taints}}})
    }

    #[test]
    fn labels_that_are_left_out_go_but_for_those_of_kubernetes() {
        let before = json!({
            "tier": "a", "old": "x", "kubernetes.io/os": "linux", "node-role.kubernetes.io/web": "",
        });
        let before = stored(before, Value::Null);
        let after = stored(json!({"tier": "b", "new": "y"}), Value::Null);
        let change = Change::between(&before, &after);
        let labels = json!({
            "tier": "b", "new": "y", "old": null, "node-role.kubernetes.io/web": null,
        });
        assert_eq!(change.patch(None), json!({"metadata": {"labels": labels}, "spec": {}}));
        assert!(!change.is_in(&before));
        assert!(change.is_in(&after));
        assert!(Change::between(&before, &before).is_empty());
    }

    #[test]
    fn taints_of_others_stay_whatever_came_since() {
        let taint =
            |key: &str, value: &str| json!({"key": key, "value": value, "effect": "NoSchedule"});
        let before = stored(Value::Null, json!([taint("a", "1"), taint("b", "1")]));
        let after = stored(Value::Null, json!([taint("b", "2"), taint("c", "1")]));
        let change = Change::between(&before, &after);
        assert!(change.needs_current());
        let current = json!({"metadata": {"resourceVersion": "7"}, "spec": {
            "taints": [taint("a", "1"), taint("b", "1"), taint("since", "1")]}});
        let patch = change.patch(Some(&current));
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let taints = json!([taint("since", "1"), taint("b", "2"), taint("c", "1")]);
        assert_eq!(patch["spec"]["taints"], taints);
        assert!(
            change.is_in(&after) && !change.is_in(&stored(Value::Null, json!([taint("a", "1")])))
        );
    }
}
