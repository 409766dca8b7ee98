//! The quality-of-service class of a pod, from its requests and limits.

use api_meta::quantity::Quantity;
use serde_json::Value;

use crate::fields::{items, str_of};

const COUNTED: [&str; 2] = ["cpu", "memory"];

/// The class of a pod spec: `BestEffort` without any request or limit, `Guaranteed` when all
/// containers request exactly their limits of CPU and memory, else `Burstable`.
pub fn of(spec: &Value) -> &'static str {
    let containers: Vec<&Value> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|field| items(&spec[field]))
        .map(|container| &container["resources"])
        .collect();
    let quantity = |resources: &Value, kind: &str, name: &str| -> Option<Quantity> {
        let quantity: Quantity = str_of(&resources[kind][name]).parse().ok()?;
        (quantity > Quantity::from_whole(0)).then_some(quantity)
    };
    let any = containers.iter().any(|resources| {
        COUNTED.iter().any(|name| {
            quantity(resources, "limits", name).is_some()
                || quantity(resources, "requests", name).is_some()
        })
    });
    if !any {
        return "BestEffort";
    }
    let all = containers.iter().all(|resources| {
        COUNTED.iter().all(|name| {
            let limit = quantity(resources, "limits", name);
            limit.is_some() && limit == quantity(resources, "requests", name)
        })
    });
    if all { "Guaranteed" } else { "Burstable" }
}
