//! Validation of the resource quota of a project: the names of its resources, their quantities, and
//! whether the default of a namespace fits into the limit of the project. Nothing here is enforced
//! in clusters. A quota that was stored before is validated only when a write changes it, so that
//! other writes to its project succeed.

use std::collections::BTreeMap;

use api_meta::quantity::Quantity;
use api_meta::status::Cause;
use serde_json::Value;

/// The resources that a quota can limit.
const RESOURCES: [&str; 13] = [
    "configMaps",
    "limitsCpu",
    "limitsMemory",
    "persistentVolumeClaims",
    "pods",
    "replicationControllers",
    "requestsCpu",
    "requestsMemory",
    "requestsStorage",
    "secrets",
    "services",
    "servicesLoadBalancers",
    "servicesNodePorts",
];
const LIMIT: &str = "spec.resourceQuota.limit";
const NAMESPACE_DEFAULT: &str = "spec.namespaceDefaultResourceQuota.limit";

type Quantities = BTreeMap<String, Quantity>;

/// What is wrong with the quota of `project`; nothing when it is the one of `old`.
pub fn validate_quota(project: &Value, old: Option<&Value>) -> Vec<Cause> {
    let fields = [LIMIT, NAMESPACE_DEFAULT].map(pointer);
    let is_stored =
        |field: &String| old.is_some_and(|old| old.pointer(field) == project.pointer(field));
    if fields.iter().all(is_stored) {
        return Vec::new();
    }
    let mut causes = Vec::new();
    let limit = parse_limits(LIMIT, project, &mut causes);
    let default = parse_limits(NAMESPACE_DEFAULT, project, &mut causes);
    if causes.is_empty() {
        causes.extend(missing(LIMIT, &limit, &default));
        causes.extend(missing(NAMESPACE_DEFAULT, &default, &limit));
        causes.extend(excesses(&limit, &default));
    }
    causes
}

fn pointer(field: &str) -> String {
    format!("/{}", field.replace('.', "/"))
}

fn parse_limits(field: &str, project: &Value, causes: &mut Vec<Cause>) -> Quantities {
    let Some(limits) = project.pointer(&pointer(field)).and_then(Value::as_object) else {
        return Quantities::new();
    };
    let mut quantities = Quantities::new();
    // An empty text is a field that a form left empty.
    for (resource, value) in limits.iter().filter(|(_, value)| !value.is_null() && *value != "") {
        match parse_limit(&format!("{field}.{resource}"), resource, value) {
            Ok(quantity) => drop(quantities.insert(resource.clone(), quantity)),
            Err(cause) => causes.push(cause),
        }
    }
    quantities
}

fn parse_limit(field: &str, resource: &str, value: &Value) -> Result<Quantity, Cause> {
    if !RESOURCES.contains(&resource) {
        return Err(Cause::not_supported(field, &Value::from(resource), &RESOURCES));
    }
    let text = value.as_str().ok_or_else(|| Cause::invalid(field, value, "must be a string"))?;
    let quantity: Quantity = text
        .parse()
        .map_err(|_| Cause::invalid(field, value, "must be a quantity like 10 or 2Gi"))?;
    if quantity.is_negative() {
        return Err(Cause::invalid(field, value, "must be greater than or equal to 0"));
    }
    Ok(quantity)
}

/// The resources of `other` that `present`, the quantities at `field`, does not limit.
fn missing(field: &str, present: &Quantities, other: &Quantities) -> Vec<Cause> {
    let detail = "the limit of the project and the default of its namespaces must have the same \
                  resources";
    let absent = other.keys().filter(|resource| !present.contains_key(*resource));
    absent.map(|resource| Cause::required(format!("{field}.{resource}"), detail)).collect()
}

fn excesses(limit: &Quantities, default: &Quantities) -> Vec<Cause> {
    let both = default.iter().filter_map(|(name, amount)| Some((name, amount, limit.get(name)?)));
    both.filter(|(_, amount, limit)| amount > limit)
        .map(|(name, amount, limit)| {
            let excess = amount.minus(limit);
            let detail = format!("exceeds the limit of the project, {limit}, by {excess}");
            let value = Value::from(amount.to_string());
            Cause::invalid(format!("{NAMESPACE_DEFAULT}.{name}"), &value, &detail)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn project(limit: Value, default: Value) -> Value {
        json!({"spec": {
            "resourceQuota": {"limit": limit},
            "namespaceDefaultResourceQuota": {"limit": default},
        }})
    }

    fn problem(limit: Value, default: Value) -> String {
        let causes = validate_quota(&project(limit, default), None);
        format!("{causes:?}")
    }

    #[test]
    fn a_quota_whose_default_fits_is_accepted() {
        assert_eq!(problem(json!({"requestsCpu": "1"}), json!({"requestsCpu": "1000m"})), "[]");
        assert!(validate_quota(&json!({"spec": {}}), None).is_empty());
    }

    #[test]
    fn a_default_over_the_limit_says_by_how_much() {
        let said = problem(json!({"requestsMemory": "2Gi"}), json!({"requestsMemory": "3Gi"}));
        assert!(said.contains("limit of the project, 2Gi, by 1Gi"), "{said}");
    }

    #[test]
    fn limit_and_default_have_the_same_resources() {
        let said = problem(json!({"pods": "10"}), json!({}));
        assert!(said.contains("spec.namespaceDefaultResourceQuota.limit.pods"), "{said}");
        let said = problem(json!({}), json!({"pods": "10"}));
        assert!(said.contains("spec.resourceQuota.limit.pods"), "{said}");
    }

    #[test]
    fn unknown_resources_and_bad_quantities_are_named() {
        for (resource, value) in [("pod", "1"), ("pods", "many"), ("pods", "-1")] {
            let said = problem(json!({resource: value}), json!({}));
            assert!(said.contains(&format!("spec.resourceQuota.limit.{resource}")), "{said}");
        }
    }

    #[test]
    fn a_stored_quota_does_not_block_other_writes() {
        let stored = project(json!({"pods": "many"}), json!({}));
        assert!(validate_quota(&stored, Some(&stored)).is_empty());
    }
}
