//! What a namespace says of its quota and of the limits of its containers, in annotations, and what
//! came of it, which is written there too. Pure.

use api_management::Project;
use api_management::project::{Amounts, QuotaLimits};
use serde_json::{Value, json};

use super::allocation::{Quantities, quantities};

/// Name of the condition in [`api_management::keys::STATUS`].
const VALIDATED: &str = "ResourceQuotaValidated";

/// What the project gives its namespaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProjectLimits {
    /// Of all namespaces together; empty without a quota.
    pub total: Quantities,
    pub namespace_default: Quantities,
    pub containers: Quantities,
}

impl ProjectLimits {
    /// The limits of a project.
    pub fn of(project: &Project) -> Self {
        let of_quota = |quota: &Option<QuotaLimits>| {
            quota.as_ref().map(|quota| quantities(&quota.limit)).unwrap_or_default()
        };
        let spec = &project.spec;
        Self {
            total: of_quota(&spec.resource_quota),
            namespace_default: of_quota(&spec.namespace_default_resource_quota),
            containers: spec
                .container_default_resource_limit
                .as_ref()
                .map(quantities)
                .unwrap_or_default(),
        }
    }

    /// Whether a cluster has anything to enforce.
    pub fn is_empty(&self) -> bool {
        self.total.is_empty() && self.containers.is_empty()
    }

    /// What a namespace with this annotation requests: what the annotation leaves out, and all of
    /// it when the annotation cannot be read, is the default of the project.
    pub fn requested(&self, annotation: Option<&str>) -> Quantities {
        let mut requested = self.namespace_default.clone();
        if let Some(Ok(limits)) = annotation.map(parse_quota) {
            requested.extend(quantities(&limits));
        }
        requested.retain(|resource, _| self.total.contains_key(resource));
        requested
    }

    /// The limits of containers in a namespace with this annotation.
    pub fn of_containers(&self, annotation: Option<&str>) -> Quantities {
        let mut limits = self.containers.clone();
        let own = annotation.and_then(|text| serde_json::from_str::<Amounts>(text).ok());
        limits.extend(own.as_ref().map(quantities).unwrap_or_default());
        limits
    }
}

/// The limits that the annotation [`api_management::keys::RESOURCE_QUOTA`] has.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn parse_quota(annotation: &str) -> Result<Amounts, String> {
    let parsed: Result<Option<QuotaLimits>, _> = serde_json::from_str(annotation);
    parsed
        .map(|quota| quota.unwrap_or_default().limit)
        .map_err(|error| format!("must be JSON like {{\"limit\":{{\"pods\":\"10\"}}}}: {error}"))
}

/// The annotation with these limits.
pub(crate) fn quota_annotation(limits: &Quantities) -> String {
    let limits: serde_json::Map<String, Value> =
        limits.iter().map(|(name, amount)| (name.clone(), amount.to_string().into())).collect();
    json!({"limit": limits}).to_string()
}

/// The annotation [`api_management::keys::STATUS`] with the condition about the quota; `None` when
/// it says so already. Without `excess` there is no quota and no condition; an empty one fits.
/// `now`: RFC 3339.
pub(crate) fn with_condition(
    annotation: Option<&str>,
    excess: Option<&str>,
    now: &str,
) -> Option<String> {
    let mut status: Value = annotation
        .and_then(|text| serde_json::from_str(text).ok())
        .filter(Value::is_object)
        .unwrap_or_else(|| json!({}));
    let old: Vec<Value> = status["Conditions"].as_array().cloned().unwrap_or_default();
    let is_own = |condition: &Value| condition["Type"] == VALIDATED;
    let own = old.iter().find(|condition| is_own(condition));
    let word = |excess: &str| if excess.is_empty() { "True" } else { "False" };
    let is_same = match (own, excess) {
        (None, None) => true,
        (Some(own), Some(excess)) => own["Status"] == word(excess) && own["Message"] == excess,
        _ => false,
    };
    if is_same {
        return None;
    }
    let mut conditions: Vec<Value> = old.into_iter().filter(|it| !is_own(it)).collect();
    conditions.extend(excess.map(|excess| {
        json!({"Type": VALIDATED, "Status": word(excess), "Message": excess, "LastUpdateTime": now})
    }));
    status["Conditions"] = conditions.into();
    Some(status.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(total: &[(&str, &str)], default: &[(&str, &str)]) -> ProjectLimits {
        let of = |list: &[(&str, &str)]| {
            list.iter().map(|(name, text)| ((*name).to_owned(), text.parse().unwrap())).collect()
        };
        ProjectLimits { total: of(total), namespace_default: of(default), ..Default::default() }
    }

    #[test]
    fn what_a_namespace_leaves_out_is_the_default_of_the_project() {
        let total = [("pods", "10"), ("secrets", "5")];
        let limits = limits(&total, &[("pods", "2"), ("secrets", "1")]);
        let requested = |annotation: Option<&str>| quota_annotation(&limits.requested(annotation));
        let default = r#"{"limit":{"pods":"2","secrets":"1"}}"#;
        assert_eq!(requested(None), default);
        assert_eq!(requested(Some("{")), default);
        assert_eq!(requested(Some(r#"{"limit":{"pods":"","services":"9"}}"#)), default);
        let own = r#"{"limit":{"pods":"3","secrets":null}}"#;
        assert_eq!(requested(Some(own)), r#"{"limit":{"pods":"3","secrets":"1"}}"#);
    }

    #[test]
    fn the_condition_changes_only_with_its_content_and_leaves_others() {
        let other = r#"{"Conditions":[{"Type":"InitialRolesPopulated","Status":"True"}]}"#;
        assert_eq!(with_condition(Some(other), None, "now"), None);
        let fits = with_condition(Some(other), Some(""), "then").unwrap();
        assert!(fits.contains("InitialRolesPopulated") && fits.contains("\"True\""), "{fits}");
        assert_eq!(with_condition(Some(&fits), Some(""), "now"), None);
        let over = with_condition(Some(&fits), Some("too much"), "now").unwrap();
        assert!(over.contains("too much") && over.contains("\"False\""), "{over}");
        let without = with_condition(Some(&over), None, "now").unwrap();
        assert!(!without.contains(VALIDATED) && without.contains("InitialRoles"), "{without}");
    }
}
