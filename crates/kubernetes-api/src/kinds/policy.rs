//! Limits and priorities: PodDisruptionBudget, ResourceQuota, LimitRange, PriorityClass,
//! RuntimeClass. This module stores and returns them; [`apiserver::quota`] enforces quotas,
//! [`apiserver::admission`] limits.

mod budget;
mod limits;
mod quota;
mod runtime;

use api_meta::object::ObjectExt;
use api_meta::status::Cause;
use apiserver::fields::{Object, each, ensure, map, preset, str_of, text};
use apiserver::kind::cells::{self, number};
use apiserver::kind::normal::{quantity_problem, quantity_problem_of_both};
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use serde_json::Value;

use super::{pod, status};

const SYSTEM_PREFIX: &str = "system-";
/// Highest value of a user's class. Higher values are reserved for the system.
const USER_PRIORITY_MAX: i64 = 1_000_000_000;
const PREEMPTION_POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];
const SYSTEM_CLASSES: &[&str] = &["system-cluster-critical", "system-node-critical"];

/// The kind PodDisruptionBudget of the group `policy`: namespaced, with the defaults, validation
/// and columns of kube-apiserver.
pub fn pod_disruption_budget() -> Kind {
    let mut kind = Kind {
        short_names: &["pdb"],
        columns: &[
            NAME,
            ("Min Available", "string", "", 0),
            ("Max Unavailable", "string", "", 0),
            ("Allowed Disruptions", "integer", "", 0),
            AGE,
        ],
        hooks: Hooks {
            default: |object| {
                let Some(object) = map(object) else { return };
                ensure(object, "spec");
                if let Some(status) = ensure(object, "status") {
                    for field in
                        ["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"]
                    {
                        preset(status, field, 0);
                    }
                }
            },
            validate: |_, object, _| budget::validate(&object["spec"]),
            validate_status: |object, _| {
                let status = &object["status"];
                let mut causes = status::conditions("status.conditions", &status["conditions"]);
                let counts =
                    ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
                causes.extend(status::counts(status, &counts));
                causes
            },
            cells: |object, now| {
                let spec = &object["spec"];
                vec![
                    cells::name(object),
                    cells::int_or_text(&spec["minAvailable"], "N/A"),
                    cells::int_or_text(&spec["maxUnavailable"], "N/A"),
                    number(&object["status"]["disruptionsAllowed"]).into(),
                    cells::age(object, now),
                ]
            },
            ..Hooks::default()
        },
        ..Kind::new("policy", "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget")
            .with_status()
            .counted()
    };
    kind.rules.unconditional_update = false;
    kind
}

/// The kind ResourceQuota of the core group: namespaced, with the defaults, validation and columns
/// of kube-apiserver.
pub fn resource_quota() -> Kind {
    Kind {
        short_names: &["quota"],
        columns: &[NAME, ("Request", "string", "", 0), ("Limit", "string", "", 0), AGE],
        hooks: Hooks {
            default: |object| {
                if let Some(object) = map(object) {
                    ensure(object, "spec");
                    ensure(object, "status");
                }
            },
            validate: |_, object, old| {
                quota::validate(&object["spec"], old.map(|old| &old["spec"]))
            },
            validate_status: |object, _| {
                let mut causes = Vec::new();
                for kind in ["hard", "used"] {
                    let amounts = &object["status"][kind];
                    pod::validate::of_quota(&format!("status.{kind}"), amounts, &mut causes);
                }
                causes
            },
            decode_problem: quantity_problem_of_both,
            cells: |object, now| {
                let status = &object["status"];
                let listed = |limits: bool| {
                    let entries: Vec<String> = status["hard"]
                        .as_object()
                        .into_iter()
                        .flatten()
                        .filter(|(name, _)| name.starts_with("limits.") == limits)
                        .map(|(name, hard)| {
                            let used = status["used"][name].as_str().unwrap_or("0");
                            format!("{name}: {used}/{}", str_of(hard))
                        })
                        .collect();
                    Value::from(entries.join(", "))
                };
                vec![cells::name(object), listed(false), listed(true), cells::age(object, now)]
            },
            ..Hooks::default()
        },
        ..Kind::new("", "resourcequotas", "resourcequota", "ResourceQuota")
            .with_status()
            .deleted_as_object()
    }
}

