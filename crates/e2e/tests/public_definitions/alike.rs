//! Where two answers differ that should be alike.

use serde_json::Value;

/// What each server gives its own of, and what holds it.
const OWN: [(&str, &str); 5] = [
    ("metadata", "uid"),
    ("metadata", "resourceVersion"),
    ("metadata", "creationTimestamp"),
    ("conditions", "lastTransitionTime"),
    ("managedFields", "time"),
];
/// Lists that several write at once, and causes, which Go finds in maps.
const UNORDERED: [&str; 3] = ["conditions", "managedFields", "causes"];
/// After this, kube-apiserver tells what it came upon first, in no order: it stops at the first
/// field of a map that is not declared.
const IN_NO_ORDER: &str = "failed to create typed patch object";
/// Differences that are meant or known: what the place of one ends with, and why.
const KNOWN: [(&str, &str); 1] = [(
    ".rolloutStrategy",
    "the default of a field that the stored version lacks: there it is lost for good, here it comes \
     back on reading",
)];
/// Differences shown of one pair.
const SHOWN_MAX: usize = 4;

/// The first differences between two documents, as `place: kube-apiserver's | drover's`.
pub fn differences(real: &Value, ours: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", &comparable("", real), &comparable("", ours), &mut found);
    found.retain(|difference| {
        let place = difference.split(": ").next().unwrap_or_default();
        !KNOWN.iter().any(|(known, _)| place.ends_with(known))
    });
    found.truncate(SHOWN_MAX);
    found
}

/// The member `name` of something without what is each server's own.
fn comparable(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| !OWN.contains(&(name, key.as_str())));
            let mut object: Value =
                kept.map(|(key, value)| (key.clone(), comparable(key, value))).collect();
            settle(&mut object);
            object
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| comparable(name, item)).collect();
            if UNORDERED.contains(&name) {
                items.sort_by_key(Value::to_string);
            }
            items.into()
        }
        other => other.clone(),
    }
}

/// Leaves of the message of a `Status` what both must say.
fn settle(object: &mut Value) {
    if object["kind"] != "Status" {
        return;
    }
    let has_causes = object["details"]["causes"].is_array();
    let message = object["message"].as_str().unwrap_or_default();
    if has_causes {
        object["message"] = "that of its causes".into();
    } else if message.starts_with(IN_NO_ORDER) {
        object["message"] = IN_NO_ORDER.into();
    }
}

fn compare(path: &str, real: &Value, ours: &Value, found: &mut Vec<String>) {
    match (real, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let others = b.keys().filter(|key| !a.contains_key(*key));
            for key in a.keys().chain(others) {
                compare(&format!("{path}.{key}"), &real[key], &ours[key], found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (real, ours)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), real, ours, found);
            }
        }
        _ if real == ours => {}
        _ => found.push(format!("{path}: {} | {}", short(real), short(ours))),
    }
}

fn short(value: &Value) -> String {
    const LETTERS_MAX: usize = 200;
    value.to_string().chars().take(LETTERS_MAX).collect()
}
