//! The types of setting values. On the wire all of them are text.

use api_meta::image::ImageReference;
use api_meta::{duration, names};

use super::{
    AGENT_IMAGE, AUTH_TOKEN_MAX_TTL_MINUTES, AUTH_USER_INFO_MAX_AGE_SECONDS,
    AUTH_USER_SESSION_TTL_MINUTES, FIRST_LOGIN, KUBECONFIG_DEFAULT_TOKEN_TTL_MINUTES,
    KUBECONFIG_GENERATE_TOKEN, KUBECONFIG_TOKEN_TTL_MINUTES, KUBECTL_SHELL, PASSWORD_MIN_LENGTH,
    SERVER_URL, SHELL_IMAGE, SYSTEM_DEFAULT_REGISTRY, SYSTEM_NAMESPACES,
};

/// Longest time of a setting, in minutes; the limit of Rancher's integers.
const MINUTES_MAX: f64 = u32::MAX as f64;
/// The longest password that may be required, in characters.
const PASSWORD_LENGTH_MAX: u32 = 256;

/// The type of the value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// Any text.
    Text,
    Boolean,
    WholeNumber {
        min: u32,
        max: u32,
    },
    /// A number of minutes, with or without a fraction.
    Minutes,
    /// A duration as Go writes it, such as `300s` or `1m30s`.
    Duration,
    HttpsUrl,
    /// `http://` or `https://`.
    Url,
    Image,
    Registry,
    /// Names of namespaces, separated by commas.
    Namespaces,
    OneOf(&'static [&'static str]),
}

/// The settings that are not any text, by name.
const TYPES: [(&str, ValueType); 19] = [
    (SERVER_URL, ValueType::HttpsUrl),
    (AGENT_IMAGE, ValueType::Image),
    (SHELL_IMAGE, ValueType::Image),
    (KUBECTL_SHELL, ValueType::Boolean),
    (SYSTEM_DEFAULT_REGISTRY, ValueType::Registry),
    (FIRST_LOGIN, ValueType::Boolean),
    (AUTH_TOKEN_MAX_TTL_MINUTES, ValueType::Minutes),
    (AUTH_USER_SESSION_TTL_MINUTES, ValueType::Minutes),
    (AUTH_USER_INFO_MAX_AGE_SECONDS, ValueType::WholeNumber { min: 0, max: u32::MAX }),
    (KUBECONFIG_DEFAULT_TOKEN_TTL_MINUTES, ValueType::Minutes),
    (KUBECONFIG_TOKEN_TTL_MINUTES, ValueType::Minutes),
    (KUBECONFIG_GENERATE_TOKEN, ValueType::Boolean),
    (PASSWORD_MIN_LENGTH, ValueType::WholeNumber { min: 1, max: PASSWORD_LENGTH_MAX }),
    (SYSTEM_NAMESPACES, ValueType::Namespaces),
    ("agent-rollout-timeout", ValueType::Duration),
    ("agent-rollout-wait", ValueType::Boolean),
    ("engine-install-url", ValueType::Url),
    ("hide-local-cluster", ValueType::Boolean),
    ("telemetry-opt", ValueType::OneOf(&["in", "out", "prompt"])),
];

impl ValueType {
    /// The type of a setting; text for unknown settings.
    pub fn of(name: &str) -> Self {
        TYPES.iter().find(|(known, _)| *known == name).map_or(Self::Text, |(_, kind)| *kind)
    }

