//! Validates policies and bindings. Pure; messages follow kube-apiserver.

pub(super) mod mutating;

use std::collections::BTreeSet;

use api_meta::status::Cause;
use api_meta::{labels, names};
use cel::Type;
use serde_json::Value;

use crate::admission::expressions::Composition;
use crate::admission::match_conditions;
use crate::admission::rules::validate::{known, rule};
use crate::fields::{items, str_of};

const ANNOTATIONS_MAX: usize = 20;
/// The size of the expression of an annotation, in bytes.
const ANNOTATION_EXPRESSION_BYTES_MAX: usize = 5 * 1024;
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

/// Validates a validating policy and returns every problem.
pub(super) fn policy(object: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    constraints(spec, &mut causes);
    let scope = scope(spec, &mut causes);
    let (validations, annotations) =
        (items(&spec["validations"]), items(&spec["auditAnnotations"]));
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        causes.push(Cause::required("spec.validations", detail));
        causes.push(Cause::required("spec.auditAnnotations", detail));
    }
    for (index, one) in validations.iter().enumerate() {
        validation(one, &format!("spec.validations[{index}]"), &scope, &mut causes);
    }
    if annotations.len() > ANNOTATIONS_MAX {
        let detail = format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations");
        let field = "spec.auditAnnotations";
        causes.push(Cause::invalid(field, &spec["auditAnnotations"], &detail));
    }
    let name = str_of(&object["metadata"]["name"]);
    let mut keys = BTreeSet::new();
    for (index, one) in annotations.iter().enumerate() {
        let path = format!("spec.auditAnnotations[{index}]");
        annotation(one, &path, name, &scope, &mut causes);
        if !keys.insert(str_of(&one["key"])) {
            causes.push(Cause::duplicate(format!("{path}.key"), &one["key"]));
        }
    }
    causes
}

/// Validates a write of status: no warning is empty.
pub(super) fn policy_status(object: &Value) -> Vec<Cause> {
    let warnings = items(&object["status"]["typeChecking"]["expressionWarnings"]);
    let mut causes = Vec::new();
    for (index, warning) in warnings.iter().enumerate() {
        for field in ["warning", "fieldRef"] {
            if str_of(&warning[field]).trim().is_empty() {
                let path = format!("status.typeChecking.expressionWarnings[{index}].{field}");
                causes.push(Cause::required(path, ""));
            }
        }
    }
    causes
}

/// Validates a binding of a validating policy and returns every problem.
pub(super) fn binding(object: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    binding_spec(spec, &mut causes);
    actions(&spec["validationActions"], &mut causes);
    causes
}

/// Validates the match constraints and parameters of policies of both kinds.
fn constraints(spec: &Value, causes: &mut Vec<Cause>) {
    known(spec, "failurePolicy", &["Fail", "Ignore"], "spec", causes);
    if !spec["paramKind"].is_null() {
        param_kind(&spec["paramKind"], causes);
    }
    let constraints = &spec["matchConstraints"];
    if constraints.is_null() {
        causes.push(Cause::required("spec.matchConstraints", ""));
        return;
    }
    match_resources(constraints, "spec.matchConstraints", causes);
    if items(&constraints["resourceRules"]).is_empty() {
        causes.push(Cause::required("spec.matchConstraints.resourceRules", ""));
    }
}

/// Validates the match conditions and the variables of a policy. Returns the environment of its
/// other expressions.
fn scope(spec: &Value, causes: &mut Vec<Cause>) -> Composition {
    let has_params = !spec["paramKind"].is_null();
    let conditions = &spec["matchConditions"];
    causes.extend(match_conditions::validate(conditions, "spec.matchConditions", has_params));
    let mut scope = Composition::new(has_params);
    for (index, one) in items(&spec["variables"]).iter().enumerate() {
        variable(one, &format!("spec.variables[{index}]"), &mut scope, causes);
    }
    scope
}

/// Validates the common fields of bindings of both kinds.
fn binding_spec(spec: &Value, causes: &mut Vec<Cause>) {
    match str_of(&spec["policyName"]) {
        "" => causes.push(Cause::required("spec.policyName", "")),
        name => {
            for problem in names::dns1123_subdomain(name) {
                causes.push(Cause::invalid("spec.policyName", &name.into(), &problem));
            }
        }
    }
    if !spec["paramRef"].is_null() {
        param_ref(&spec["paramRef"], causes);
    }
    if !spec["matchResources"].is_null() {
        match_resources(&spec["matchResources"], "spec.matchResources", causes);
    }
}

