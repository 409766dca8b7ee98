//! KontainerDriver: a program that makes clusters at a provider. Cluster-scoped.
//!
//! Spec says where the program comes from and whether it is used. Status says what was fetched: its
//! conditions are Downloaded, Installed, Active and Inactive, in this order.

use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::{Condition, FALSE, TRUE, find};
use crate::credentials::Reference;
use crate::kind::{ApiVersion, KindName, ObjectRules, kind};
use crate::state::{ACTIVE, REMOVING, Summary};

/// The program was fetched.
pub const DOWNLOADED: &str = "Downloaded";
/// It is a driver for this machine, and where the server runs it from.
pub const INSTALLED: &str = "Installed";
/// It runs, and its options are types of the API.
pub const IN_USE: &str = "Active";
/// It is not used, and its types are gone.
pub const NOT_IN_USE: &str = "Inactive";
/// The word for a driver that is not used.
pub const INACTIVE: &str = "inactive";
/// The conditions in the order in which they decide about the state, with their words.
const WORDS: [(&str, &str); 4] = [
    (DOWNLOADED, "downloading"),
    (INSTALLED, "installing"),
    (IN_USE, "activating"),
    (NOT_IN_USE, "deactivating"),
];
/// Hexadecimal digits of SHA-256 and of SHA-512.
const CHECKSUM_LENGTHS: [usize; 2] = [64, 128];

/// A program that makes clusters at a provider.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KontainerDriver {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    pub spec: KontainerDriverSpec,
    pub status: KontainerDriverStatus,
}

kind!(KontainerDriver, "kontainerdrivers", "kontainerdriver", Cluster, ClusterResourceScope,
    status: true, short: [], columns: [
    ("Driver", "string", ".status.displayName", false),
    ("Active", "boolean", ".spec.active", false),
    ("URL", "string", ".spec.url", true),
]);

/// Where the program comes from, and whether it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KontainerDriverSpec {
    /// The name that users gave it. By default the one in its file name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// Whether it is used.
    pub active: bool,
    /// Part of Drover: there is nothing to fetch.
    pub built_in: bool,
    /// URL of the program, or of an archive with it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// SHA-256 or SHA-512 of what the URL gives, hexadecimal.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub checksum: String,
    /// URL of a component for a web interface. Stored for other clients.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ui_url: String,
    /// Hosts that the component may call through the server. Stored for other clients.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub whitelist_domains: Vec<String>,
}

/// What was fetched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KontainerDriverStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The name in its file name, of which the names of its types are made.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// URL of the program that is used.
    #[serde(rename = "actualUrl", skip_serializing_if = "String::is_empty")]
    pub actual_url: String,
    /// File of the program, in the data folder of the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub executable_path: String,
    /// SHA-256 of what the URL gave first. Another program under the same URL is refused.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installed_checksum: String,
}

impl KontainerDriver {
    /// Its state in one word: the first condition that is not true decides.
    pub fn summary(&self) -> Summary {
        if self.metadata.deletion_timestamp.is_some() {
            let (state, message) = (REMOVING.to_owned(), String::new());
            return Summary { state, transitioning: "yes", message };
        }
        for (kind, word) in WORDS {
            let Some(condition) = find(&self.status.conditions, kind) else { continue };
            if condition.status != TRUE {
                let transitioning = if condition.status == FALSE { "error" } else { "yes" };
                let (state, message) = (word.to_owned(), condition.message.clone());
                return Summary { state, transitioning, message };
            }
        }
        // What the spec says and the server has not done yet.
        if self.spec.active && !self.is_current() {
            let (state, message) = ("downloading".to_owned(), String::new());
            return Summary { state, transitioning: "yes", message };
        }
        let is_used = find(&self.status.conditions, IN_USE).is_some();
        if self.spec.active != is_used {
            let word = if self.spec.active { "activating" } else { "deactivating" };
            let (state, message) = (word.to_owned(), String::new());
            return Summary { state, transitioning: "yes", message };
        }
        let state = if self.spec.active { ACTIVE } else { INACTIVE };
        // What is true can have a remark, such as that the program is not confined.
        let remarks = self.status.conditions.iter().filter(|_| self.spec.active);
        let remarks = remarks.map(|condition| condition.message.as_str());
        let message = remarks.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
        Summary { state: state.to_owned(), transitioning: "no", message }
    }

    /// Whether what is installed is what the spec names.
    pub fn is_current(&self) -> bool {
        let (expected, installed) = (&self.spec.checksum, &self.status.installed_checksum);
        // A SHA-512 was compared when the file came, and stands in no status.
        let is_expected =
            expected.len() != installed.len() || installed.eq_ignore_ascii_case(expected);
        self.spec.built_in || (self.status.actual_url == self.spec.url && is_expected)
    }

