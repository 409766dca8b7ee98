//! Whether a user who holds some rules may grant others: nobody grants rights that they do not
//! have.

use std::collections::{BTreeMap, BTreeSet};

use crate::rule::{ALL, PolicyRule, path_matches};
use crate::text::quoted_list;

/// Checks that every request that `requested` allows is allowed by one rule of `held`.
///
/// Errs on the safe side: rules in `held` are not combined, so resources "*" is not covered by a
/// list of all existing resources.
///
/// # Errors
/// The parts of `requested` that are not covered, each of one group, resource and verb. Refuse the
/// grant, with the text of [`describe`].
pub fn covers(held: &[PolicyRule], requested: &[PolicyRule]) -> Result<(), Vec<PolicyRule>> {
    let missing: Vec<PolicyRule> = requested
        .iter()
        .flat_map(parts)
        .filter(|part| !held.iter().any(|rule| rule_covers(rule, part)))
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(missing) }
}

/// The missing rules, one per line: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`,
/// sorted, with the verbs of one resource joined. Source: the escalation check of kube-apiserver.
pub fn describe(missing: &[PolicyRule]) -> String {
    let lines: BTreeSet<String> = compact(missing).iter().map(compact_text).collect();
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

/// One rule in the text of refusals.
pub fn compact_text(rule: &PolicyRule) -> String {
    let fields = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.non_resource_urls),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ];
    let shown: Vec<String> = fields
        .iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name}:{}", quoted_list(list)))
        .collect();
    format!("{{{}}}", shown.join(", "))
}

/// The rule as rules of one group, one resource, one verb and at most one name each, or one path
/// and one verb.
fn parts(rule: &PolicyRule) -> Vec<PolicyRule> {
    let mut parts = Vec::new();
    let names: Vec<Vec<String>> = if rule.resource_names.is_empty() {
        vec![Vec::new()]
    } else {
        rule.resource_names.iter().map(|name| vec![name.clone()]).collect()
    };
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                for name in &names {
                    parts.push(PolicyRule {
                        verbs: vec![verb.clone()],
                        api_groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        resource_names: name.clone(),
                        non_resource_urls: Vec::new(),
                    });
                }
            }
        }
    }
    for path in &rule.non_resource_urls {
        for verb in &rule.verbs {
            parts.push(PolicyRule::paths(&[path], &[verb]));
        }
    }
    parts
}

/// Joins the verbs of parts that are otherwise equal, in order of appearance.
fn compact(parts: &[PolicyRule]) -> Vec<PolicyRule> {
    let mut joined: Vec<PolicyRule> = Vec::new();
    let mut positions: BTreeMap<PolicyRule, usize> = BTreeMap::new();
    for part in parts {
        let key = PolicyRule { verbs: Vec::new(), ..part.clone() };
        match positions.get(&key) {
            Some(&position) if part.non_resource_urls.is_empty() => {
                for verb in &part.verbs {
                    if !joined[position].verbs.contains(verb) {
                        joined[position].verbs.push(verb.clone());
                    }
                }
            }
            _ => {
                positions.insert(key, joined.len());
                joined.push(part.clone());
            }
        }
    }
    joined
}

fn rule_covers(held: &PolicyRule, part: &PolicyRule) -> bool {
    let verbs = covers_all(&held.verbs, &part.verbs);
    if part.non_resource_urls.is_empty() {
        verbs
            && covers_all(&held.api_groups, &part.api_groups)
            && part.resources.iter().all(|requested| covers_resource(&held.resources, requested))
            && covers_names(&held.resource_names, &part.resource_names)
    } else {
        verbs && part.non_resource_urls.iter().all(|requested| covers_path(held, requested))
    }
}

fn covers_all(held: &[String], requested: &[String]) -> bool {
    held.iter().any(|item| item == ALL) || requested.iter().all(|item| held.contains(item))
}

fn covers_resource(held: &[String], requested: &str) -> bool {
    held.iter().any(|have| {
        have == ALL
            || have == requested
            || requested
                .split_once('/')
                .is_some_and(|(_, sub)| have.strip_prefix("*/") == Some(sub))
    })
}

fn covers_names(held: &[String], requested: &[String]) -> bool {
    held.is_empty() || (!requested.is_empty() && requested.iter().all(|name| held.contains(name)))
}

/// A pattern is text to another pattern: `/api/*` covers `/api/v1/*`.
fn covers_path(held: &PolicyRule, requested: &str) -> bool {
    held.non_resource_urls.iter().any(|have| have == requested || path_matches(have, requested))
}
