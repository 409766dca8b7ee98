//! The parts of a validation response that both servers must agree on.

use std::collections::BTreeSet;

use e2e::http::HttpResponse;
use serde_json::Value;

/// Status code, reason, and causes.
pub struct ValidationResult {
    code: u16,
    reason: String,
    causes: BTreeSet<String>,
}

impl ValidationResult {
    pub fn of(response: &HttpResponse) -> Self {
        let body = response.json();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let refused = !response.status.is_success();
        let causes = body["details"]["causes"].as_array().filter(|_| refused);
        let causes = causes.into_iter().flatten().map(|cause| {
            let message = settled(&text(&cause["message"]));
            format!("{} {}: {message}", text(&cause["field"]), text(&cause["reason"]))
        });
        Self {
            code: response.status.as_u16(),
            reason: if refused { text(&body["reason"]) } else { String::new() },
            causes: causes.collect(),
        }
    }

    pub fn is_accepted(&self) -> bool {
        self.code < 300
    }

    /// The differences between both results.
    pub fn differences(&self, ours: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        if (self.code, &self.reason) != (ours.code, &ours.reason) {
            differences
                .push(format!("{} {} | {} {}", self.code, self.reason, ours.code, ours.reason));
        }
        let only = |a: &BTreeSet<String>, b: &BTreeSet<String>, mark: &str| {
            a.difference(b).map(|cause| format!("{mark} {cause}")).collect::<Vec<_>>()
        };
        differences.extend(only(&self.causes, &ours.causes, "kube-apiserver:"));
        differences.extend(only(&ours.causes, &self.causes, "drover:        "));
        differences
    }
}

/// The text after these may differ: it comes from a parser generator, Go's regular expressions, or
/// Go's URLs.
const OWN_WORDS_AFTER: [&str; 3] =
    ["Syntax error", "error parsing regexp:", "URL parse error during conversion from string:"];
/// Messages for invalid versions: of kube-apiserver's library, and of Drover.
const NO_VERSION: [&str; 6] = [
    "No Major.Minor.Patch elements found",
    "Version string empty",
    "Invalid character(s) found in ",
    "must not contain leading zeroes",
    "Invalid Semantic Version",
    "is not a semantic version",
];

/// A message without parts that may differ. In kube-apiserver, the name of a type ends with a
/// number: `selfType123456.spec`.
fn settled(message: &str) -> String {
    const NAME: &str = "selfType";
    if NO_VERSION.iter().any(|text| message.contains(text)) {
        return "not a semantic version".to_owned();
    }
    let ends = OWN_WORDS_AFTER.iter().filter_map(|text| Some(message.find(text)? + text.len()));
    let message = &message[..ends.min().unwrap_or(message.len())];
    let mut parts = message.split(NAME);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(NAME);
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}
