//! The kinds of validating and mutating policies and their bindings, as they are served.

use std::sync::Arc;

use api_meta::status::Status;
use serde_json::Value;

pub use super::guard::PolicyGuard;
use super::guard::{MUTATING, VALIDATING};
use super::{BINDINGS, MUTATING_BINDINGS, MUTATING_POLICIES, POLICIES, validate};
use crate::admission::webhooks::GROUP;
use crate::fields::{Object, child, each, ensure, items, map, preset, str_of};
use crate::kind::cells;
use crate::kind::{AGE, ColumnSpec, Hooks, Kind, NAME};
use crate::resource::Resource;
use crate::strategy::{Operation, Write};

const UNSET: &str = "<unset>";

/// Creates all four resources. `guard` authorizes their writers.
pub fn policy_resources(guard: &Arc<PolicyGuard>) -> Vec<Resource> {
    let kinds =
        [validating(guard), validating_binding(guard), mutating(guard), mutating_binding(guard)];
    kinds.map(Kind::into_resource).into()
}

fn validating(guard: &Arc<PolicyGuard>) -> Kind {
    let kind = Kind {
        prefix: "/registry/validatingadmissionpolicies/",
        columns: &[NAME, ("Validations", "integer", "", 0), ("ParamKind", "string", "", 0), AGE],
        preserved_by_status: &[
            &["spec"],
            &["metadata", "labels"],
            &["metadata", "annotations"],
            &["metadata", "finalizers"],
            &["metadata", "ownerReferences"],
        ],
        hooks: Hooks {
            default: |object| {
                let Some(object) = map(object) else { return };
                ensure(object, "status");
                default_policy(object);
            },
            validate: |write, object, _| match write.operation {
                Operation::UpdateStatus => validate::policy_status(object),
                _ => validate::policy(object),
            },
            cells: |object, now| policy_cells(object, "validations", now),
            ..Hooks::default()
        },
        ..Kind::new(GROUP, POLICIES, "validatingadmissionpolicy", VALIDATING.policy).with_status()
    };
    with_guard(kind, guard, |guard, write, object, old| {
        guard.admit_policy(&VALIDATING, write, object, old)
    })
}

fn mutating(guard: &Arc<PolicyGuard>) -> Kind {
    let kind = Kind {
        prefix: "/registry/mutatingadmissionpolicies/",
        columns: &[NAME, ("Mutations", "integer", "", 0), ("ParamKind", "string", "", 0), AGE],
        hooks: Hooks {
            default: |object| map(object).into_iter().for_each(default_policy),
            validate: |_, object, _| validate::mutating::policy(object),
            cells: |object, now| policy_cells(object, "mutations", now),
            ..Hooks::default()
        },
        ..Kind::new(GROUP, MUTATING_POLICIES, "mutatingadmissionpolicy", MUTATING.policy)
    };
    with_guard(kind, guard, |guard, write, object, old| {
        guard.admit_policy(&MUTATING, write, object, old)
    })
}

fn validating_binding(guard: &Arc<PolicyGuard>) -> Kind {
    let kind = Kind {
        prefix: "/registry/validatingadmissionpolicybindings/",
        hooks: Hooks { validate: |_, object, _| validate::binding(object), ..binding_hooks() },
        columns: BINDING_COLUMNS,
        ..Kind::new(GROUP, BINDINGS, "validatingadmissionpolicybinding", VALIDATING.binding)
    };
    with_guard(kind, guard, |guard, write, object, old| {
        guard.admit_binding(&VALIDATING, write, object, old)
    })
}

fn mutating_binding(guard: &Arc<PolicyGuard>) -> Kind {
    let validate =
        |_: &Write<'_>, object: &Value, _: Option<&Value>| validate::mutating::binding(object);
    let kind = Kind {
        prefix: "/registry/mutatingadmissionpolicybindings/",
        hooks: Hooks { validate, ..binding_hooks() },
        columns: BINDING_COLUMNS,
        ..Kind::new(GROUP, MUTATING_BINDINGS, "mutatingadmissionpolicybinding", MUTATING.binding)
    };
    with_guard(kind, guard, |guard, write, object, old| {
        guard.admit_binding(&MUTATING, write, object, old)
    })
}

