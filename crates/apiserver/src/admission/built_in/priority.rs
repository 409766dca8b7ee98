//! Priority: a pod gets the priority of its PriorityClass, and at most one class is the default.

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::{Value, json};

use super::{all, find};
use crate::fields::str_of;
use crate::registry::Registry;
use crate::registry::admission::{AdmissionOperation, AdmissionRequest};

const KIND: (&str, &str) = ("scheduling.k8s.io", "priorityclasses");

/// Sets the priority of its class in a new pod.
///
/// # Errors
/// 403: the class does not exist, or the pod states another priority.
pub(super) async fn set_from_class(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
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
    set_priority(pod, class.as_ref()).map_err(|text| request.forbidden(Some(pod), &text))
}

/// Sets priority, preemption policy and class name of a pod from `class`. Without a class the
/// priority is 0 and the policy `PreemptLowerPriority`.
///
/// # Errors
/// The pod states another priority or preemption policy; the text is that of Kubernetes.
pub fn set_priority(pod: &mut Value, class: Option<&Value>) -> Result<(), String> {
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

/// Copies priority and preemption policy of the old pod when an update does not state them.
pub(super) fn retain_unstated(pod: &mut Value, old: &Value) {
    for field in ["priority", "preemptionPolicy"] {
        let before = &old["spec"][field];
        if pod["spec"][field].is_null() && !before.is_null() && pod["spec"].is_object() {
            pod["spec"][field] = before.clone();
        }
    }
}

/// The default class; of several, which concurrent writes can create, the one with the lowest
/// value.
fn default_class(classes: Vec<Value>) -> Option<Value> {
    let defaults = classes.into_iter().filter(|class| class["globalDefault"] == true);
    defaults.min_by_key(|class| class["value"].as_i64())
}

/// Refuses a second default class.
///
/// # Errors
/// 403: another class is already the default.
pub(super) async fn check(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    class: &Value,
) -> Result<(), Status> {
    if class["globalDefault"] != true {
        return Ok(());
    }
    registry.fresh().await?;
    let Some(default) = default_class(all(registry, KIND.0, KIND.1).await?) else { return Ok(()) };
    if request.operation == AdmissionOperation::Update && default.name() == class.name() {
        return Ok(());
    }
    let name = default.name();
    let text =
        format!("PriorityClass {name} is already marked as default. Only one default can exist");
    Err(request.forbidden(Some(class), &text))
}
