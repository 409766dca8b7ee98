//! Claims of devices, by the pod and by its containers.

use std::collections::BTreeSet;

use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::str_of;
use serde_json::Value;

use super::{each, name, required_name};

/// Names of claims that containers can use.
pub type Names<'a> = BTreeSet<&'a str>;

/// Validates the claims of the pod; returns their names.
pub fn all<'a>(field: &str, list: &'a Value, causes: &mut Vec<Cause>) -> Names<'a> {
    let mut seen = Names::new();
    for (path, claim) in each(field, list) {
        let at = format!("{path}.name");
        let text = str_of(&claim["name"]);
        if seen.contains(text) {
            causes.push(Cause::duplicate(&at, &text.into()));
        } else {
            required_name(&at, &claim["name"], names::dns1123_label, causes);
            seen.insert(text);
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"];
        let given = sources.into_iter().filter(|source| claim[source].is_string());
        let problem = match given.clone().count() {
            0 => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => None,
            _ => Some(
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be \
                 specified",
            ),
        };
        // The value has the notation of upstream's own struct.
        causes.extend(problem.map(|text| {
            let message = format!(
                "Invalid value: {{\"Name\":{},\"ResourceClaimName\":{},\
                 \"ResourceClaimTemplateName\":{}}}: {text}",
                Value::from(str_of(&claim["name"])),
                claim[sources[0]],
                claim[sources[1]],
            );
            Cause::new("FieldValueInvalid", &path, message)
        }));
        for source in given {
            name(&format!("{path}.{source}"), &claim[source], names::dns1123_subdomain, causes);
        }
    }
    seen
}

/// Validates the claims that a container uses against those of the pod.
pub fn uses(field: &str, list: &Value, claims: &Names<'_>, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (path, used) in each(field, list) {
        let text = str_of(&used["name"]);
        if text.is_empty() {
            causes.push(Cause::required(path, ""));
            continue;
        }
        let key = match str_of(&used["request"]) {
            "" => text.to_owned(),
            request => {
                let at = format!("{path}.request");
                name(&at, &used["request"], names::dns1123_label, causes);
                format!("{text}/{request}")
            }
        };
        // A claim cannot be used as a whole and in part at the same time.
        let is_part = key != text;
        let whole = seen.contains(text);
        let start = format!("{text}/");
        if whole || (!is_part && seen.iter().any(|other: &String| other.starts_with(&start))) {
            causes.push(Cause::duplicate(&path, &text.into()));
        } else if seen.contains(&key) {
            causes.push(Cause::duplicate(&path, &key.into()));
        } else {
            seen.insert(key);
        }
        if !claims.contains(text) {
            let known: Vec<&str> = claims.iter().copied().collect();
            let which = match known.as_slice() {
                [] => " which is empty".to_owned(),
                known => format!(": {}", known.join(", ")),
            };
            let message = format!(
                "Not found: {}: must be one of the names in pod.spec.resourceClaims{which}",
                Value::from(text)
            );
            causes.push(Cause::new("FieldValueNotFound", path, message));
        }
    }
}
