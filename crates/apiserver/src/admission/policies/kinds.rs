//! ValidatingAdmissionPolicy and ValidatingAdmissionPolicyBinding as they are served.

use std::sync::Arc;

use serde_json::Value;

pub use super::guard::PolicyGuard;
use super::{BINDINGS, POLICIES, validate};
use crate::admission::webhooks::GROUP;
use crate::builtin::cells;
use crate::builtin::fields::{Object, child, each, ensure, items, map, preset, str_of};
use crate::builtin::kind::{AGE, Hooks, Kind, NAME};
use crate::resource::Resource;
use crate::strategy::Operation;

const UNSET: &str = "<unset>";

/// Both resources. `guard` is asked about who writes them.
pub fn policy_resources(guard: &Arc<PolicyGuard>) -> Vec<Resource> {
    vec![policy(guard.clone()).into_resource(), binding(guard.clone()).into_resource()]
}

fn policy(guard: Arc<PolicyGuard>) -> Kind {
    let mut kind = Kind {
        namespaced: false,
        categories: &["api-extensions"],
        prefix: "/registry/validatingadmissionpolicies/",
        columns: &[NAME, ("Validations", "integer", "", 0), ("ParamKind", "string", "", 0), AGE],
        kept_by_status: &[
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
                let Some(spec) = ensure(object, "spec") else { return };
                preset(spec, "failurePolicy", "Fail");
                default_match(spec, "matchConstraints");
            },
            validate: |write, object, _| match write.operation {
                Operation::UpdateStatus => validate::policy_status(object),
                _ => validate::policy(object),
            },
            cells: |object, now| {
                let spec = &object["spec"];
                let kind = match &spec["paramKind"] {
                    Value::Null => UNSET.to_owned(),
                    kind => {
                        let (version, kind) = (str_of(&kind["apiVersion"]), str_of(&kind["kind"]));
                        format!("{version}/{kind}")
                    }
                };
                let count = items(&spec["validations"]).len();
                vec![cells::name(object), count.into(), kind.into(), cells::age(object, now)]
            },
            ..Hooks::default()
        },
        allocate: Some(Box::new(move |write, object, old| match write.operation {
            Operation::Create | Operation::Update => guard.admit_policy(write, object, old),
            _ => Ok(()),
        })),
        ..Kind::new(GROUP, POLICIES, "validatingadmissionpolicy", "ValidatingAdmissionPolicy")
            .with_status()
            .counted()
    };
    kind.rules.unconditional_update = false;
    kind
}

fn binding(guard: Arc<PolicyGuard>) -> Kind {
    let mut kind = Kind {
        namespaced: false,
        categories: &["api-extensions"],
        prefix: "/registry/validatingadmissionpolicybindings/",
        columns: &[NAME, ("PolicyName", "string", "", 0), ("ParamRef", "string", "", 0), AGE],
        hooks: Hooks {
            default: |object| {
                let spec = map(object).and_then(|object| ensure(object, "spec"));
                if let Some(spec) = spec {
                    default_match(spec, "matchResources");
                }
            },
            validate: |_, object, _| validate::binding(object),
            cells: |object, now| {
                let spec = &object["spec"];
                let policy = spec["policyName"].clone();
                let reference = told_reference(&spec["paramRef"]);
                vec![cells::name(object), policy, reference.into(), cells::age(object, now)]
            },
            ..Hooks::default()
        },
        allocate: Some(Box::new(move |write, object, old| match write.operation {
            Operation::Create | Operation::Update => guard.admit_binding(write, object, old),
            _ => Ok(()),
        })),
        ..Kind::new(
            GROUP,
            BINDINGS,
            "validatingadmissionpolicybinding",
            "ValidatingAdmissionPolicyBinding",
        )
        .counted()
    };
    kind.rules.unconditional_update = false;
    kind
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

/// The cell of the parameters.
fn told_reference(reference: &Value) -> String {
    let namespace = str_of(&reference["namespace"]);
    match (str_of(&reference["name"]), &reference["selector"]) {
        ("", Value::Null) => UNSET.to_owned(),
        ("", selector) => told_selector(selector),
        (name, _) if namespace.is_empty() => format!("*/{name}"),
        (name, _) => format!("{namespace}/{name}"),
    }
}

/// A selector as Go prints it.
fn told_selector(selector: &Value) -> String {
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
