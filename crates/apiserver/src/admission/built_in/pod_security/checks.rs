//! Checks a pod against a standard: which checks apply, and how their findings are reported. The
//! checks are in [`baseline`] and [`restricted`].

use std::collections::BTreeSet;

use serde_json::Value;

use super::policy::{SecurityLevel, Standard};
use super::{baseline, restricted};
use crate::fields::{items, str_of};

/// The minor version since which pods in their own user namespace have fewer restrictions.
pub(super) const USER_NAMESPACES: u32 = 35;
/// Represents the newest version.
pub(super) const LATEST: u32 = u32::MAX;

/// A pod or a pod template.
pub(super) struct Checked<'a> {
    pub annotations: &'a Value,
    pub spec: &'a Value,
}

impl<'a> Checked<'a> {
    /// The part of a pod or pod template that is checked.
    pub fn of(pod: &'a Value) -> Self {
        Self { annotations: &pod["metadata"]["annotations"], spec: &pod["spec"] }
    }

    /// All containers: init, regular and ephemeral ones.
    pub fn containers(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        let fields = ["initContainers", "containers", "ephemeralContainers"];
        let spec = self.spec;
        fields.into_iter().flat_map(move |field| items(&spec[field]))
    }

    /// The names of the containers for which `holds` returns true.
    pub fn names_where(&self, holds: impl Fn(&Value) -> bool) -> Vec<&'a str> {
        self.containers().filter(|one| holds(one)).map(|one| str_of(&one["name"])).collect()
    }

    /// Whether the pod has its own user namespace, in which root is an unprivileged user of the
    /// host.
    pub fn has_own_users(&self) -> bool {
        self.spec["hostUsers"] == false
    }
}

/// One violated rule: which, and where in the pod.
pub(super) struct Violation {
    reason: &'static str,
    detail: String,
}

/// A violation of the rule `reason`; always `Some`, so that checks can return it.
pub(super) fn violation(reason: &'static str, detail: String) -> Option<Violation> {
    Some(Violation { reason, detail })
}

/// Checks a pod by the rules of a minor version.
pub(super) type PodCheck = fn(&Checked<'_>, u32) -> Option<Violation>;

/// All violations of a standard by one pod.
pub(super) struct Violations(Vec<Violation>);

impl Violations {
    /// Runs all checks of a standard.
    pub fn of(standard: Standard, pod: &Checked<'_>) -> Self {
        let version = standard.version.unwrap_or(LATEST);
        let restricted = standard.level == SecurityLevel::Restricted;
        if standard.level == SecurityLevel::Privileged {
            return Self(Vec::new());
        }
        let replaced = |from: u32| restricted && from != LATEST && version >= from;
        let baseline =
            baseline::CHECKS.iter().filter(|(_, from)| !replaced(*from)).map(|(check, _)| check);
        let further = restricted::CHECKS.iter().filter(|_| restricted);
        Self(baseline.chain(further).filter_map(|check| check(pod, version)).collect())
    }

    /// Whether the pod meets the standard.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The violated rules, separated by commas.
    pub fn reason(&self) -> String {
        self.0.iter().map(|one| one.reason).collect::<Vec<_>>().join(", ")
    }

    /// The violated rules with where they are violated, separated by commas.
    pub fn detail(&self) -> String {
        let details =
            self.0.iter().map(|Violation { reason, detail }| format!("{reason} ({detail})"));
        details.collect::<Vec<_>>().join(", ")
    }
}

/// `"a", "b"`
pub(super) fn quoted<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(|text| format!("\"{text}\"")).collect();
    quoted.join(", ")
}

/// The singular for a count of one, else the plural.
pub(super) fn plural<'a>(one: &'a str, several: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { several }
}

/// `container "a"`
pub(super) fn containers(names: &[&str]) -> String {
    let what = plural("container", "containers", names.len());
    format!("{what} {}", quoted(names.iter().copied()))
}

/// Who sets a field: `pod and containers "a", "b"`. Empty when nobody does.
pub(super) fn setters(pod: bool, names: &[&str]) -> String {
    let pod = pod.then(|| "pod".to_owned());
    let names_where = (!names.is_empty()).then(|| containers(names));
    pod.into_iter().chain(names_where).collect::<Vec<_>>().join(" and ")
}

/// The values of a field in the security contexts of pod and containers that are not allowed: who
/// sets them, and which values these are.
pub(super) fn forbidden_values<'a>(
    pod: &Checked<'a>,
    value: impl Fn(&'a Value) -> &'a Value,
    allowed: impl Fn(&str) -> bool,
) -> (String, BTreeSet<&'a str>) {
    let mut values = BTreeSet::new();
    let mut is_bad = |context: &'a Value| {
        let found = value(context);
        let bad = !found.is_null() && !allowed(str_of(found));
        if bad {
            values.insert(str_of(found));
        }
        bad
    };
    let by_pod = is_bad(&pod.spec["securityContext"]);
    let mut names = Vec::new();
    for container in pod.containers() {
        if is_bad(&container["securityContext"]) {
            names.push(str_of(&container["name"]));
        }
    }
    (setters(by_pod, &names), values)
}
