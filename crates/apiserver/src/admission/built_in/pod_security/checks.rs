//! A pod held against a standard: which checks are made, and what is told of what they find. The checks
//! are in [`baseline`] and [`restricted`].

use std::collections::BTreeSet;

use serde_json::Value;

use super::policy::{Level, Standard};
use super::{baseline, restricted};
use crate::fields::{items, str_of};

/// Since then pods in a user namespace of their own may do what others may not.
pub(super) const USER_NAMESPACES: u32 = 35;
/// Stands for the newest version.
pub(super) const LATEST: u32 = u32::MAX;

/// A pod, or what pods are made of.
pub(super) struct Checked<'a> {
    pub annotations: &'a Value,
    pub spec: &'a Value,
}

impl<'a> Checked<'a> {
    pub fn of(pod: &'a Value) -> Self {
        Self { annotations: &pod["metadata"]["annotations"], spec: &pod["spec"] }
    }

    pub fn containers(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        let fields = ["initContainers", "containers", "ephemeralContainers"];
        let spec = self.spec;
        fields.into_iter().flat_map(move |field| items(&spec[field]))
    }

    /// The names of containers for which something holds.
    pub fn named(&self, holds: impl Fn(&Value) -> bool) -> Vec<&'a str> {
        self.containers().filter(|one| holds(one)).map(|one| str_of(&one["name"])).collect()
    }

    /// Whether what is root inside is somebody else outside.
    pub fn has_own_users(&self) -> bool {
        self.spec["hostUsers"] == false
    }
}

/// One thing that is wrong: what, and in which places.
pub(super) struct Violation {
    reason: &'static str,
    detail: String,
}

pub(super) fn violation(reason: &'static str, detail: String) -> Option<Violation> {
    Some(Violation { reason, detail })
}

/// Looks at a pod by the rules of a minor version.
pub(super) type Check = fn(&Checked<'_>, u32) -> Option<Violation>;

/// Everything that violates a standard.
pub(super) struct Verdict(Vec<Violation>);

impl Verdict {
    pub fn of(standard: Standard, pod: &Checked<'_>) -> Self {
        let version = standard.version.unwrap_or(LATEST);
        let restricted = standard.level == Level::Restricted;
        if standard.level == Level::Privileged {
            return Self(Vec::new());
        }
        let replaced = |from: u32| restricted && from != LATEST && version >= from;
        let baseline =
            baseline::CHECKS.iter().filter(|(_, from)| !replaced(*from)).map(|(check, _)| check);
        let further = restricted::CHECKS.iter().filter(|_| restricted);
        Self(baseline.chain(further).filter_map(|check| check(pod, version)).collect())
    }

    pub fn allows(&self) -> bool {
        self.0.is_empty()
    }

    /// What is wrong.
    pub fn reason(&self) -> String {
        self.0.iter().map(|one| one.reason).collect::<Vec<_>>().join(", ")
    }

    /// What is wrong, and where.
    pub fn detail(&self) -> String {
        let told = self.0.iter().map(|Violation { reason, detail }| format!("{reason} ({detail})"));
        told.collect::<Vec<_>>().join(", ")
    }
}

/// `"a", "b"`
pub(super) fn quoted<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(|text| format!("\"{text}\"")).collect();
    quoted.join(", ")
}

pub(super) fn plural<'a>(one: &'a str, several: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { several }
}

/// `container "a"`
pub(super) fn containers(names: &[&str]) -> String {
    let what = plural("container", "containers", names.len());
    format!("{what} {}", quoted(names.iter().copied()))
}

/// Who sets something: `pod and containers "a", "b"`. Empty when nobody does.
pub(super) fn setters(pod: bool, names: &[&str]) -> String {
    let pod = pod.then(|| "pod".to_owned());
    let named = (!names.is_empty()).then(|| containers(names));
    pod.into_iter().chain(named).collect::<Vec<_>>().join(" and ")
}

/// Values at a place of the security contexts of pod and containers that are not allowed: who sets
/// them, and which there are.
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
