//! `…/pods/<name>/ephemeralcontainers`: containers that are added to a running pod.

use std::collections::BTreeSet;

use api_meta::status::Cause;
use serde_json::Value;

use super::validate::container_basics;
use crate::builtin::fields::{items, str_of};

pub const NAME: &str = "ephemeralcontainers";
pub const WRITES: &[&[&str]] = &[&["spec", "ephemeralContainers"]];

const FIELD: &str = "spec.ephemeralContainers";
/// What such a container cannot have, in the order in which it is told.
const FORBIDDEN: [&str; 7] = [
    "ports",
    "resources",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "resizePolicy",
];

/// Problems of the containers, and of the change: they are only ever added.
pub fn validate(object: &Value, old: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let names = |list: &str| items(&spec[list]).iter().map(|c| str_of(&c["name"]).to_owned());
    let others: BTreeSet<String> = names("containers").chain(names("initContainers")).collect();
    let mut seen = others.clone();
    let containers = items(&spec["ephemeralContainers"]);
    let mut causes = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let field = format!("{FIELD}[{index}]");
        container_basics(&field, container, &mut seen, &mut causes);
        let is_set = |name: &&&str| match &container[**name] {
            Value::Null => false,
            Value::Object(map) => !(map.is_empty() && **name == "resources"),
            _ => true,
        };
        for name in FORBIDDEN.iter().filter(is_set) {
            let text = "cannot be set for an Ephemeral Container";
            causes.push(Cause::forbidden(format!("{field}.{name}"), text));
        }
        let target = str_of(&container["targetContainerName"]);
        if !target.is_empty() && !others.contains(target) {
            let text = format!("Not found: \"{target}\"");
            let field = format!("{field}.targetContainerName");
            causes.push(Cause::new("FieldValueNotFound", field, text));
        }
    }
    for before in items(&old["spec"]["ephemeralContainers"]) {
        let after = containers.iter().find(|container| container["name"] == before["name"]);
        let what = match after {
            Some(after) if after == before => continue,
            Some(_) => "changed",
            None => "removed",
        };
        let name = str_of(&before["name"]);
        let text = format!("existing ephemeral containers \"{name}\" may not be {what}\n");
        causes.push(Cause::forbidden(FIELD, &text));
    }
    causes
}