    /// Whether a non-empty value has this type. An empty value means the default.
    ///
    /// # Errors
    /// What the value must be; report it after the name of the field.
    pub fn check(self, value: &str) -> Result<(), String> {
        let must = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
        match self {
            Self::Text => Ok(()),
            Self::Boolean => must(["true", "false"].contains(&value), "must be true or false"),
            Self::WholeNumber { min, max } => {
                let digits = value.bytes().all(|byte| byte.is_ascii_digit());
                let fits = value.parse().is_ok_and(|number| (min..=max).contains(&number));
                must(digits && fits, &format!("must be a whole number from {min} to {max}"))
            }
            Self::Minutes => must(
                minutes_as_millis(value).is_some(),
                "must be a number of minutes, 0 or more, such as 960 or 0.5",
            ),
            Self::Duration => must(
                duration::seconds(value).is_ok_and(|seconds| seconds >= 0.0),
                "must be a duration such as 300s, 5m or 1h30m",
            ),
            Self::HttpsUrl => must(value.starts_with("https://"), "must begin with https://"),
            Self::Url => {
                let known = ["https://", "http://"].iter().find_map(|s| value.strip_prefix(s));
                must(known.is_some_and(|rest| !rest.is_empty()), "must be a URL such as https://…")
            }
            Self::Image => {
                value.parse::<ImageReference>().map(drop).map_err(|error| error.to_string())
            }
            Self::Registry => {
                let parsed = format!("{value}/image").parse::<ImageReference>();
                must(
                    parsed.is_ok_and(|reference| reference.registry().is_some()),
                    "must be a registry such as \"registry.example:5000\", with or without a folder \
                     after it",
                )
            }
            Self::Namespaces => must(
                value.split(',').all(|name| names::dns1123_label(name.trim()).is_empty()),
                "must be names of namespaces with commas between them",
            ),
            Self::OneOf(choices) => {
                must(choices.contains(&value), &format!("must be one of {}", choices.join(", ")))
            }
        }
    }
}

/// A number of minutes, with or without a fraction, in milliseconds; `None` when it is no such
/// number. A value above 0 is at least one millisecond, because 0 means "unlimited".
pub fn minutes_as_millis(text: &str) -> Option<i64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let minutes: f64 = text.parse().ok().filter(|_| is_plain)?;
    #[expect(clippy::cast_possible_truncation, reason = "MINUTES_MAX in milliseconds fits")]
    (minutes <= MINUTES_MAX).then(|| (minutes * 60_000.0).ceil() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_type_is_refused_with_what_it_must_be() {
        for (name, good, bad) in [
            (
                PASSWORD_MIN_LENGTH,
                &["1", "12", "256"][..],
                &["abc", "0", "257", "-1", "+8", "1.5"][..],
            ),
            (FIRST_LOGIN, &["true", "false"], &["yes", "True", "1"]),
            (
                KUBECONFIG_TOKEN_TTL_MINUTES,
                &["0", "960", "0.01", ".5"],
                &["-1", "1e3", "NaN", "inf", ".", "ten"],
            ),
            (
                "agent-rollout-timeout",
                &["300s", "1h30m", "1.5m", "10ms"],
                &["300", "s", "5 m", "5d", "1m30", "-5m"],
            ),
            (SERVER_URL, &["https://a"], &["http://a", "a"]),
            ("engine-install-url", &["https://a/x.sh", "http://a"], &["a", "https://", "ftp://a"]),
            (SYSTEM_NAMESPACES, &["a", "a,b-c", "a, b"], &["a,,b", "A", "a b"]),
            ("telemetry-opt", &["in", "out", "prompt"], &["on"]),
            ("ui-pl", &["Acme & Co."], &[]),
            ("somebodys-own", &["anything"], &[]),
        ] {
            for value in good {
                assert_eq!(ValueType::of(name).check(value), Ok(()), "{name}: {value}");
            }
            for value in bad {
                let said = ValueType::of(name).check(value).expect_err(value);
                assert!(said.starts_with("must "), "{name}: {value}: {said}");
            }
        }
    }

    #[test]
    fn fractions_of_minutes_are_read_and_never_become_for_ever() {
        for (text, millis) in [
            ("0", Some(0)),
            ("960", Some(57_600_000)),
            ("0.01", Some(600)),
            ("0.0000001", Some(1)),
            ("4294967295", Some(257_698_037_700_000)),
            ("4294967296", None),
            ("", None),
        ] {
            assert_eq!(minutes_as_millis(text), millis, "{text}");
        }
    }
}