fn param_kind(kind: &Value, causes: &mut Vec<Cause>) {
    let path = "spec.paramKind.apiVersion";
    let api_version = str_of(&kind["apiVersion"]);
    let mut invalid = |value: &str, problems: Vec<String>| {
        if !problems.is_empty() {
            causes.push(Cause::invalid(path, &value.into(), &problems.join(",")));
        }
    };
    match api_version.split('/').collect::<Vec<_>>().as_slice() {
        [""] => causes.push(Cause::required(path, "")),
        parts @ ([_] | [_, _]) => {
            let (group, version) = match parts {
                [group, version] => (*group, *version),
                _ => ("", api_version),
            };
            if !group.is_empty() {
                invalid(group, names::dns1123_subdomain(group));
            }
            if version.is_empty() {
                invalid(api_version, vec!["version must be specified".to_owned()]);
            } else {
                invalid(version, names::dns1035_label(version));
            }
        }
        _ => invalid(api_version, vec![format!("unexpected GroupVersion string: {api_version}")]),
    }
    let name = str_of(&kind["kind"]);
    let problems = names::dns1035_label(&name.to_lowercase());
    if name.is_empty() {
        causes.push(Cause::required("spec.paramKind.kind", ""));
    } else if !problems.is_empty() {
        let detail =
            format!("may have mixed case, but should otherwise match: {}", problems.join(","));
        causes.push(Cause::invalid("spec.paramKind.kind", &name.into(), &detail));
    }
}

fn match_resources(resources: &Value, path: &str, causes: &mut Vec<Cause>) {
    known(resources, "matchPolicy", &["Equivalent", "Exact"], path, causes);
    for selector in ["namespaceSelector", "objectSelector"] {
        let field = format!("{path}.{selector}");
        causes.extend(labels::validate_selector(&field, &resources[selector]));
    }
    for list in ["resourceRules", "excludeResourceRules"] {
        for (index, entry) in items(&resources[list]).iter().enumerate() {
            let path = format!("{path}.{list}[{index}]");
            resource_names(&entry["resourceNames"], &path, causes);
            rule(entry, &path, causes);
        }
    }
}

fn resource_names(list: &Value, path: &str, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, name) in items(list).iter().enumerate() {
        let field = format!("{path}.resourceNames[{index}]");
        for problem in names::path_segment(str_of(name), false) {
            causes.push(Cause::invalid(field.clone(), name, &problem));
        }
        if !seen.insert(str_of(name)) {
            causes.push(Cause::duplicate(field, name));
        }
    }
}

fn variable(variable: &Value, path: &str, scope: &mut Composition, causes: &mut Vec<Cause>) {
    let (name, source) = (str_of(&variable["name"]), str_of(&variable["expression"]));
    if name.trim().is_empty() {
        causes.push(Cause::required(format!("{path}.name"), "name is not specified"));
    } else if !is_identifier(name) {
        let detail = "must be a valid CEL identifier";
        causes.push(Cause::invalid(format!("{path}.name"), &name.into(), detail));
    }
    let field = format!("{path}.expression");
    if source.trim().is_empty() {
        causes.push(Cause::required(field, "expression is not specified"));
    } else if let Err(problem) = scope.add_variable(name, source) {
        causes.push(Cause::invalid(field, &source.into(), &problem));
    }
}

fn is_identifier(name: &str) -> bool {
    let letter = |c: char| c == '_' || c.is_ascii_alphabetic();
    name.starts_with(letter)
        && name.chars().all(|c| letter(c) || c.is_ascii_digit())
        && !cel::is_reserved(name)
}

