//! What the caller may do with objects of a Kubernetes resource, from rules instead of one review
//! per object.

use std::collections::{BTreeSet, HashMap};

use futures::{StreamExt, TryStreamExt};
use serde_json::Value;

use super::{VISIBLE_FETCHES_MAX, may, rules_in};
use crate::error::ApiError;
use crate::types::context::Context;
use crate::types::rights::MayChange;
use crate::types::store::{Key, KubeResource};

/// The rights in the order of `keys`. One object gets one access review per verb. Several objects
/// get one review per verb for all objects and, unless both are allowed, one rules review per
/// namespace.
pub(super) async fn may_change(
    context: &Context<'_>,
    resource: &KubeResource,
    keys: &[Key],
) -> Result<Vec<MayChange>, ApiError> {
    if let [only] = keys {
        return Ok(vec![query_rights(context, resource, only).await?]);
    }
    let everywhere = query_rights(context, resource, &Key::default()).await?;
    if everywhere == MayChange::ALL {
        return Ok(vec![everywhere; keys.len()]);
    }
    let namespaces: BTreeSet<String> = keys.iter().map(|key| key.namespace.clone()).collect();
    let rules: HashMap<String, Value> = futures::stream::iter(namespaces)
        .map(|namespace| async move {
            let rules = rules_in(context, &namespace).await?;
            Ok::<_, ApiError>((namespace, rules))
        })
        .buffered(VISIBLE_FETCHES_MAX)
        .try_collect()
        .await?;
    let by_rules = |key: &Key, verb: &str| {
        rules.get(&key.namespace).is_some_and(|rules| allow(rules, verb, resource, key))
    };
    Ok(keys
        .iter()
        .map(|key| MayChange {
            update: everywhere.update || by_rules(key, "update"),
            delete: everywhere.delete || by_rules(key, "delete"),
        })
        .collect())
}

async fn query_rights(
    context: &Context<'_>,
    resource: &KubeResource,
    key: &Key,
) -> Result<MayChange, ApiError> {
    let (update, delete) = futures::try_join!(
        may(context, "update", resource, key),
        may(context, "delete", resource, key)
    )?;
    Ok(MayChange { update, delete })
}

fn allow(rules: &Value, verb: &str, resource: &KubeResource, key: &Key) -> bool {
    let has = |rule: &Value, field: &str, expected: &str| {
        let values = rule[field].as_array();
        values.is_some_and(|values| values.iter().any(|value| value == expected || value == "*"))
    };
    let names = |rule: &Value| {
        let names = rule["resourceNames"].as_array().filter(|names| !names.is_empty());
        names.is_none_or(|names| names.iter().any(|name| *name == key.name))
    };
    rules.as_array().into_iter().flatten().any(|rule| {
        has(rule, "verbs", verb)
            && has(rule, "apiGroups", &resource.group)
            && has(rule, "resources", &resource.plural)
            && names(rule)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_say_what_may_be_done_with_each_object() {
        let resource = KubeResource::new("example.io", "v1", "widgets", "Widget", false);
        let rule = |verbs: &[&str], resources: &[&str], names: &[&str]| {
            json!([{"verbs": verbs, "apiGroups": ["example.io"], "resources": resources,
                    "resourceNames": names}])
        };
        let key = Key { name: "a".to_owned(), ..Key::default() };
        for (rules, allowed) in [
            (rule(&["update"], &["widgets"], &[]), true),
            (rule(&["*"], &["*"], &[]), true),
            (rule(&["update"], &["widgets"], &["b", "a"]), true),
            (rule(&["update"], &["widgets"], &["b"]), false),
            (rule(&["delete"], &["widgets"], &[]), false),
            (rule(&["update"], &["gadgets", "widgets/status"], &[]), false),
        ] {
            assert_eq!(allow(&rules, "update", &resource, &key), allowed, "{rules}");
        }
    }
}
