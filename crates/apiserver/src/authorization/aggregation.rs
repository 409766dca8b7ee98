//! Aggregated roles: a ClusterRole with an `aggregationRule` has the rules of all roles that its
//! selectors match.

use api_meta::labels::LabelSelector;
use api_meta::object::ObjectExt;
use serde_json::Value;

/// The desired rules of `role`, given all ClusterRoles; `None` when it has them already or
/// aggregates nothing.
///
/// The union is in the order of the selectors, and within one in the order of names, without
/// duplicates.
pub fn aggregated_rules(role: &Value, all: &[Value]) -> Option<Value> {
    let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array()?;
    let mut sources: Vec<&Value> = all.iter().filter(|other| other.name() != role.name()).collect();
    sources.sort_by_key(|source| source.name());
    let mut rules: Vec<Value> = Vec::new();
    for selector in selectors {
        // A selector that cannot be parsed matches nothing.
        let selector = LabelSelector::from_object(selector).unwrap_or(LabelSelector::nothing());
        let matching = |source: &&&Value| selector.matches(|key| source.label(key));
        for source in sources.iter().filter(matching) {
            for rule in source["rules"].as_array().into_iter().flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    let current = role["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    (current != rules).then_some(Value::Array(rules))
}

/// Updates the rules of all aggregating roles, including those that aggregate each other. Returns
/// the changed roles.
pub fn aggregate_all(all: &mut [Value]) -> Vec<Value> {
    let mut changed: Vec<String> = Vec::new();
    // A chain of aggregations converges in as many rounds as it is long; a cycle too, because rules
    // are only added.
    for _ in 0..all.len() {
        let updates: Vec<(usize, Value)> =
            (0..all.len()).filter_map(|i| Some((i, aggregated_rules(&all[i], all)?))).collect();
        if updates.is_empty() {
            break;
        }
        for (i, rules) in updates {
            all[i]["rules"] = rules;
            if !changed.iter().any(|name| name == all[i].name()) {
                changed.push(all[i].name().to_owned());
            }
        }
    }
    all.iter().filter(|role| changed.iter().any(|name| name == role.name())).cloned().collect()
}
