//! The fields that version 1 of HorizontalPodAutoscaler lacks. kube-apiserver writes them as JSON
//! into annotations: metrics and conditions in the types of that version, the behavior in its
//! internal one.
//!
//! Tables map the fields, in the order of Go's structs, so that the text is the same. Like in
//! kube-apiserver, a text that does not fit these types counts as absent.

use api_meta::quantity;
use apiserver::fields::Object;
use serde_json::{Map, Value, json};

/// Metrics other than CPU utilization.
pub const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
pub const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
pub const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
pub const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// All annotations with fields of another version; the last two are of removed versions.
pub const ALL: [&str; 6] = [
    METRICS,
    BEHAVIOR,
    CURRENT_METRICS,
    CONDITIONS,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];
/// The annotations with fields of the status.
pub const OF_STATUS: [&str; 2] = [CURRENT_METRICS, CONDITIONS];

/// The type of a field. Optional fields are omitted when they are absent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldType {
    Text,
    Reference,
    Amount,
    MaybeAmount,
    MaybeNumber,
    MaybeSelector,
}

/// The name of a field in version 1, its path in version 2, and its type.
type FieldMapping = (&'static str, &'static [&'static str], FieldType);
/// A source of metrics: its name in both versions, and its fields.
type MetricSource = (&'static str, &'static [FieldMapping]);

const NAME: FieldMapping = ("metricName", &["metric", "name"], FieldType::Text);
const SELECTOR: FieldMapping = ("selector", &["metric", "selector"], FieldType::MaybeSelector);
const OBJECT: FieldMapping = ("target", &["describedObject"], FieldType::Reference);
const EXTERNAL_SELECTOR: FieldMapping =
    ("metricSelector", &["metric", "selector"], FieldType::MaybeSelector);
const RESOURCE: FieldMapping = ("name", &["name"], FieldType::Text);
const CONTAINER: FieldMapping = ("container", &["container"], FieldType::Text);
const UTILIZATION: FieldMapping =
    ("targetAverageUtilization", &["target", "averageUtilization"], FieldType::MaybeNumber);
const TARGET: FieldMapping =
    ("targetAverageValue", &["target", "averageValue"], FieldType::MaybeAmount);
const CURRENT_UTILIZATION: FieldMapping =
    ("currentAverageUtilization", &["current", "averageUtilization"], FieldType::MaybeNumber);
const CURRENT: FieldMapping =
    ("currentAverageValue", &["current", "averageValue"], FieldType::Amount);

const SPECS: [MetricSource; 5] = [
    (
        "object",
        &[
            OBJECT,
            NAME,
            ("targetValue", &["target", "value"], FieldType::Amount),
            SELECTOR,
            ("averageValue", &["target", "averageValue"], FieldType::MaybeAmount),
        ],
    ),
    (
        "pods",
        &[NAME, ("targetAverageValue", &["target", "averageValue"], FieldType::Amount), SELECTOR],
    ),
    ("resource", &[RESOURCE, UTILIZATION, TARGET]),
    ("containerResource", &[RESOURCE, UTILIZATION, TARGET, CONTAINER]),
    (
        "external",
        &[
            NAME,
            EXTERNAL_SELECTOR,
            ("targetValue", &["target", "value"], FieldType::MaybeAmount),
            TARGET,
        ],
    ),
];
const STATUSES: [MetricSource; 5] = [
    (
        "object",
        &[
            OBJECT,
            NAME,
            ("currentValue", &["current", "value"], FieldType::Amount),
            SELECTOR,
            ("averageValue", &["current", "averageValue"], FieldType::MaybeAmount),
        ],
    ),
    ("pods", &[NAME, CURRENT, SELECTOR]),
    ("resource", &[RESOURCE, CURRENT_UTILIZATION, CURRENT]),
    ("containerResource", &[RESOURCE, CURRENT_UTILIZATION, CURRENT, CONTAINER]),
    (
        "external",
        &[
            NAME,
            EXTERNAL_SELECTOR,
            ("currentValue", &["current", "value"], FieldType::Amount),
            ("currentAverageValue", &["current", "averageValue"], FieldType::MaybeAmount),
        ],
    ),
];

/// The rules of a behavior: their names in the internal version and in version 2.
const RULES: [(&str, &str); 4] = [
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Policies", "policies"),
    ("Tolerance", "tolerance"),
];
const POLICY: [(&str, &str); 3] =
    [("Type", "type"), ("Value", "value"), ("PeriodSeconds", "periodSeconds")];
const DIRECTIONS: [(&str, &str); 2] = [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")];
/// Fields of a condition; the last two are optional.
const CONDITION: [&str; 5] = ["type", "status", "lastTransitionTime", "reason", "message"];

/// Encodes the metrics of a version 2 spec that version 1 has no field for.
pub fn write_metrics<'m>(metrics: impl Iterator<Item = &'m Value>) -> String {
    escape_html(&list(metrics.map(|metric| metric_text(metric, &SPECS))))
}

/// Encodes the metrics of a version 2 status.
pub fn write_current_metrics(metrics: &[Value]) -> String {
    escape_html(&list(metrics.iter().map(|metric| metric_text(metric, &STATUSES))))
}

/// Encodes a behavior of version 2.
pub fn write_behavior(behavior: &Value) -> String {
    let rules = |rules: &Value| {
        let fields = RULES.iter().map(|(name, field)| {
            let value = match (*field, &rules[*field]) {
                ("policies", Value::Array(policies)) => list(policies.iter().map(|policy| {
                    map(POLICY.iter().map(|(name, field)| (*name, policy[*field].to_string())))
                })),
                (_, value) => value.to_string(),
            };
            (*name, value)
        });
        if rules.is_null() { "null".to_owned() } else { map(fields) }
    };
    escape_html(&map(DIRECTIONS.iter().map(|(name, field)| (*name, rules(&behavior[*field])))))
}

/// Encodes the conditions of a version 2 status.
pub fn write_conditions(conditions: &[Value]) -> String {
    escape_html(&list(conditions.iter().map(|condition| {
        let fields = CONDITION.iter().enumerate();
        let present = fields.filter(|(at, name)| *at < 3 || !condition[**name].is_null());
        map(present.map(|(_, name)| (*name, condition[*name].to_string())))
    })))
}

/// Decodes metrics into version 2; `None` when the text does not fit.
pub fn read_metrics(text: &str) -> Option<Vec<Value>> {
    let mut metrics = read_sources(text, &SPECS)?;
    for metric in &mut metrics {
        for (source, _) in SPECS {
            if let Some(target) = metric.get_mut(source).map(|source| &mut source["target"]) {
                complete(target, source);
            }
        }
    }
    Some(metrics)
}

/// Decodes the metrics of a status into version 2; `None` when the text does not fit.
pub fn read_current_metrics(text: &str) -> Option<Vec<Value>> {
    read_sources(text, &STATUSES)
}

/// Decodes a behavior into version 2; `None` when the text does not fit.
pub fn read_behavior(text: &str) -> Option<Value> {
    fn fields<'v>(
        from: &'v Value,
        names: &[(&str, &'static str)],
    ) -> Option<Vec<(&'static str, &'v Value)>> {
        from.as_object()?;
        let found =
            names.iter().map(|(name, field)| (*field, from.get(*name).unwrap_or(&from[*field])));
        Some(found.filter(|(_, value)| !value.is_null()).collect())
    }
    let given: Value = serde_json::from_str(text).ok()?;
    let mut behavior = Object::new();
    for (direction, given) in fields(&given, &DIRECTIONS)? {
        let mut rules = Object::new();
        for (field, value) in fields(given, &RULES)? {
            let value = match field {
                "policies" => {
                    let policies = value.as_array()?.iter().map(|policy| {
                        let policy = fields(policy, &POLICY)?.into_iter();
                        Some(policy.map(|(name, value)| (name.to_owned(), value.clone())).collect())
                    });
                    Value::Array(policies.collect::<Option<Vec<Value>>>()?)
                }
                "tolerance" => quantity::canonical(value)?.into(),
                _ => value.clone(),
            };
            rules.insert(field.to_owned(), value);
        }
        behavior.insert(direction.to_owned(), rules.into());
    }
    (!behavior.is_empty()).then(|| behavior.into())
}

/// Decodes conditions into version 2; `None` when the text does not fit.
pub fn read_conditions(text: &str) -> Option<Vec<Value>> {
    let given: Value = serde_json::from_str(text).ok()?;
    let conditions = given.as_array()?.iter().map(|given| {
        let given = given.as_object()?;
        let fields = CONDITION.iter().filter_map(|name| Some((*name, given.get(*name)?)));
        let mut condition = Map::new();
        for (name, value) in fields.filter(|(_, value)| !value.is_null()) {
            value.as_str()?;
            condition.insert(name.to_owned(), value.clone());
        }
        // Always present.
        condition.entry("lastTransitionTime").or_insert(Value::Null);
        Some(Value::Object(condition))
    });
    conditions.collect()
}

/// Encodes a version 2 metric in the types of version 1.
fn metric_text(metric: &Value, sources: &[MetricSource]) -> String {
    let kind = ("type", metric["type"].to_string());
    let given = sources.iter().filter(|(source, _)| metric[*source].is_object());
    let sources = given.map(|(source, fields)| {
        let fields = fields.iter().filter_map(|(name, path, form)| {
            let value = path.iter().fold(&metric[*source], |value, step| &value[*step]);
            Some((*name, form.text(value)?))
        });
        (*source, map(fields))
    });
    map([kind].into_iter().chain(sources))
}

fn read_sources(text: &str, sources: &[MetricSource]) -> Option<Vec<Value>> {
    let given: Value = serde_json::from_str(text).ok()?;
    let metrics = given.as_array()?.iter().map(|given| {
        given.as_object()?;
        let mut metric = json!({"type": given.get("type").map_or(Some(""), Value::as_str)?});
        for (source, fields) in sources {
            if given[*source].is_null() {
                continue;
            }
            given[*source].as_object()?;
            metric[*source] = json!({});
            for (name, path, form) in *fields {
                if let Some(value) = form.read(&given[*source][*name])? {
                    let slot =
                        path.iter().fold(&mut metric[*source], |slot, step| &mut slot[*step]);
                    *slot = value;
                }
            }
        }
        Some(metric)
    });
    metrics.collect()
}

/// Sets the type of a target. In version 1 it follows from the fields that are set.
fn complete(target: &mut Value, source: &str) {
    if !target.is_object() {
        *target = json!({});
    }
    let has = |field: &str| !target[field].is_null();
    let kind = match source {
        "object" if !has("averageValue") => "Value",
        "external" if has("value") => "Value",
        "resource" | "containerResource" if has("averageUtilization") => "Utilization",
        _ => "AverageValue",
    };
    // Version 1 always has this field.
    let is_unset = source == "object" && kind == "AverageValue" && target["value"] == "0";
    let fields = target.as_object_mut().expect("made one above");
    if is_unset {
        fields.remove("value");
    }
    fields.insert("type".to_owned(), kind.into());
}

impl FieldType {
    /// The JSON of a version 2 value; `None` when the field is omitted.
    fn text(self, value: &Value) -> Option<String> {
        match (self, value) {
            (Self::Text, Value::Null) => Some("\"\"".to_owned()),
            (Self::Amount, Value::Null) => Some("\"0\"".to_owned()),
            (Self::Reference, value) => {
                let text = |field: &str| value[field].as_str().unwrap_or_default();
                let names = ["kind", "name", "apiVersion"].into_iter();
                let present = names.filter(|name| *name != "apiVersion" || !text(name).is_empty());
                Some(map(present.map(|name| (name, Value::from(text(name)).to_string()))))
            }
            (Self::MaybeSelector, Value::Object(selector)) => {
                let parts = ["matchLabels", "matchExpressions"].into_iter();
                let given = parts.filter_map(|part| Some((part, selector.get(part)?.to_string())));
                Some(map(given))
            }
            (_, Value::Null) => None,
            (_, value) => Some(value.to_string()),
        }
    }

    /// Decodes a value into version 2; the inner `None` is an absent field.
    ///
    /// Returns `None` when the value has another type.
    fn read(self, given: &Value) -> Option<Option<Value>> {
        let fits = match (self, given) {
            (Self::Text, Value::Null) => return Some(Some("".into())),
            (Self::Reference, Value::Null) => return Some(Some(json!({"kind": "", "name": ""}))),
            (Self::Amount, Value::Null) => return Some(Some("0".into())),
            (_, Value::Null) => return Some(None),
            (Self::Amount | Self::MaybeAmount, given) => {
                return Some(Some(quantity::canonical(given)?.into()));
            }
            (Self::Text, given) => given.is_string(),
            (Self::MaybeNumber, given) => given.is_i64(),
            (Self::Reference | Self::MaybeSelector, given) => given.is_object(),
        };
        fits.then(|| Some(given.clone()))
    }
}

/// The JSON of an object, with its fields in the given order.
fn map<'n>(fields: impl Iterator<Item = (&'n str, String)>) -> String {
    let fields: Vec<String> = fields.map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// Escapes the characters that Go escapes, so that JSON is safe in HTML. They only occur in
/// strings.
fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                escaped += &format!("\\u{:04x}", u32::from(character));
            }
            other => escaped.push(other),
        }
    }
    escaped
}
