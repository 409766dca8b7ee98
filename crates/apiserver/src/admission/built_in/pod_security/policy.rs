//! The Pod Security Standards that the labels of a namespace select.

use std::fmt;

use api_meta::status::Cause;

/// Prefix of every label and audit annotation of PodSecurity.
pub(super) const PREFIX: &str = "pod-security.kubernetes.io/";

/// A level of the Pod Security Standards, from the least strict to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SecurityLevel {
    Privileged,
    Baseline,
    Restricted,
}

impl SecurityLevel {
    const ALL: [(&'static str, Self); 3] = [
        ("privileged", Self::Privileged),
        ("baseline", Self::Baseline),
        ("restricted", Self::Restricted),
    ];
}

/// A level as a version of Kubernetes defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standard {
    pub level: SecurityLevel,
    /// The minor version; `None` for the newest.
    pub version: Option<u32>,
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) = SecurityLevel::ALL[self.level as usize];
        match self.version {
            Some(minor) => write!(f, "{name}:v1.{minor}"),
            None => write!(f, "{name}:latest"),
        }
    }
}

/// The three standards of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamespacePolicy {
    /// Pods that violate it are refused.
    pub enforce: Standard,
    /// Violations are written to the audit log.
    pub audit: Standard,
    /// Violations are returned as warnings.
    pub warn: Standard,
}

impl NamespacePolicy {
    /// Parses labels, and returns those that cannot be parsed as faults. If the enforced level
    /// cannot be parsed, `restricted` is enforced; an audit or warn level that cannot be parsed
    /// counts as `privileged`.
    pub fn read(labels: &[(&str, &str)]) -> (Self, Vec<Cause>) {
        let mut faults = Vec::new();
        let label = |name: &str| {
            let found = labels.iter().find(|(key, _)| key.strip_prefix(PREFIX) == Some(name));
            found.map(|(_, value)| *value)
        };
        let mut standard = |mode: &str, otherwise: SecurityLevel| {
            let mut read = Standard { level: SecurityLevel::Privileged, version: None };
            let mut is_sound = true;
            if let Some(text) = label(mode) {
                let known = SecurityLevel::ALL.iter().find(|(name, _)| *name == text);
                is_sound = known.is_some();
                read.level = known.map_or(otherwise, |(_, level)| *level);
                if !is_sound {
                    let problem = "must be one of privileged, baseline, restricted";
                    faults.push(fault(mode, text, problem));
                }
            }
            let mode_version = format!("{mode}-version");
            if let Some(text) = label(&mode_version) {
                match parse_version(text) {
                    Some(version) => read.version = version,
                    None => {
                        faults.push(fault(&mode_version, text, "must be \"latest\" or \"v1.x\""))
                    }
                }
            }
            (read, is_sound)
        };
        let (enforce, is_sound) = standard("enforce", SecurityLevel::Restricted);
        let (audit, _) = standard("audit", SecurityLevel::Privileged);
        let (mut warn, _) = standard("warn", SecurityLevel::Privileged);
        // A user whose pods will be refused is warned, too.
        let stated = label("enforce").is_some() && is_sound;
        if stated && label("warn").is_none() && enforce.level > warn.level {
            warn.level = enforce.level;
            if label("warn-version").is_none() {
                warn.version = enforce.version;
            }
        }
        (Self { enforce, audit, warn }, faults)
    }
}

fn fault(label: &str, value: &str, problem: &str) -> Cause {
    Cause::invalid(format!("metadata.labels[{PREFIX}{label}]"), &value.into(), problem)
}

/// Parses `latest`, which becomes the inner `None`, or `v1.` and a number. `None` for other texts.
fn parse_version(text: &str) -> Option<Option<u32>> {
    if text == "latest" {
        return Some(None);
    }
    let minor = text.strip_prefix("v1.")?;
    let plain = minor.bytes().all(|byte| byte.is_ascii_digit());
    let padded = minor.len() > 1 && minor.starts_with('0');
    if !plain || padded {
        return None;
    }
    minor.parse().ok().map(Some)
}

/// Joins all faults into one text.
pub(super) fn describe_faults(faults: &[Cause]) -> String {
    let texts: Vec<String> =
        faults.iter().map(|fault| format!("{}: {}", fault.field, fault.message)).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_select_the_standards_of_a_namespace() {
        type Labels<'l> = &'l [(&'l str, &'l str)];
        let read = |labels: Labels<'_>| {
            let keys: Vec<String> =
                labels.iter().map(|(key, _)| format!("{PREFIX}{key}")).collect();
            let labels: Vec<(&str, &str)> =
                keys.iter().zip(labels).map(|(key, (_, value))| (key.as_str(), *value)).collect();
            let (NamespacePolicy { enforce, audit, warn }, faults) = NamespacePolicy::read(&labels);
            (format!("{enforce} {audit} {warn}"), faults.len())
        };
        let cases: [(Labels<'_>, &str, usize); 6] = [
            (&[], "privileged:latest privileged:latest privileged:latest", 0),
            (
                &[("enforce", "baseline"), ("enforce-version", "v1.20")],
                "baseline:v1.20 privileged:latest baseline:v1.20",
                0,
            ),
            (
                &[("enforce", "baseline"), ("warn", "restricted"), ("audit-version", "v1.0")],
                "baseline:latest privileged:v1.0 restricted:latest",
                0,
            ),
            (
                &[("enforce", "strict"), ("warn", "loud"), ("audit", "")],
                "restricted:latest privileged:latest privileged:latest",
                3,
            ),
            (
                &[("enforce-version", "v1.07"), ("warn-version", "v2.1"), ("audit-version", "v1.")],
                "privileged:latest privileged:latest privileged:latest",
                3,
            ),
            (
                &[("enforce", "restricted"), ("warn-version", "v1.9")],
                "restricted:latest privileged:latest restricted:v1.9",
                0,
            ),
        ];
        for (labels, expected, faults) in cases {
            assert_eq!(read(labels), (expected.to_owned(), faults), "{labels:?}");
        }
    }
}
