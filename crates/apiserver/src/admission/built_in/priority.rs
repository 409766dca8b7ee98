//! Priority: what a pod's PriorityClass says stands in the pod, and at most one class is the default.

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::{Value, json};

use super::{all, find};
use crate::fields::str_of;
use crate::registry::Registry;
use crate::registry::admission::{Operation, Request};

const KIND: (&str, &str) = ("scheduling.k8s.io", "priorityclasses");

/// Puts the priority of its class into a new pod.
///
/// # Errors
/// 403: there is no such class, or the pod states another priority.
pub(super) async fn resolve(
    registry: &Registry,
    request: &Request<'_>,
    pod: &mut Value,
) -> Result<(), Status> {
    let named = str_of(&pod["spec"]["priorityClassName"]);
    let class = if named.is_empty() {
        default_class(all(registry, KIND.0, KIND.1).await?)
    } else {
        let Some(class) = find(registry, KIND, "", named).await? else {
            let text = format!("no PriorityClass with name {named} was found");
            return Err(request.forbidden(Some(pod), &text));
        };
        Some(class)
    };
    set(pod, class.as_ref()).map_err(|text| request.forbidden(Some(pod), &text))
}

/// What a pod gets of `class`, or where there is none.
///
/// # Errors
/// The pod says something else.
pub fn set(pod: &mut Value, class: Option<&Value>) -> Result<(), String> {
    let none = json!({"value": 0, "preemptionPolicy": "PreemptLowerPriority"});
    let found = class.unwrap_or(&none);
    let spec = &mut pod["spec"];
    let (priority, stated) = (&found["value"], &spec["priority"]);
    if !stated.is_null() && stated != priority {
        return Err(format!(
            "the integer value of priority ({stated}) must not be provided in pod spec; priority \
             admission controller computed {priority} from the given PriorityClass name"
        ));
    }
    let (policy, stated) = (&found["preemptionPolicy"], &spec["preemptionPolicy"]);
    if policy.is_string() && !stated.is_null() && stated != policy {
        return Err(format!(
            "the string value of PreemptionPolicy ({}) must not be provided in pod spec; priority \
             admission controller computed {} from the given PriorityClass name",
            str_of(stated),
            str_of(policy)
        ));
    }
    spec["priority"] = priority.clone();
    if policy.is_string() {
        spec["preemptionPolicy"] = policy.clone();
    }
    if let Some(class) = class {
        spec["priorityClassName"] = class.name().into();
    }
    Ok(())
}

/// An update that does not state them leaves them as they are.
pub(super) fn keep(pod: &mut Value, old: &Value) {
    for field in ["priority", "preemptionPolicy"] {
        let before = &old["spec"][field];
        if pod["spec"][field].is_null() && !before.is_null() && pod["spec"].is_object() {
            pod["spec"][field] = before.clone();
        }
    }
}

/// Of several that came at the same time, the lowest.
fn default_class(classes: Vec<Value>) -> Option<Value> {
    let defaults = classes.into_iter().filter(|class| class["globalDefault"] == true);
    defaults.min_by_key(|class| class["value"].as_i64())
}

/// Refuses a second default.
///
/// # Errors
/// 403: there is a default already.
pub(super) async fn check(
    registry: &Registry,
    request: &Request<'_>,
    class: &Value,
) -> Result<(), Status> {
    if class["globalDefault"] != true {
        return Ok(());
    }
    registry.fresh().await?;
    let Some(default) = default_class(all(registry, KIND.0, KIND.1).await?) else { return Ok(()) };
    if request.operation == Operation::Update && default.name() == class.name() {
        return Ok(());
    }
    let name = default.name();
    let text =
        format!("PriorityClass {name} is already marked as default. Only one default can exist");
    Err(request.forbidden(Some(class), &text))
}
