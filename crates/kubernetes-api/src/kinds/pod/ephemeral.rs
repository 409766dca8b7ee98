//! `…/pods/<name>/ephemeralcontainers`: adds containers to a running pod.

use std::collections::BTreeSet;

use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use super::validate::ephemeral_container;

pub const NAME: &str = "ephemeralcontainers";
pub const WRITES: &[&[&str]] = &[&["spec", "ephemeralContainers"]];

const FIELD: &str = "spec.ephemeralContainers";
/// Causes to refuse the containers, or their change: containers can only be added.
pub fn validate(object: &Value, old: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let names = |list: &str| items(&spec[list]).iter().map(|container| str_of(&container["name"]));
    let mut seen: BTreeSet<&str> = names("containers").chain(names("initContainers")).collect();
    let containers = items(&spec["ephemeralContainers"]);
    let mut causes = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let field = format!("{FIELD}[{index}]");
        ephemeral_container(&field, container, spec, &mut seen, &mut causes);
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
