//! `…/pods/<name>/resize`: changes CPU and memory of containers, and nothing else.

use api_meta::status::Cause;
use apiserver::fields::{Object, items, map};
use apiserver::quota::quality;
use serde_json::Value;

pub const NAME: &str = "resize";
pub const WRITES: &[&[&str]] = &[&["spec", "containers"], &["spec", "initContainers"]];

const LISTS: [&str; 2] = ["containers", "initContainers"];
/// Resources that can be resized while a pod runs, and that pods can have as a whole.
pub const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// Resets all fields of the containers but their resources. Leaves containers in another order
/// unchanged, so that [`validate`] refuses them.
pub fn prepare(object: &mut Value, old: &Value) {
    for list in LISTS {
        let before = items(&old["spec"][list]);
        let containers = object["spec"].get_mut(list).and_then(Value::as_array_mut);
        for (index, container) in containers.into_iter().flatten().enumerate() {
            let Some(kept) = before.get(index).filter(|kept| kept["name"] == container["name"])
            else {
                continue;
            };
            let requested = std::mem::replace(container, kept.clone());
            let (Some(container), Value::Object(mut requested)) = (map(container), requested)
            else {
                continue;
            };
            for field in ["resizePolicy", "resources"] {
                match requested.remove(field) {
                    Some(value) => container.insert(field.to_owned(), value),
                    None => container.remove(field),
                };
            }
        }
    }
}

/// Causes to refuse the change, besides those of the amounts.
pub fn validate(object: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let class = quality::of(&old["spec"]);
    if quality::of(&object["spec"]) != class {
        let text = "Pod QOS Class may not change as a result of resizing";
        causes.push(Cause::invalid("spec", &class.into(), text));
    }
    for list in LISTS {
        let (before, after) = (items(&old["spec"][list]), items(&object["spec"][list]));
        if before.len() != after.len() {
            let text = "containers may not be added or removed on resize";
            causes.push(Cause::forbidden(format!("spec.{list}"), text));
            continue;
        }
        for (index, (before, after)) in before.iter().zip(after).enumerate() {
            let field = format!("spec.{list}[{index}]");
            if before["name"] != after["name"] {
                let text = "containers may not be renamed or reordered on resize";
                causes.push(Cause::forbidden(format!("{field}.name"), text));
                continue;
            }
            amounts(&field, &before["resources"], &after["resources"], &mut causes);
        }
    }
    causes
}

fn amounts(field: &str, before: &Value, after: &Value, causes: &mut Vec<Cause>) {
    for kind in ["limits", "requests"] {
        let empty = Object::new();
        let (old, new) =
            (before[kind].as_object().unwrap_or(&empty), after[kind].as_object().unwrap_or(&empty));
        let names = old.keys().chain(new.keys());
        let fixed = names.filter(|name| !RESIZABLE.contains(&name.as_str()));
        if fixed.clone().any(|name| old.get(name) != new.get(name)) {
            causes.push(Cause::forbidden("spec", "only cpu and memory resources are mutable"));
        }
        let removed = |name: &&str| old.contains_key(*name) && !new.contains_key(*name);
        if RESIZABLE.iter().any(removed) {
            let text = format!("resource {kind} cannot be removed");
            causes.push(Cause::forbidden(format!("{field}.resources.{kind}"), &text));
        }
    }
}