/// The kind LimitRange of the core group: namespaced, with the defaults, validation and columns of
/// kube-apiserver.
pub fn limit_range() -> Kind {
    let mut kind = Kind {
        short_names: &["limits"],
        names_itself: true,
        columns: &[NAME, ("Created At", "date", "", 0)],
        hooks: Hooks {
            default: |object| {
                let spec = map(object).and_then(|object| ensure(object, "spec"));
                if let Some(spec) = spec {
                    each(spec, "limits", default_limit);
                    preset(spec, "limits", Value::Null);
                }
            },
            decode_problem: |object| quantity_problem(&object["spec"]),
            validate: |_, object, _| limits::validate(&object["spec"]),
            cells: |object, _| {
                vec![cells::name(object), object["metadata"]["creationTimestamp"].clone()]
            },
            ..Hooks::default()
        },
        ..Kind::new("", "limitranges", "limitrange", "LimitRange")
    };
    kind.rules.create_on_update = true;
    kind
}

/// A container's default limit is the maximum, if it has one.
fn default_limit(limit: &mut Object) {
    if text(limit, "type") != "Container" {
        return;
    }
    for (target, source) in
        [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")]
    {
        let Some(Value::Object(values)) = limit.get(source).cloned() else { continue };
        if let Some(target) = ensure(limit, target) {
            for (name, value) in values {
                target.entry(name).or_insert(value);
            }
        }
    }
}

/// The kind PriorityClass of the group `scheduling.k8s.io`: cluster-scoped, with the defaults,
/// validation and columns of kube-apiserver.
pub fn priority_class() -> Kind {
    Kind {
        namespaced: false,
        short_names: &["pc"],
        columns: &[
            NAME,
            ("Value", "integer", "", 0),
            ("Global-Default", "boolean", "", 0),
            AGE,
            ("PreemptionPolicy", "string", "", 0),
        ],
        hooks: Hooks {
            // Its generation is always 1.
            prepare: |_, object, old| {
                if old.is_none() {
                    object.set_meta("generation", 1);
                }
            },
            default: |object| {
                if let Some(object) = map(object) {
                    preset(object, "preemptionPolicy", "PreemptLowerPriority");
                    preset(object, "value", 0);
                }
            },
            validate: |write, object, old| match old {
                Some(old) => priority_changes(object, old),
                None => validate_priority(write.name, object),
            },
            cells: |object, now| {
                vec![
                    cells::name(object),
                    number(&object["value"]).into(),
                    (object["globalDefault"] == true).into(),
                    cells::age(object, now),
                    str_of(&object["preemptionPolicy"]).into(),
                ]
            },
            ..Hooks::default()
        },
        ..Kind::new("scheduling.k8s.io", "priorityclasses", "priorityclass", "PriorityClass")
    }
}

fn validate_priority(name: &str, class: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if name.starts_with(SYSTEM_PREFIX) {
        if !SYSTEM_CLASSES.contains(&name) {
            let text = format!(
                "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use \
                 only. error: {name} is not a known system priority class"
            );
            causes.push(Cause::forbidden("metadata.name", &text));
        }
    } else if class["value"].as_i64() > Some(USER_PRIORITY_MAX) {
        let text =
            format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}");
        causes.push(Cause::forbidden("value", &text));
    }
    let policy = &class["preemptionPolicy"];
    if policy == "" {
        causes.push(Cause::required("preemptionPolicy", ""));
    } else if !PREEMPTION_POLICIES.contains(&str_of(policy)) {
        causes.push(Cause::not_supported("preemptionPolicy", policy, &PREEMPTION_POLICIES));
    }
    causes
}

fn priority_changes(class: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if old["value"] != class["value"] {
        causes.push(Cause::forbidden("value", "may not be changed in an update."));
    }
    let (field, policy) = ("preemptionPolicy", &class["preemptionPolicy"]);
    if old[field] != *policy {
        causes.push(Cause::invalid(field, policy, "field is immutable"));
    }
    causes
}

/// The kind RuntimeClass of the group `node.k8s.io`: cluster-scoped, with the validation and
/// columns of kube-apiserver.
pub fn runtime_class() -> Kind {
    let mut kind = Kind {
        namespaced: false,
        columns: &[NAME, ("Handler", "string", "", 0), AGE],
        hooks: Hooks {
            validate: |_, object, old| runtime::validate(object, old),
            cells: |object, now| {
                let handler = str_of(&object["handler"]);
                vec![cells::name(object), handler.into(), cells::age(object, now)]
            },
            ..Hooks::default()
        },
        ..Kind::new("node.k8s.io", "runtimeclasses", "runtimeclass", "RuntimeClass")
    };
    kind.rules.create_on_update = true;
    kind.rules.unconditional_update = false;
    kind
}
