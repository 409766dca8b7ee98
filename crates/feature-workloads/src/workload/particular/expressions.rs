//! Requirements on the labels of nodes as text: `key`, `!key`, `key = value`, `key in (a, b)`,
//! `key > 3`; several that hold together are joined by `&&`.

use serde_json::{Value, json};

/// Joins what must hold together.
pub const AND: &str = " && ";

/// Operators of Kubernetes, with the sign for one value and the word for several.
const OPERATORS: [(&str, &str, Option<&str>); 4] =
    [("In", "=", Some("in")), ("NotIn", "!=", Some("notin")), ("Gt", ">", None), ("Lt", "<", None)];

/// The texts of the expressions of a term (`nodeSelectorTerm`), as far as text can say them.
pub fn texts(term: &Value) -> Vec<String> {
    let list = term.get("matchExpressions").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(text).collect()
}

fn text(expression: &Value) -> Option<String> {
    let key = expression.get("key")?.as_str()?;
    let operator = expression.get("operator")?.as_str()?;
    let values = expression.get("values").and_then(Value::as_array);
    let values: Vec<&str> = values.into_iter().flatten().filter_map(Value::as_str).collect();
    match operator {
        "Exists" => return Some(key.to_owned()),
        "DoesNotExist" => return Some(format!("!{key}")),
        _ => {}
    }
    let (_, sign, word) = OPERATORS.iter().find(|(known, _, _)| *known == operator)?;
    match (values.as_slice(), word) {
        ([value], _) => Some(format!("{key} {sign} {value}")),
        ([_, _, ..], Some(word)) => Some(format!("{key} {word} ({})", values.join(", "))),
        _ => None,
    }
}

/// The expressions that a text says; several when it has `&&`.
pub fn expressions(text: &str) -> Vec<Value> {
    text.split("&&").map(str::trim).filter(|part| !part.is_empty()).map(expression).collect()
}

fn expression(text: &str) -> Value {
    // The first sign or word in the text, and of several at one position the longest.
    let signs = [("!=", "NotIn"), ("=", "In"), (">", "Gt"), ("<", "Lt")];
    let words = [(" notin ", "NotIn"), (" in ", "In")];
    let found = signs.into_iter().chain(words).filter_map(|(mark, operator)| {
        // A mark at the beginning is that of `!key`.
        let at = text.get(1..)?.find(mark)? + 1;
        Some((at, usize::MAX - mark.len(), mark, operator))
    });
    if let Some((at, _, mark, operator)) = found.min() {
        let values = text[at + mark.len()..].trim();
        let values = values.strip_prefix('(').and_then(|v| v.strip_suffix(')')).unwrap_or(values);
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        return json!({"key": text[..at].trim(), "operator": operator, "values": values});
    }
    match text.strip_prefix('!') {
        Some(key) => json!({"key": key.trim(), "operator": "DoesNotExist"}),
        None => json!({"key": text, "operator": "Exists"}),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn text_and_expressions_say_the_same() {
        let cases = [
            ("disk", json!({"key": "disk", "operator": "Exists"})),
            ("!disk", json!({"key": "disk", "operator": "DoesNotExist"})),
            ("disk = ssd", json!({"key": "disk", "operator": "In", "values": ["ssd"]})),
            ("disk != ssd", json!({"key": "disk", "operator": "NotIn", "values": ["ssd"]})),
            ("z in (a, b)", json!({"key": "z", "operator": "In", "values": ["a", "b"]})),
            ("z notin (a, b)", json!({"key": "z", "operator": "NotIn", "values": ["a", "b"]})),
            ("cores > 3", json!({"key": "cores", "operator": "Gt", "values": ["3"]})),
            ("cores < 3", json!({"key": "cores", "operator": "Lt", "values": ["3"]})),
            ("disk = ", json!({"key": "disk", "operator": "In", "values": [""]})),
        ];
        for (text, expected) in cases {
            assert_eq!(expressions(text), std::slice::from_ref(&expected), "{text}");
            assert_eq!(texts(&json!({"matchExpressions": [expected]})), [text]);
        }
    }

    #[test]
    fn text_by_hand_is_understood() {
        assert_eq!(expressions("a=b&&!c"), [expressions("a = b"), expressions("!c")].concat());
        assert_eq!(expressions("zone in (a,b)"), expressions("zone in (a, b)"));
        for text in ["", "&&", "=", "! ", "ü=ß", "in", " in "] {
            expressions(text);
        }
    }
}
