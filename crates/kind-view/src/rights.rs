//! What the caller may do with the objects of kinds, anywhere in a place: for schemas, which say
//! what is offered. Each request is authorized on its own by the place.

use futures::{StreamExt, TryStreamExt};
use rest_view::store::{VISIBLE_FETCHES_MAX, call};
use rest_view::{ApiError, Context, KubeStore, ListScope, Store};
use serde_json::{Value, json};

use crate::kinds::ServedKind;
use crate::list::namespaces;
use crate::table::take;

/// A rules review needs a namespace, also for rules that hold everywhere.
const NAMESPACE_OF_GLOBAL_RULES: &str = "default";
/// Namespaces whose rules are read, of callers who have rights in some only.
const NAMESPACES_MAX: usize = 16;

/// The rules of a caller in a place.
pub struct Rights {
    rules: Vec<Value>,
    /// The place has rights that it cannot list.
    is_incomplete: bool,
}

impl Rights {
    /// Asks the place. `context` has a client of it.
    ///
    /// # Errors
    /// The caller may not use the place, or it does not respond.
    pub async fn of(context: &Context<'_>) -> Result<Self, ApiError> {
        let everywhere = rules_in(context, NAMESPACE_OF_GLOBAL_RULES.to_owned()).await?;
        let mut rights = Self { rules: Vec::new(), is_incomplete: false };
        rights.add(everywhere);
        let store = KubeStore::new(namespaces());
        if store.can_see_all(context).await? {
            return Ok(rights);
        }
        let own = store.keys(context, &ListScope::default()).await?;
        let own = own.into_iter().map(|key| key.name).take(NAMESPACES_MAX);
        let reviews: Vec<Value> = futures::stream::iter(own)
            .map(|namespace| rules_in(context, namespace))
            .buffered(VISIBLE_FETCHES_MAX)
            .try_collect()
            .await?;
        reviews.into_iter().for_each(|review| rights.add(review));
        Ok(rights)
    }

    fn add(&mut self, mut review: Value) {
        self.is_incomplete |= review["incomplete"] == true;
        if let Value::Array(rules) = take(&mut review, "resourceRules") {
            self.rules.extend(rules);
        }
    }

    /// Whether the caller may do the verb with some object of the kind, and the place offers it.
    pub fn allow(&self, verb: &str, kind: &ServedKind) -> bool {
        let holds = |rule: &Value, key: &str, expected: &str| {
            let values = rule[key].as_array();
            values.is_some_and(|values| values.iter().any(|v| v == expected || v == "*"))
        };
        let resource = &kind.resource;
        let is_allowed = self.is_incomplete
            || self.rules.iter().any(|rule| {
                holds(rule, "verbs", verb)
                    && holds(rule, "apiGroups", &resource.group)
                    && holds(rule, "resources", &resource.plural)
            });
        is_allowed && kind.offers(verb)
    }
}

/// The status of a review.
async fn rules_in(context: &Context<'_>, namespace: String) -> Result<Value, ApiError> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    Ok(take(&mut call(context, "POST", path, Some(&review)).await?, "status"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;

    #[test]
    fn rights_are_what_the_rules_allow_and_the_place_offers() {
        let mut kinds = Kinds::default();
        let list = json!({"resources": [{"name": "pods", "kind": "Pod", "namespaced": true,
            "verbs": ["get", "list", "delete"]}]});
        kinds.add_listed("", "v1", &list);
        let pod = kinds.find("pod").unwrap();
        let mut rights = Rights { rules: Vec::new(), is_incomplete: false };
        assert!(!rights.allow("get", pod));
        rights.add(json!({"resourceRules": [
            {"verbs": ["get", "create"], "apiGroups": [""], "resources": ["pods"]},
            {"verbs": ["delete"], "apiGroups": ["apps"], "resources": ["*"]},
        ]}));
        let allowed = ["get", "list", "create", "delete"].map(|verb| rights.allow(verb, pod));
        assert_eq!(allowed, [true, false, false, false]);
        rights.add(json!({"incomplete": true}));
        assert!(rights.allow("delete", pod) && !rights.allow("create", pod));
    }
}
