//! Definitions with rules, and objects of them.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value, json};

use crate::expressions::Expressions;

/// A definition whose `spec` has the rules.
pub fn definition(name: &str, rules: &[Value]) -> Value {
    let mut spec = schema();
    spec["x-kubernetes-validations"] = rules.into();
    let root = json!({"type": "object", "properties": {"spec": spec}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{name}s.rules.example.com")},
        "spec": {
            "group": "rules.example.com",
            "scope": "Cluster",
            "names": {"plural": format!("{name}s"), "singular": name, "kind": kind(name),
                "listKind": format!("{}List", kind(name))},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": root}}],
        },
    })
}

fn kind(name: &str) -> String {
    format!("K{name}")
}

pub fn object(definition: &str, name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "rules.example.com/v1",
        "kind": kind(definition),
        "metadata": {"name": name},
    });
    if !spec.is_null() {
        object["spec"] = spec;
    }
    object
}

/// One field of every type that rules can use.
fn schema() -> Value {
    let item = json!({"type": "object", "required": ["k"], "properties": {
        "k": {"type": "string", "maxLength": 20}, "v": {"type": "integer"}}});
    json!({"type": "object", "properties": {
        "i": {"type": "integer"},
        "j": {"type": "integer", "format": "int32"},
        "d": {"type": "number"},
        "b": {"type": "boolean"},
        "s": {"type": "string", "maxLength": 40},
        "t": {"type": "string"},
        "e": {"type": "string", "enum": ["one", "two", "three"]},
        "l": {"type": "array", "maxItems": 8, "items": {"type": "string", "maxLength": 20}},
        "n": {"type": "array", "maxItems": 10, "items": {"type": "integer"}},
        "u": {"type": "array", "items": {"type": "integer"}},
        "st": {"type": "array", "maxItems": 8, "x-kubernetes-list-type": "set",
            "items": {"type": "string", "maxLength": 20}},
        "ml": {"type": "array", "maxItems": 6, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"], "items": item},
        "m": {"type": "object", "maxProperties": 8,
            "additionalProperties": {"type": "string", "maxLength": 20}},
        "ios": {"x-kubernetes-int-or-string": true},
        "dt": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "du": {"type": "string", "format": "duration"},
        "by": {"type": "string", "format": "byte", "maxLength": 40},
        "nl": {"type": "string", "nullable": true, "maxLength": 20},
        "o": {"type": "object", "properties": {
            "x": {"type": "integer"},
            "namespace": {"type": "string", "maxLength": 20},
            "a-b": {"type": "string", "maxLength": 20},
            "opt": {"type": "string", "maxLength": 20}}},
    }})
}

/// Values of each field.
const VALUES: [(&str, &str); 20] = [
    ("i", "[0, 1, 3, -7, 9223372036854775807, -9223372036854775808]"),
    ("j", "[0, 2, 5, 100]"),
    ("d", "[0, 1, 2.5, -0.5, 3e10]"),
    ("b", "[true, false]"),
    ("s", r#"["", "a", "hello wörld", "1Gi", "10.0.0.1", "https://a.example:80/p?q=1", "1.2.3"]"#),
    ("t", r#"["Some-Text.v1", "10.0.0.0/8", "2020-01-02T03:04:05Z", "90m", "%d"]"#),
    ("e", r#"["one", "two", "three"]"#),
    ("l", r#"[[], ["a"], ["a", "bb", "ccc"], ["c", "b", "a", "a"]]"#),
    ("n", "[[], [1], [1, 2, 3, 4], [4, 3, 3, 1]]"),
    ("u", "[[], [5, 6, 7]]"),
    ("st", r#"[[], ["p", "q"], ["q", "p"], ["p", "q", "r"]]"#),
    ("ml", r#"[[], [{"k": "one", "v": 1}, {"k": "two"}], [{"k": "two", "v": 3}]]"#),
    ("m", r#"[{}, {"a": "x", "b": "y"}, {"a": "z"}]"#),
    ("ios", r#"[1, "80%", "a"]"#),
    ("dt", r#"["2020-01-02T03:04:05.678Z", "2024-02-29T23:59:59+02:00"]"#),
    ("day", r#"["2021-05-06", "2000-01-01"]"#),
    ("du", r#"["1h30m", "10s"]"#),
    ("by", r#"["aGVsbG8=", ""]"#),
    ("nl", r#"["a", null]"#),
    ("o", r#"[{}, {"x": 5, "namespace": "ns", "a-b": "q"}, {"opt": "o"}]"#),
];

/// Generates rules and values from a seed.
pub struct Rules {
    random: StdRng,
    expressions: Expressions,
}

impl Rules {
    pub fn new(seed: u64) -> Self {
        Self { random: StdRng::seed_from_u64(seed), expressions: Expressions::new(seed) }
    }

    fn chance(&mut self, of: f64) -> bool {
        self.random.random_bool(of)
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from.choose(&mut self.random).copied().expect("the choice is not empty")
    }

    /// One entry of `x-kubernetes-validations`, mostly a valid one.
    pub fn rule(&mut self) -> Value {
        let mut rule = Map::new();
        let old = if self.chance(0.2) { Some(self.chance(0.3)) } else { None };
        let text = self.expressions.rule(old);
        rule.insert("rule".to_owned(), text.into());
        if old == Some(true) {
            rule.insert("optionalOldSelf".to_owned(), true.into());
        } else if self.chance(0.02) {
            rule.insert("optionalOldSelf".to_owned(), self.chance(0.5).into());
        }
        if self.chance(0.3) {
            let message =
                self.pick(&["must hold", "no <b> & no \"quotes\"", " spaces ", "a\nb", " "]);
            rule.insert("message".to_owned(), message.into());
        }
        if self.chance(0.2) {
            let message = self.expressions.message(old);
            rule.insert("messageExpression".to_owned(), message.into());
        }
        if self.chance(0.2) {
            let reason = self.pick(&[
                "FieldValueInvalid",
                "FieldValueForbidden",
                "FieldValueRequired",
                "FieldValueDuplicate",
                "Other",
            ]);
            rule.insert("reason".to_owned(), reason.into());
        }
        if self.chance(0.2) {
            let path = self.pick(&[
                ".i",
                ".o.x",
                ".o.namespace",
                ".m['a']",
                ".m.a",
                ".ml",
                "['o']['a-b']",
                ".none",
                ".o",
                "o",
                ".l[0]",
                ".i.j",
                "",
                " ",
                ".o.",
                "['o'",
                ".m['it\\'s']",
            ]);
            rule.insert("fieldPath".to_owned(), path.into());
        }
        rule.into()
    }

    /// A `spec`, in which fields may be missing.
    pub fn spec(&mut self) -> Value {
        let mut spec = Map::new();
        for (name, values) in VALUES {
            if self.chance(0.15) {
                continue;
            }
            let values: Vec<Value> = serde_json::from_str(values).expect("the table is JSON");
            let value = values.choose(&mut self.random).expect("each field has values");
            spec.insert(name.to_owned(), value.clone());
        }
        spec.into()
    }
}
