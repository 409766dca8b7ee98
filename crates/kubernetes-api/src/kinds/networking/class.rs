//! Validation of the spec of an IngressClass.

use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::str_of;
use serde_json::Value;

use crate::kinds::prefixed_path;

const CONTROLLER: &str = "spec.controller";
const CONTROLLER_MAX: usize = 250;
const SCOPES: [&str; 2] = ["Cluster", "Namespace"];

/// Returns all causes to refuse a spec, or its change from `old`.
pub fn validate(spec: &Value, old: Option<&Value>) -> Vec<Cause> {
    let controller = str_of(&spec["controller"]);
    let mut causes = Vec::new();
    if old.is_some_and(|old| str_of(&old["controller"]) != controller) {
        causes.push(Cause::invalid(CONTROLLER, &controller.into(), "field is immutable"));
    }
    if controller.len() > CONTROLLER_MAX {
        causes.push(Cause::too_long(CONTROLLER, CONTROLLER_MAX));
    }
    causes.extend(prefixed_path::problems(CONTROLLER, controller));
    if spec["parameters"].is_object() {
        parameters(&spec["parameters"], &mut causes);
    }
    causes
}

fn parameters(parameters: &Value, causes: &mut Vec<Cause>) {
    let field = |name: &str| format!("spec.parameters.{name}");
    let invalid_causes = |name: &str, problems: Vec<String>| {
        let cause = |why| Cause::invalid(field(name), &parameters[name], why);
        problems.iter().map(|why| cause(why)).collect::<Vec<_>>()
    };
    if let Value::String(group) = &parameters["apiGroup"] {
        causes.extend(invalid_causes("apiGroup", names::dns1123_subdomain(group)));
    }
    for name in ["kind", "name"] {
        match str_of(&parameters[name]) {
            "" => causes.push(Cause::required(field(name), "")),
            text => causes.extend(invalid_causes(name, names::path_segment(text, false))),
        }
    }
    let namespace = parameters["namespace"].as_str();
    match (str_of(&parameters["scope"]), namespace) {
        ("Namespace", None) => {
            let why = "`parameters.scope` is set to 'Namespace'";
            causes.push(Cause::required(field("namespace"), why));
        }
        ("Namespace", Some(name)) => {
            causes.extend(invalid_causes("namespace", names::dns1123_label(name)))
        }
        ("Cluster", None) => {}
        ("Cluster", Some(_)) => {
            let why = "`parameters.scope` is set to 'Cluster'";
            causes.push(Cause::forbidden(field("namespace"), why));
        }
        _ => causes.push(Cause::not_supported(field("scope"), &parameters["scope"], &SCOPES)),
    }
}
