//! Validation of the quota of a project and of the limits for its containers: the names of
//! resources, their quantities, whether the default of a namespace fits into the limit, and whether
//! the limit holds what the namespaces have. What was stored before is validated only when a write
//! changes it, so that other writes to its project succeed.

use api_management::ids;
use api_management::project::{CONTAINER_RESOURCES, QUOTA_RESOURCES};
use api_meta::quantity::Quantity;
use api_meta::status::Cause;
use serde_json::{Map, Value};

use super::allocation::Quantities;

/// Reason of a [`Cause`], and code under `/v3`: a quantity is over a limit.
const MAX_LIMIT_EXCEEDED: &str = "MaxLimitExceeded";
const LIMIT: &str = "spec.resourceQuota.limit";
const NAMESPACE_DEFAULT: &str = "spec.namespaceDefaultResourceQuota.limit";
const CONTAINERS: &str = "spec.containerDefaultResourceLimit";
/// What is wrong with the limits of `project`; nothing when they are those of `old`.
/// `namespaces`: how many the project has.
pub(crate) fn validate(project: &Value, old: Option<&Value>, namespaces: i64) -> Vec<Cause> {
    let is_stored = |field: &str| {
        old.is_some_and(|old| old.pointer(&pointer(field)) == project.pointer(&pointer(field)))
    };
    let mut causes = Vec::new();
    if !is_stored(CONTAINERS) {
        causes.extend(container_limits(CONTAINERS, at(project, CONTAINERS)));
    }
    if ![LIMIT, NAMESPACE_DEFAULT].into_iter().all(is_stored) {
        causes.extend(quota(project, old, namespaces));
    }
    if is_set(project) && project["metadata"]["namespace"] == ids::LOCAL_CLUSTER {
        let detail =
            "Drover's own cluster has no workloads, so nothing enforces a quota or limits there";
        causes.push(Cause::forbidden("spec.resourceQuota", detail));
    }
    causes
}

fn is_set(project: &Value) -> bool {
    [LIMIT, NAMESPACE_DEFAULT, CONTAINERS]
        .iter()
        .filter_map(|field| at(project, field))
        .any(|limits| limits.values().any(is_amount))
}

fn pointer(field: &str) -> String {
    format!("/{}", field.replace('.', "/"))
}

fn at<'a>(project: &'a Value, field: &str) -> Option<&'a Map<String, Value>> {
    project.pointer(&pointer(field)).and_then(Value::as_object)
}

/// An empty text is a field that a form left empty.
fn is_amount(value: &Value) -> bool {
    !value.is_null() && *value != ""
}

fn quota(project: &Value, old: Option<&Value>, namespaces: i64) -> Vec<Cause> {
    let mut causes = Vec::new();
    let limit = parse(LIMIT, at(project, LIMIT), &mut causes);
    let default = parse(NAMESPACE_DEFAULT, at(project, NAMESPACE_DEFAULT), &mut causes);
    if causes.is_empty() {
        let detail = "the limit of the project and the default of its namespaces must have the \
                      same resources";
        causes.extend(missing(LIMIT, &limit, &default, detail));
        causes.extend(missing(NAMESPACE_DEFAULT, &default, &limit, detail));
        causes.extend(over_limit(&limit, &default));
    }
    if causes.is_empty() {
        let used = used(old);
        causes.extend(under_use(&limit, &default, &used, namespaces));
    }
    causes
}

/// The quantities of `limits` at `field`; `causes` gets what is wrong with the others.
pub(super) fn parse(
    field: &str,
    limits: Option<&Map<String, Value>>,
    causes: &mut Vec<Cause>,
) -> Quantities {
    let mut quantities = Quantities::new();
    let names = QUOTA_RESOURCES.map(|(name, _)| name);
    for (resource, value) in limits.into_iter().flatten().filter(|(_, value)| is_amount(value)) {
        match parse_limit(&format!("{field}.{resource}"), resource, value, &names) {
            Ok(quantity) => drop(quantities.insert(resource.clone(), quantity)),
            Err(cause) => causes.push(cause),
        }
    }
    quantities
}

