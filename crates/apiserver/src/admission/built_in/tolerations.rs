//! DefaultTolerationSeconds: pods stay for a while on a node that is not ready or unreachable. And
//! how tolerations are merged.

use serde_json::{Value, json};

use crate::fields::{items, str_of};

/// How long pods stay on a node that is not ready or unreachable, in seconds.
const TOLERATION_SECONDS: i64 = 300;

/// Adds the tolerations of nodes that are not ready or unreachable, unless the pod has its own.
pub fn preset(pod: &mut Value) {
    let mut tolerations = items(&pod["spec"]["tolerations"]).to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let stated = tolerations.iter().any(|toleration| {
            ["", key].contains(&str_of(&toleration["key"]))
                && ["", "NoExecute"].contains(&str_of(&toleration["effect"]))
        });
        if !stated {
            tolerations.push(json!({
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
    if pod["spec"].is_object() {
        pod["spec"]["tolerations"] = tolerations.into();
    }
}

/// Merges both lists and drops each toleration that another one covers. Of equal ones the first is
/// retained.
pub(super) fn merge(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let before = merged.iter().any(|other| covers(other, toleration));
        let after =
            all[index + 1..].iter().any(|other| other != toleration && covers(other, toleration));
        if !before && !after {
            merged.push((*toleration).clone());
        }
    }
    merged
}

/// Whether `wide` tolerates everything that `narrow` tolerates.
fn covers(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let text = |toleration: &Value, field: &str| str_of(&toleration[field]).to_owned();
    let (operator, effect) = (text(wide, "operator"), text(wide, "effect"));
    let any_key = text(wide, "key").is_empty() && operator == "Exists";
    if !any_key && text(wide, "key") != text(narrow, "key") {
        return false;
    }
    if !effect.is_empty() && effect != text(narrow, "effect") {
        return false;
    }
    if effect == "NoExecute"
        && let Some(most) = wide["tolerationSeconds"].as_i64()
        && narrow["tolerationSeconds"].as_i64().is_none_or(|seconds| seconds > most)
    {
        return false;
    }
    match operator.as_str() {
        "Exists" => true,
        "" | "Equal" => {
            text(narrow, "operator") == "Equal" && text(narrow, "value") == text(wide, "value")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::merge;

    #[test]
    fn a_toleration_that_another_covers_is_left_out() {
        let short = json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30});
        let long = json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60});
        let ever = json!({"key": "a", "operator": "Exists"});
        let equal = json!({"key": "b", "operator": "Equal", "value": "x", "effect": "NoSchedule"});
        let all = json!({"operator": "Exists"});
        let cases = [
            (vec![&short], vec![&long], vec![&long]),
            (vec![&long], vec![&short], vec![&long]),
            (vec![&short, &equal], vec![&ever], vec![&equal, &ever]),
            (vec![&equal], vec![&equal], vec![&equal]),
            (vec![&short, &equal], vec![&all], vec![&all]),
        ];
        for (first, second, expected) in cases {
            let owned = |list: &[&serde_json::Value]| -> Vec<serde_json::Value> {
                list.iter().map(|one| (*one).clone()).collect()
            };
            assert_eq!(merge(&owned(&first), &owned(&second)), owned(&expected));
        }
    }
}