fn validation(validation: &Value, path: &str, scope: &Composition, causes: &mut Vec<Cause>) {
    let source = str_of(&validation["expression"]);
    let field = format!("{path}.expression");
    if source.trim().is_empty() {
        causes.push(Cause::required(field, "expression is not specified"));
    } else if let Err(problem) = scope.compile(source, &[Type::Bool], true) {
        causes.push(Cause::invalid(field, &source.into(), &problem));
    }
    let source = str_of(&validation["messageExpression"]);
    let field = format!("{path}.messageExpression");
    if !source.is_empty() && source.trim().is_empty() {
        causes.push(Cause::invalid(field, &source.into(), "must be non-empty if specified"));
    } else if !source.is_empty()
        && let Err(problem) = scope.compile(source, &[Type::Text], false)
    {
        causes.push(Cause::invalid(field, &source.into(), &problem));
    }
    let message = str_of(&validation["message"]);
    let field = format!("{path}.message");
    if !message.is_empty() && message.trim().is_empty() {
        causes.push(Cause::invalid(field, &message.into(), "must be non-empty if specified"));
    } else if message.trim().contains(['\n', '\r']) {
        causes.push(Cause::invalid(field, &message.into(), "must not contain line breaks"));
    }
    known(validation, "reason", &REASONS, path, causes);
}

fn annotation(
    annotation: &Value,
    path: &str,
    policy: &str,
    scope: &Composition,
    causes: &mut Vec<Cause>,
) {
    let key = str_of(&annotation["key"]);
    let field = format!("{path}.key");
    if policy.is_empty() {
        let detail = "requires metadata.name be non-empty";
        causes.push(Cause::invalid(field, &key.into(), detail));
    } else {
        let name = format!("{policy}/{key}");
        for problem in names::qualified_name(&name) {
            causes.push(Cause::invalid(field.clone(), &name.as_str().into(), &problem));
        }
    }
    let source = str_of(&annotation["valueExpression"]);
    let trimmed = source.trim();
    let field = format!("{path}.valueExpression");
    if trimmed.is_empty() {
        causes.push(Cause::required(field, "valueExpression is not specified"));
    } else if trimmed.len() > ANNOTATION_EXPRESSION_BYTES_MAX {
        let detail = format!("must not exceed {ANNOTATION_EXPRESSION_BYTES_MAX} bytes in length");
        causes.push(Cause::required(field, &detail));
    } else if let Err(problem) = scope.compile(trimmed, &[Type::Text, Type::Null], true) {
        causes.push(Cause::invalid(field, &source.into(), &problem));
    }
}

fn param_ref(reference: &Value, causes: &mut Vec<Cause>) {
    let path = "spec.paramRef";
    let (name, selector) = (str_of(&reference["name"]), &reference["selector"]);
    let exclusive = "name and selector are mutually exclusive";
    if !name.is_empty() {
        for problem in names::path_segment(name, false) {
            causes.push(Cause::invalid(format!("{path}.name"), &name.into(), &problem));
        }
        if !selector.is_null() {
            causes.push(Cause::forbidden(format!("{path}.name"), exclusive));
        }
    }
    if !selector.is_null() {
        causes.extend(labels::validate_selector(&format!("{path}.selector"), selector));
        if !name.is_empty() {
            causes.push(Cause::forbidden(format!("{path}.selector"), exclusive));
        }
    }
    if name.is_empty() && selector.is_null() {
        causes.push(Cause::required(path, "one of name or selector must be specified"));
    }
    let action = &reference["parameterNotFoundAction"];
    let field = format!("{path}.parameterNotFoundAction");
    match str_of(action) {
        "" => causes.push(Cause::required(field, "")),
        "Deny" | "Allow" => {}
        _ => causes.push(Cause::not_supported(field, action, &["Deny", "Allow"])),
    }
}

fn actions(list: &Value, causes: &mut Vec<Cause>) {
    let path = "spec.validationActions";
    let mut seen = BTreeSet::new();
    for (index, action) in items(list).iter().enumerate() {
        let field = format!("{path}[{index}]");
        if !ACTIONS.contains(&str_of(action)) {
            causes.push(Cause::not_supported(field.clone(), action, &ACTIONS));
        }
        if !seen.insert(str_of(action)) {
            causes.push(Cause::duplicate(field, action));
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure \
                      information in the API response and headers serves no purpose)";
        causes.push(Cause::invalid(path, list, detail));
    }
    if seen.is_empty() {
        causes.push(Cause::required(path, "at least one validation action is required"));
    }
}