fn parse_limit(
    field: &str,
    resource: &str,
    value: &Value,
    names: &[&str],
) -> Result<Quantity, Cause> {
    if !names.contains(&resource) {
        return Err(Cause::not_supported(field, &Value::from(resource), names));
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
pub(super) fn missing(
    field: &str,
    present: &Quantities,
    other: &Quantities,
    detail: &str,
) -> Vec<Cause> {
    let absent = other.keys().filter(|resource| !present.contains_key(*resource));
    absent.map(|resource| Cause::required(format!("{field}.{resource}"), detail)).collect()
}

/// An amount over a limit.
pub(super) fn exceeded(field: String, amount: &Quantity, detail: &str) -> Cause {
    let value = Value::from(amount.to_string());
    Cause { reason: MAX_LIMIT_EXCEEDED.to_owned(), ..Cause::invalid(field, &value, detail) }
}

fn over_limit(limit: &Quantities, default: &Quantities) -> Vec<Cause> {
    let both = default.iter().filter_map(|(name, amount)| Some((name, amount, limit.get(name)?)));
    both.filter(|(_, amount, limit)| amount > limit)
        .map(|(name, amount, limit)| {
            let excess = amount.minus(limit);
            let detail = format!("exceeds the limit of the project, {limit}, by {excess}");
            exceeded(format!("{NAMESPACE_DEFAULT}.{name}"), amount, &detail)
        })
        .collect()
}

fn used(old: Option<&Value>) -> Quantities {
    let used = old.and_then(|old| old.pointer("/status/usedLimit")).and_then(Value::as_object);
    let amount = |value: &Value| value.as_str()?.parse().ok();
    used.into_iter().flatten().filter_map(|(name, it)| Some((name.clone(), amount(it)?))).collect()
}

/// Limits below what the namespaces have. Of a resource that was not limited before, each has the
/// default.
fn under_use(
    limit: &Quantities,
    default: &Quantities,
    used: &Quantities,
    namespaces: i64,
) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (name, limit) in limit {
        let field = format!("{LIMIT}.{name}");
        let total = (0..namespaces).fold(Quantity::from_whole(0), |sum, _| {
            default.get(name).map_or(sum, |default| sum.plus(default))
        });
        match used.get(name) {
            Some(used) if used > limit => {
                let by = used.minus(limit);
                let detail = format!(
                    "the namespaces of the project have {used} of it, {by} more: lower their \
                     quotas first"
                );
                causes.push(exceeded(field, limit, &detail));
            }
            None if total > *limit => {
                let detail = format!(
                    "the project has {namespaces} namespaces, which get {total} of it by default: \
                     lower the default of a namespace, or raise this limit"
                );
                causes.push(exceeded(field, limit, &detail));
            }
            _ => {}
        }
    }
    causes
}

/// What is wrong with limits for containers at `field`.
pub(super) fn container_limits(field: &str, limits: Option<&Map<String, Value>>) -> Vec<Cause> {
    let names: Vec<&str> = CONTAINER_RESOURCES.iter().flat_map(|(a, b)| [*a, *b]).collect();
    let (mut causes, mut amounts) = (Vec::new(), Quantities::new());
    for (name, value) in limits.into_iter().flatten().filter(|(_, value)| is_amount(value)) {
        match parse_limit(&format!("{field}.{name}"), name, value, &names) {
            Ok(amount) => drop(amounts.insert(name.clone(), amount)),
            Err(cause) => causes.push(cause),
        }
    }
    for (request, limit) in CONTAINER_RESOURCES {
        if let (Some(requested), Some(most)) = (amounts.get(request), amounts.get(limit))
            && requested > most
        {
            let detail = format!("exceeds the limit {limit}, {most}");
            causes.push(exceeded(format!("{field}.{request}"), requested, &detail));
        }
    }
    causes
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
        let causes = validate(&project(limit, default), None, 0);
        format!("{causes:?}")
    }

    #[test]
    fn a_quota_whose_default_fits_is_accepted() {
        assert_eq!(problem(json!({"requestsCpu": "1"}), json!({"requestsCpu": "1000m"})), "[]");
        assert!(validate(&json!({"spec": {}}), None, 0).is_empty());
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
        assert!(validate(&stored, Some(&stored), 0).is_empty());
    }

    #[test]
    fn a_limit_is_not_lowered_below_what_namespaces_have() {
        let mut old = project(json!({"pods": "10"}), json!({"pods": "1"}));
        old["status"]["usedLimit"] = json!({"pods": "8"});
        let lowered = |pods: &str| {
            let new = project(json!({"pods": pods}), json!({"pods": "1"}));
            format!("{:?}", validate(&new, Some(&old), 9))
        };
        assert_eq!(lowered("8"), "[]");
        let said = lowered("6");
        assert!(said.contains("have 8 of it, 2 more") && said.contains("MaxLimit"), "{said}");
    }

    #[test]
    fn a_new_limit_has_room_for_the_default_of_each_namespace() {
        let new = project(json!({"pods": "10"}), json!({"pods": "4"}));
        assert!(validate(&new, Some(&json!({})), 2).is_empty());
        let said = format!("{:?}", validate(&new, Some(&json!({})), 3));
        assert!(said.contains("has 3 namespaces, which get 12 of it"), "{said}");
    }

    #[test]
    fn limits_of_containers_have_names_and_requests_fit_into_them() {
        let containers = |limits: Value| {
            let project = json!({"spec": {"containerDefaultResourceLimit": limits}});
            format!("{:?}", validate(&project, None, 0))
        };
        assert_eq!(containers(json!({"limitsCpu": "1", "requestsCpu": "500m"})), "[]");
        assert!(containers(json!({"pods": "1"})).contains("NotSupported"));
        let said = containers(json!({"limitsMemory": "1Mi", "requestsMemory": "1Gi"}));
        assert!(said.contains("exceeds the limit limitsMemory, 1Mi"), "{said}");
    }

    #[test]
    fn nothing_enforces_quotas_in_the_cluster_of_the_server() {
        let mut project = project(json!({"pods": "2"}), json!({"pods": "1"}));
        project["metadata"]["namespace"] = "local".into();
        assert_eq!(validate(&project, None, 0).len(), 1);
    }
}
