//! Validates mutating policies and their bindings beyond what validating ones have in common. Pure;
//! messages follow kube-apiserver.

use api_meta::status::Cause;
use serde_json::Value;

use super::super::mutating::PatchType;
use super::{binding_spec, constraints, scope};
use crate::admission::expressions::Composition;
use crate::fields::{items, str_of};

/// Without `DELETE`: a delete has no object to change.
const OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];

/// Validates a mutating policy and returns every problem.
pub(in crate::admission::policies) fn policy(object: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    constraints(spec, &mut causes);
    operations(&spec["matchConstraints"], "spec.matchConstraints", &mut causes);
    let scope = scope(spec, &mut causes);
    let mutations = items(&spec["mutations"]);
    if mutations.is_empty() {
        let detail = "mutations must contain at least one item";
        causes.push(Cause::required("spec.mutations", detail));
    }
    for (index, one) in mutations.iter().enumerate() {
        mutation(one, &format!("spec.mutations[{index}]"), &scope, &mut causes);
    }
    let reinvocation = &spec["reinvocationPolicy"];
    let path = "spec.reinvocationPolicy";
    match str_of(reinvocation) {
        "" => causes.push(Cause::required(path, "")),
        known if REINVOCATION_POLICIES.contains(&known) => {}
        _ => causes.push(Cause::not_supported(path, reinvocation, &REINVOCATION_POLICIES)),
    }
    causes
}

/// Validates a binding of a mutating policy and returns every problem.
pub(in crate::admission::policies) fn binding(object: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    binding_spec(spec, &mut causes);
    operations(&spec["matchResources"], "spec.matchResources", &mut causes);
    causes
}

fn operations(resources: &Value, path: &str, causes: &mut Vec<Cause>) {
    let rules = items(&resources["resourceRules"]).iter();
    for operation in rules.flat_map(|rule| items(&rule["operations"])) {
        if !OPERATIONS.contains(&str_of(operation)) {
            let field = format!("{path}.resourceRules.operations");
            causes.push(Cause::not_supported(field, operation, &OPERATIONS));
        }
    }
}

fn mutation(mutation: &Value, path: &str, scope: &Composition, causes: &mut Vec<Cause>) {
    let name = &mutation["patchType"];
    let field = format!("{path}.patchType");
    let Some((patch_type, name, own)) =
        PatchType::ALL.into_iter().find(|(_, known, _)| name == known)
    else {
        causes.push(match str_of(name) {
            "" => Cause::required(field, ""),
            _ => Cause::not_supported(field, name, &PatchType::ALL.map(|(_, name, _)| name)),
        });
        return;
    };
    if mutation[own].is_null() {
        let detail = format!("must be specified when patchType is {name}");
        causes.push(Cause::required(format!("{path}.{own}"), &detail));
    } else {
        let source = str_of(&mutation[own]["expression"]).trim();
        let field = format!("{path}.{own}.expression");
        if source.is_empty() {
            causes.push(Cause::required(field, ""));
        } else if let Err(problem) = scope.compile_mutation(source, &patch_type.result()) {
            causes.push(Cause::invalid(field, &source.into(), &problem));
        }
    }
    let others = PatchType::ALL.into_iter().filter(|(_, _, field)| *field != own);
    for (_, _, other) in others.filter(|(_, _, field)| !mutation[field].is_null()) {
        let detail = format!("must not be specified when patchType is {name}");
        let shown = format!("{{{other}}}");
        causes.push(Cause::invalid(format!("{path}.{other}"), &shown.into(), &detail));
    }
}