const BINDING_COLUMNS: &[ColumnSpec] =
    &[NAME, ("PolicyName", "string", "", 0), ("ParamRef", "string", "", 0), AGE];

fn binding_hooks() -> Hooks {
    Hooks {
        default: |object| {
            let spec = map(object).and_then(|object| ensure(object, "spec"));
            if let Some(spec) = spec {
                default_match(spec, "matchResources");
            }
        },
        cells: |object, now| {
            let spec = &object["spec"];
            let policy = spec["policyName"].clone();
            let reference = format_reference(&spec["paramRef"]);
            vec![cells::name(object), policy, reference.into(), cells::age(object, now)]
        },
        ..Hooks::default()
    }
}

type Admit = fn(&PolicyGuard, &Write<'_>, &Value, Option<&Value>) -> Result<(), Status>;

/// Adds what the four kinds have in common, with the guard's check `admit` of creates and updates.
fn with_guard(kind: Kind, guard: &Arc<PolicyGuard>, admit: Admit) -> Kind {
    let guard = guard.clone();
    let mut kind = Kind {
        namespaced: false,
        categories: &["api-extensions"],
        allocate: Some(Box::new(move |write, object, old| {
            let result = match write.operation {
                Operation::Create | Operation::Update => admit(&guard, write, object, old),
                _ => Ok(()),
            };
            Box::pin(std::future::ready(result))
        })),
        ..kind.counted()
    };
    kind.rules.unconditional_update = false;
    kind
}

fn default_policy(object: &mut Object) {
    let Some(spec) = ensure(object, "spec") else { return };
    preset(spec, "failurePolicy", "Fail");
    default_match(spec, "matchConstraints");
}

fn policy_cells(object: &Value, counted: &str, now: i64) -> Vec<Value> {
    let spec = &object["spec"];
    let kind = match &spec["paramKind"] {
        Value::Null => UNSET.to_owned(),
        kind => format!("{}/{}", str_of(&kind["apiVersion"]), str_of(&kind["kind"])),
    };
    let count = items(&spec[counted]).len();
    vec![cells::name(object), count.into(), kind.into(), cells::age(object, now)]
}

fn default_match(spec: &mut Object, field: &str) {
    let Some(resources) = child(spec, field) else { return };
    preset(resources, "matchPolicy", "Equivalent");
    ensure(resources, "namespaceSelector");
    ensure(resources, "objectSelector");
    for rules in ["resourceRules", "excludeResourceRules"] {
        each(resources, rules, |rule| preset(rule, "scope", "*"));
    }
}

/// The printed cell of the parameters.
fn format_reference(reference: &Value) -> String {
    let namespace = str_of(&reference["namespace"]);
    match (str_of(&reference["name"]), &reference["selector"]) {
        ("", Value::Null) => UNSET.to_owned(),
        ("", selector) => format_selector(selector),
        (name, _) if namespace.is_empty() => format!("*/{name}"),
        (name, _) => format!("{namespace}/{name}"),
    }
}

/// Formats a selector like Go does.
fn format_selector(selector: &Value) -> String {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let labels: String = labels.map(|(key, value)| format!("{key}: {},", str_of(value))).collect();
    let expressions = items(&selector["matchExpressions"]).iter().map(|expression| {
        let values: Vec<&str> = items(&expression["values"]).iter().map(str_of).collect();
        let (key, operator) = (str_of(&expression["key"]), str_of(&expression["operator"]));
        format!(
            "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},",
            values.join(" ")
        )
    });
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:\
         []LabelSelectorRequirement{{{}}},}}",
        expressions.collect::<String>()
    )
}
