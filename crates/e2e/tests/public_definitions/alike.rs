//! Compares two responses that should be equivalent.

use serde_json::Value;

/// Fields with server-specific values, and their parents.
const OWN: [(&str, &str); 5] = [
    ("metadata", "uid"),
    ("metadata", "resourceVersion"),
    ("metadata", "creationTimestamp"),
    ("conditions", "lastTransitionTime"),
    ("managedFields", "time"),
];
/// Lists without a fixed order: those of several writers, and causes, which Go collects from maps.
const UNORDERED: [&str; 3] = ["conditions", "managedFields", "causes"];
/// After this text, kube-apiserver reports the first undeclared field of a map, whose order is
/// random.
const IN_NO_ORDER: &str = "failed to create typed patch object";
/// Intended or known differences: the end of the path, and the reason.
const KNOWN: [(&str, &str); 1] = [(
    ".rolloutStrategy",
    "the default of a field that the stored version lacks: there it is lost for good, here it comes \
     back on reading",
)];
/// Most differences that are shown of one pair.
const SHOWN_MAX: usize = 4;

/// The first differences between two documents, as `path: kube-apiserver's | drover's`.
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

/// The member `name`, without server-specific values.
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

/// The part of a `Status` message that both must have.
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
