//! Objects generated from a schema: with required fields only, or with a part of the optional ones.

use rand::RngExt;
use rand::rngs::StdRng;
use regex::Regex;
use serde_json::{Map, Number, Value, json};

/// Texts that match patterns which are common in definitions; some match none.
const TEXTS: [&str; 24] = [
    "a",
    "abc",
    "a.b",
    "a/b",
    "example.com/a",
    "1",
    "10",
    "0s",
    "30s",
    "1h",
    "1Gi",
    "100m",
    "80",
    "50%",
    "https://a.example/b",
    "10.0.0.1",
    "10.0.0.0/8",
    "::1",
    "2024-01-01T00:00:00Z",
    "a@b.c",
    "*",
    "",
    "A",
    "a:b",
];
/// Depth from which on no optional fields are added.
const DEPTH_MAX: usize = 8;

/// Fills a schema, `fullness` (0 to 1) of what is optional.
pub struct Samples<'r> {
    pub random: &'r mut StdRng,
    pub fullness: f64,
}

impl Samples<'_> {
    /// A value for a schema that is `depth` levels below the object itself.
    pub fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if schema["x-kubernetes-int-or-string"] == true {
            return self.one_of(&[json!(1), json!(80), json!("50%"), json!("1Gi"), json!("http")]);
        }
        if let Some(default) = schema.get("default").filter(|_| self.happens(0.3)) {
            return default.clone();
        }
        if let Some(known) = schema["enum"].as_array() {
            return self.one_of(known);
        }
        match schema["type"].as_str() {
            Some("object") => self.object(schema, depth),
            Some("array") => self.array(schema, depth),
            Some("string") => self.text(schema).into(),
            Some(kind @ ("integer" | "number")) => Value::Number(self.number(schema, kind)),
            Some("boolean") => self.happens(0.5).into(),
            _ => self.one_of(&[json!({"a": 1}), json!("x"), json!(3)]),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut object = Map::new();
        let mut required = texts(&schema["required"]);
        for keyword in ["oneOf", "anyOf"] {
            if let Some(ways) = schema[keyword].as_array().filter(|_| self.happens(0.9)) {
                required.extend(texts(&self.one_of(ways)["required"]));
            }
        }
        let share = match depth {
            0 | 1 => self.fullness * 0.8,
            2..=DEPTH_MAX => self.fullness * 0.45,
            _ => 0.0,
        };
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let own = depth == 0 && ["apiVersion", "kind", "metadata", "status"].contains(&&**name);
            if !own && (required.contains(name) || self.happens(share)) {
                object.insert(name.clone(), self.value(schema, depth + 1));
            }
        }
        if schema["additionalProperties"].is_object() {
            let least = schema["minProperties"].as_u64().unwrap_or(0);
            for number in 0..least.max(u64::from(self.fullness > 0.0)) {
                let name = self.one_of(&[json!("a"), json!("b.c/d"), json!("e-f")]);
                let name = format!("{}{number}", name.as_str().unwrap_or_default());
                object.insert(name, self.value(&schema["additionalProperties"], depth + 1));
            }
        }
        if schema["x-kubernetes-embedded-resource"] == true {
            object.insert("apiVersion".to_owned(), json!("v1"));
            object.insert("kind".to_owned(), json!("ConfigMap"));
            object.insert("metadata".to_owned(), json!({"name": "a", "surplus": 1}));
        }
        if schema["x-kubernetes-preserve-unknown-fields"] == true && self.fullness > 0.0 {
            object.insert("free".to_owned(), json!({"a": [1, null]}));
        }
        if self.happens(self.fullness * 0.05) {
            object.insert("surplus".to_owned(), json!(1));
        }
        Value::Object(object)
    }

    fn array(&mut self, schema: &Value, depth: usize) -> Value {
        let least = schema["minItems"].as_u64().unwrap_or(0);
        let chosen = if self.fullness > 0.0 { self.random.random_range(0..3) } else { 0 };
        let most = schema["maxItems"].as_u64().filter(|_| self.happens(0.95)).unwrap_or(u64::MAX);
        let count = least.max(chosen).min(most);
        (0..count).map(|_| self.value(&schema["items"], depth + 1)).collect()
    }

    fn text(&mut self, schema: &Value) -> String {
        let of_format = match schema["format"].as_str() {
            Some("date-time") => Some("2024-01-01T00:00:00Z"),
            Some("date") => Some("2024-01-01"),
            Some("uri") => Some("https://a.example/"),
            Some("ipv4") => Some("10.0.0.1"),
            Some("ipv6") => Some("::1"),
            Some("cidr") => Some("10.0.0.0/8"),
            Some("duration") => Some("30s"),
            Some("byte") => Some("YWJj"),
            Some("uuid") => Some("123e4567-e89b-12d3-a456-426614174000"),
            Some("email") => Some("a@b.example"),
            Some("hostname") => Some("a.example"),
            _ => None,
        };
        if let Some(text) = of_format.filter(|_| self.happens(0.9)) {
            return text.to_owned();
        }
        let length = |key: &str| schema[key].as_u64().and_then(|n| usize::try_from(n).ok());
        let (least, most) = (length("minLength").unwrap_or(0), length("maxLength"));
        let fits = |text: &str| text.len() >= least && text.len() <= most.unwrap_or(usize::MAX);
        let pattern = schema["pattern"].as_str().and_then(|pattern| Regex::new(pattern).ok());
        let pattern = pattern.filter(|_| self.happens(0.95));
        let matches = |text: &str| pattern.as_ref().is_none_or(|known| known.is_match(text));
        let good: Vec<&str> =
            TEXTS.into_iter().filter(|text| fits(text) && matches(text)).collect();
        let texts = if good.is_empty() { TEXTS.as_slice() } else { &good };
        texts[self.random.random_range(0..texts.len())].to_owned()
    }

    fn number(&mut self, schema: &Value, kind: &str) -> Number {
        let least = schema["minimum"].as_f64().map_or(0, |least| least as i64);
        let most = schema["maximum"].as_f64().map_or(least.saturating_add(100), |most| most as i64);
        let chosen = self.one_of(&[json!(least), json!(most), json!(least / 2 + most / 2)]);
        let chosen = chosen.as_i64().unwrap_or(least);
        match kind == "number" && self.happens(0.3) {
            true => Number::from_f64(chosen as f64 + 0.5).unwrap_or_else(|| chosen.into()),
            false => chosen.into(),
        }
    }

    fn happens(&mut self, share: f64) -> bool {
        self.random.random_bool(share)
    }

    fn one_of(&mut self, known: &[Value]) -> Value {
        let count = known.len();
        if count == 0 { Value::Null } else { known[self.random.random_range(0..count)].clone() }
    }
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}