    /// The field of a cluster with the driver's options, and the name of its type; `None` before
    /// the driver was installed.
    pub fn config_type(&self) -> Option<String> {
        let suffix = if self.spec.built_in { "Config" } else { "EngineConfig" };
        let name = &self.status.display_name;
        (!name.is_empty()).then(|| format!("{name}{suffix}"))
    }
}

impl ObjectRules for KontainerDriver {
    fn validate(&self, old: Option<&Self>) -> Vec<Cause> {
        let mut causes = Vec::new();
        let spec = &self.spec;
        let invalid = |field: &str, value: &str, detail: &str| {
            Cause::invalid(format!("spec.{field}"), &Value::from(value), detail)
        };
        if spec.built_in {
            if old.is_some_and(|old| !old.spec.built_in) {
                causes.push(Cause::forbidden("spec.builtIn", "it is set when a driver is created"));
            }
        } else if spec.url.is_empty() {
            causes.push(Cause::required("spec.url", "the address of the driver's program"));
        } else if !is_web_address(&spec.url) {
            causes.push(invalid("url", &spec.url, "must begin with https:// or http://"));
        }
        if !spec.ui_url.is_empty() && !is_web_address(&spec.ui_url) {
            causes.push(invalid("uiUrl", &spec.ui_url, "must begin with https:// or http://"));
        }
        let is_hex = spec.checksum.chars().all(|digit| digit.is_ascii_hexdigit());
        let is_checksum = is_hex && CHECKSUM_LENGTHS.contains(&spec.checksum.len());
        if !spec.checksum.is_empty() && !is_checksum {
            let detail = "must be a SHA-256 (64 hexadecimal digits) or SHA-512 (128); MD5 and SHA-1 \
                          can be forged";
            causes.push(invalid("checksum", &spec.checksum, detail));
        }
        causes
    }
}

fn is_web_address(url: &str) -> bool {
    // One that names a user is stored apart.
    if Reference::key(url).is_some() {
        return true;
    }
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        && !url.chars().any(|sign| sign.is_whitespace() || sign.is_control())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with_conditions(active: bool, conditions: &[(&str, &str, &str)]) -> KontainerDriver {
        let conditions = conditions.iter().map(
            |(kind, status, message)| json!({"type": kind, "status": status, "message": message}),
        );
        let status = json!({"conditions": conditions.collect::<Vec<_>>()});
        serde_json::from_value(json!({"spec": {"active": active}, "status": status})).unwrap()
    }

    #[test]
    fn the_first_condition_that_is_not_true_is_the_state() {
        for (active, conditions, state, transitioning) in [
            (false, &[][..], "inactive", "no"),
            (false, &[(IN_USE, "True", "")], "deactivating", "yes"),
            (true, &[], "activating", "yes"),
            (true, &[(DOWNLOADED, "True", ""), (INSTALLED, "True", "")], "activating", "yes"),
            (false, &[(NOT_IN_USE, "True", "")], "inactive", "no"),
            (
                true,
                &[(DOWNLOADED, "Unknown", ""), (INSTALLED, "Unknown", "")],
                "downloading",
                "yes",
            ),
            (true, &[(DOWNLOADED, "False", "404")], "downloading", "error"),
            (
                true,
                &[(DOWNLOADED, "True", ""), (INSTALLED, "False", "html")],
                "installing",
                "error",
            ),
            (true, &[(INSTALLED, "True", ""), (IN_USE, "Unknown", "")], "activating", "yes"),
            (true, &[(DOWNLOADED, "True", ""), (IN_USE, "True", "")], "active", "no"),
            (false, &[(IN_USE, "True", ""), (NOT_IN_USE, "Unknown", "")], "deactivating", "yes"),
        ] {
            let summary = with_conditions(active, conditions).summary();
            assert_eq!((summary.state.as_str(), summary.transitioning), (state, transitioning));
        }
    }

    #[test]
    fn the_address_and_the_checksum_are_checked() {
        let fields = |spec: Value| {
            let driver: KontainerDriver = serde_json::from_value(json!({ "spec": spec })).unwrap();
            driver.validate(None).into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        };
        let sum = "a".repeat(64);
        assert!(fields(json!({"url": "https://a.example/d", "checksum": sum})).is_empty());
        assert!(fields(json!({"builtIn": true})).is_empty());
        assert_eq!(fields(json!({})), ["spec.url"]);
        for url in ["file:///etc/shadow", "https://", "https:///x", "https://a.example/\nx"] {
            assert_eq!(fields(json!({ "url": url })), ["spec.url"], "{url}");
        }
        for checksum in ["a".repeat(32), "a".repeat(40), "g".repeat(64)] {
            let spec = json!({"url": "https://a.example/d", "checksum": checksum});
            assert_eq!(fields(spec), ["spec.checksum"]);
        }
    }
}
