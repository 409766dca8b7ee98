//! Which objects a quota covers.

use serde_json::{Value, json};

use super::{pod, usage};
use crate::fields::{items, str_of};
use crate::quota::quality;
use crate::resource::Resource;

/// Whether an object is in every scope of a quota. Scopes apply to pods, and one to claims.
pub fn covers(quota: &Value, resource: &Resource, object: &Value) -> bool {
    let spec = &quota["spec"];
    let plain = items(&spec["scopes"]).iter().map(|scope| (str_of(scope), "Exists", &Value::Null));
    let chosen = items(&spec["scopeSelector"]["matchExpressions"]).iter().map(|expression| {
        let operator = str_of(&expression["operator"]);
        (str_of(&expression["scopeName"]), operator, &expression["values"])
    });
    plain.chain(chosen).all(|(scope, operator, values)| {
        if usage::is_pod(resource) {
            covers_pod(scope, operator, values, object)
        } else if usage::is_claim(resource) && scope == "VolumeAttributesClass" {
            covers_claim(operator, values, object)
        } else {
            false
        }
    })
}

fn covers_pod(scope: &str, operator: &str, values: &Value, object: &Value) -> bool {
    let best_effort = || match str_of(&object["status"]["qosClass"]) {
        "" => quality::of(&object["spec"]) == "BestEffort",
        known => known == "BestEffort",
    };
    match scope {
        "Terminating" => pod::is_bounded(object),
        "NotTerminating" => !pod::is_bounded(object),
        "BestEffort" => best_effort(),
        "NotBestEffort" => !best_effort(),
        "PriorityClass" => selects(operator, values, str_of(&object["spec"]["priorityClassName"])),
        "CrossNamespacePodAffinity" => has_cross_namespace_affinity(object),
        _ => false,
    }
}

fn covers_claim(operator: &str, values: &Value, claim: &Value) -> bool {
    let named = [
        &claim["spec"]["volumeAttributesClassName"],
        &claim["status"]["currentVolumeAttributesClassName"],
        &claim["status"]["modifyVolumeStatus"]["targetVolumeAttributesClassName"],
    ];
    let classes: Vec<&str> =
        named.into_iter().map(str_of).filter(|name| !name.is_empty()).collect();
    if classes.is_empty() {
        return selects(operator, values, "");
    }
    classes.into_iter().any(|class| selects(operator, values, class))
}

/// Whether a name is selected; empty is no name.
fn selects(operator: &str, values: &Value, name: &str) -> bool {
    let listed = || items(values).contains(&json!(name));
    match operator {
        "Exists" => !name.is_empty(),
        "DoesNotExist" => name.is_empty(),
        "In" => !name.is_empty() && listed(),
        "NotIn" => name.is_empty() || !listed(),
        _ => false,
    }
}

fn has_cross_namespace_affinity(pod: &Value) -> bool {
    let beyond = |term: &Value| {
        !items(&term["namespaces"]).is_empty() || term["namespaceSelector"].is_object()
    };
    ["podAffinity", "podAntiAffinity"].iter().map(|kind| &pod["spec"]["affinity"][*kind]).any(
        |affinity| {
            items(&affinity["requiredDuringSchedulingIgnoredDuringExecution"]).iter().any(beyond)
                || items(&affinity["preferredDuringSchedulingIgnoredDuringExecution"])
                    .iter()
                    .any(|weighted| beyond(&weighted["podAffinityTerm"]))
        },
    )
}
