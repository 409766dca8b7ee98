//! PodSecurityAdmissionConfigurationTemplate: which Pod Security levels namespaces get, and which
//! namespaces get none. Cluster-scoped. Clusters and projects name one.

use api_meta::names::dns1123_label;
use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kind::{ApiVersion, KindName, ObjectRules, kind};

/// The levels of the Pod Security Standards, from the least strict to the strictest.
pub const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];
/// The version of the standards that goes with the cluster.
pub const LATEST: &str = "latest";

/// Which Pod Security levels namespaces get.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSecurityAdmissionConfigurationTemplate {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub configuration: PodSecurityConfiguration,
}

kind!(PodSecurityAdmissionConfigurationTemplate, "podsecurityadmissionconfigurationtemplates",
    "podsecurityadmissionconfigurationtemplate", Cluster, ClusterResourceScope,
    status: false, short: [], columns: [
    ("Enforce", "string", ".configuration.defaults.enforce", false),
    ("Audit", "string", ".configuration.defaults.audit", false),
    ("Warn", "string", ".configuration.defaults.warn", false),
]);

/// As in the configuration of the admission plugin PodSecurity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSecurityConfiguration {
    pub defaults: PodSecurityDefaults,
    pub exemptions: PodSecurityExemptions,
}

/// The level of each mode, and the version of the standards that it is of. A mode without a level
/// is left to others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct PodSecurityDefaults {
    /// Pods that violate it are refused.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub enforce: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub enforce_version: String,
    /// Violations are noted in the audit log of the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub audit: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub audit_version: String,
    /// Whoever violates it is warned.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub warn: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub warn_version: String,
}

impl PodSecurityDefaults {
    /// Mode, level and version of each mode that has a level.
    pub fn modes(&self) -> impl Iterator<Item = (&'static str, &str, &str)> {
        [
            ("enforce", self.enforce.as_str(), self.enforce_version.as_str()),
            ("audit", self.audit.as_str(), self.audit_version.as_str()),
            ("warn", self.warn.as_str(), self.warn_version.as_str()),
        ]
        .into_iter()
        .filter(|(_, level, _)| !level.is_empty())
        .map(|(mode, level, version)| {
            (mode, level, if version.is_empty() { LATEST } else { version })
        })
    }
}

/// What the levels do not hold for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSecurityExemptions {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Must be empty: only the configuration of an API server can exempt users.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub usernames: Vec<String>,
    /// Must be empty: only the configuration of an API server can exempt runtime classes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runtime_classes: Vec<String>,
}

impl PodSecurityAdmissionConfigurationTemplate {
    /// Whether the levels do not hold for a namespace.
    pub fn exempts(&self, namespace: &str) -> bool {
        self.configuration.exemptions.namespaces.iter().any(|exempt| exempt == namespace)
    }
}

/// `latest` or the version of Kubernetes, as in `v1.31`.
fn is_version(text: &str) -> bool {
    let minor = text.strip_prefix("v1.");
    let is_number = |minor: &str| minor.parse::<u16>().is_ok_and(|n| n.to_string() == minor);
    text == LATEST || minor.is_some_and(is_number)
}

impl ObjectRules for PodSecurityAdmissionConfigurationTemplate {
    fn validate(&self, _: Option<&Self>) -> Vec<Cause> {
        const DEFAULTS: &str = "configuration.defaults";
        const EXEMPTIONS: &str = "configuration.exemptions";
        let defaults = &self.configuration.defaults;
        let mut causes = Vec::new();
        if defaults.modes().next().is_none() {
            let detail = "give at least one mode a level: privileged, baseline or restricted";
            causes.push(Cause::required(format!("{DEFAULTS}.enforce"), detail));
        }
        for (mode, level, version) in defaults.modes() {
            if !LEVELS.contains(&level) {
                let detail = "must be privileged, baseline or restricted";
                let field = format!("{DEFAULTS}.{mode}");
                causes.push(Cause::invalid(field, &Value::from(level), detail));
            }
            if !is_version(version) {
                let detail = "must be \"latest\" or a version of Kubernetes, as in v1.31";
                let field = format!("{DEFAULTS}.{mode}-version");
                causes.push(Cause::invalid(field, &Value::from(version), detail));
            }
        }
        let exemptions = &self.configuration.exemptions;
        for name in exemptions.namespaces.iter().filter(|name| !dns1123_label(name).is_empty()) {
            let field = format!("{EXEMPTIONS}.namespaces");
            let detail = "must be names of namespaces";
            causes.push(Cause::invalid(field, &Value::from(name.as_str()), detail));
        }
        for (field, exempt) in
            [("usernames", &exemptions.usernames), ("runtimeClasses", &exemptions.runtime_classes)]
        {
            if let Some(first) = exempt.first() {
                let detail = "must be empty: levels are labels of namespaces, so only namespaces \
                              can be exempt";
                let field = format!("{EXEMPTIONS}.{field}");
                causes.push(Cause::invalid(field, &Value::from(first.as_str()), detail));
            }
        }
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_levels_that_clusters_know_and_exemptions_that_labels_can_give_are_valid() {
        let fields = |change: fn(&mut PodSecurityConfiguration)| {
            let mut template = PodSecurityAdmissionConfigurationTemplate::default();
            template.configuration.defaults.enforce = "baseline".to_owned();
            change(&mut template.configuration);
            let causes = template.validate(None);
            causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        };
        assert!(fields(|_| {}).is_empty());
        assert!(fields(|it| it.defaults.enforce_version = "v1.31".to_owned()).is_empty());
        for (change, field) in [
            (
                (|it| it.defaults.enforce.clear()) as fn(&mut PodSecurityConfiguration),
                "configuration.defaults.enforce",
            ),
            (|it| it.defaults.warn = "strict".to_owned(), "configuration.defaults.warn"),
            (
                |it| it.defaults.enforce_version = "v1.031".to_owned(),
                "configuration.defaults.enforce-version",
            ),
            (
                |it| it.exemptions.namespaces.push("A_b".to_owned()),
                "configuration.exemptions.namespaces",
            ),
            (
                |it| it.exemptions.usernames.push("ada".to_owned()),
                "configuration.exemptions.usernames",
            ),
            (
                |it| it.exemptions.runtime_classes.push("kata".to_owned()),
                "configuration.exemptions.runtimeClasses",
            ),
        ] {
            assert_eq!(fields(change), [field]);
        }
    }
}
