//! Nodes from the scheduler's point of view.

use std::collections::BTreeSet;

use api_meta::labels::{LabelSelector, Labels, Requirement, Test};
use apiserver::stored::Stored;
use serde_json::Value;

/// Field that selects a node by its name in `matchFields`.
const NAME_FIELD: &str = "metadata.name";

/// Labels of a node, sorted by key.
type NodeLabels = [(Box<str>, Box<str>)];

/// Whether a pod spec's node selector and required affinity match the node.
pub fn selects_node(spec: &Value, name: &str, labels: &NodeLabels) -> bool {
    let mut node_selector = spec["nodeSelector"].as_object().into_iter().flatten();
    let selected = node_selector.all(|(key, value)| {
        value.as_str().is_some_and(|value| labels.label_value(key) == Some(value))
    });
    let affinity = &spec["affinity"]["nodeAffinity"];
    let required = &affinity["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = required["nodeSelectorTerms"].as_array();
    selected && terms.is_none_or(|terms| terms.iter().any(|term| matches_term(term, name, labels)))
}

/// Whether one term of an affinity matches the node. A term without conditions matches none.
fn matches_term(term: &Value, name: &str, labels: &NodeLabels) -> bool {
    let conditions = |field: &str| -> Option<LabelSelector> {
        let list = term[field].as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().map(requirement).collect::<Option<Vec<_>>>().map(LabelSelector::new)
    };
    let (Some(expressions), Some(fields)) =
        (conditions("matchExpressions"), conditions("matchFields"))
    else {
        return false;
    };
    let something = !expressions.is_everything() || !fields.is_everything();
    let named = |field: &str| (field == NAME_FIELD).then_some(name);
    something && expressions.matches_labels(labels) && fields.matches(named)
}

/// Parses one condition; `None` when it is invalid.
fn requirement(condition: &Value) -> Option<Requirement> {
    let texts = || -> BTreeSet<String> {
        let list = condition["values"].as_array().into_iter().flatten();
        list.filter_map(|value| value.as_str().map(str::to_owned)).collect()
    };
    let number = || texts().first()?.parse().ok();
    let test = match condition["operator"].as_str()? {
        "In" => Test::In(texts()),
        "NotIn" => Test::NotIn(texts()),
        "Exists" => Test::Exists,
        "DoesNotExist" => Test::DoesNotExist,
        "Gt" => Test::GreaterThan(number()?),
        "Lt" => Test::LessThan(number()?),
        _ => return None,
    };
    Some(Requirement { key: condition["key"].as_str()?.to_owned(), test })
}

/// The properties of a node that scheduling depends on.
pub struct Machine {
    pub name: String,
    labels: Box<[(Box<str>, Box<str>)]>,
    schedulable: bool,
    taints: Vec<Value>,
}

impl Machine {
    /// What the scheduler reads of a Node.
    pub fn of(object: &Stored) -> Self {
        let node = object.value();
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        Self {
            name: object.name.to_string(),
            labels: object.labels.clone(),
            schedulable: node["spec"]["unschedulable"] != true,
            taints: taints.into_iter().filter(|t| t["effect"] != "PreferNoSchedule").collect(),
        }
    }

    /// Whether a pod of this spec can be scheduled here.
    pub fn accepts(&self, spec: &Value) -> bool {
        let tolerated = |taint: &Value| {
            let list = spec["tolerations"].as_array();
            list.into_iter().flatten().any(|toleration| {
                let key = toleration["key"].as_str().unwrap_or_default();
                let effect = toleration["effect"].as_str().unwrap_or_default();
                let exists = toleration["operator"] == "Exists";
                (key.is_empty() && exists || taint["key"] == key)
                    && (effect.is_empty() || taint["effect"] == effect)
                    && (exists || toleration["value"] == taint["value"])
            })
        };
        self.schedulable
            && selects_node(spec, &self.name, &self.labels)
            && self.taints.iter().all(tolerated)
    }
}
