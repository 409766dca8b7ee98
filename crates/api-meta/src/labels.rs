//! Labels and label selectors: validation, the selector grammar, matching.
//!
//! A [`LabelSelector`] is canonical: selectors with the same meaning (`a=b`, `a==b`, `a in (b)`)
//! are equal and print the same text, so they can be compared and used as cache keys.

mod parse;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value};

use crate::names;
use crate::status::Cause;

/// Largest sum of all annotation keys and values of an object, in bytes.
pub const ANNOTATIONS_SIZE_MAX: usize = 256 * 1024;

/// A set of labels with lookup by key.
pub trait Labels {
    /// The value of a label; `None`: the label is absent.
    fn label_value(&self, key: &str) -> Option<&str>;
}

impl Labels for Map<String, Value> {
    fn label_value(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }
}

/// A JSON map of labels; anything else is the empty set.
impl Labels for Value {
    fn label_value(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }
}

impl<K: std::borrow::Borrow<str> + Ord, V: AsRef<str>> Labels for BTreeMap<K, V> {
    fn label_value(&self, key: &str) -> Option<&str> {
        self.get(key).map(AsRef::as_ref)
    }
}

/// Pairs sorted by key.
impl<K: AsRef<str>, V: AsRef<str>> Labels for [(K, V)] {
    fn label_value(&self, key: &str) -> Option<&str> {
        let index = self.binary_search_by(|(k, _)| k.as_ref().cmp(key)).ok()?;
        Some(self[index].1.as_ref())
    }
}

/// What one requirement demands of a label. Equality is `In` with one value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Test {
    In(BTreeSet<String>),
    /// Holds also without the label.
    NotIn(BTreeSet<String>),
    Exists,
    DoesNotExist,
    GreaterThan(i64),
    LessThan(i64),
}

/// A test of one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    pub key: String,
    pub test: Test,
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.contains(value)),
            Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Test::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let list = |values: &BTreeSet<String>| {
            values.iter().map(String::as_str).collect::<Vec<_>>().join(",")
        };
        match &self.test {
            Test::In(values) if values.len() == 1 => write!(f, "{key}={}", list(values)),
            Test::In(values) => write!(f, "{key} in ({})", list(values)),
            Test::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", list(values)),
            Test::NotIn(values) => write!(f, "{key} notin ({})", list(values)),
            Test::Exists => f.write_str(key),
            Test::DoesNotExist => write!(f, "!{key}"),
            Test::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Test::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

/// A conjunction of requirements, or the selector that matches nothing. The default matches
/// everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    /// Invariant: sorted, without duplicates; empty when `nothing`.
    requirements: Vec<Requirement>,
    nothing: bool,
}

/// A selector that cannot be parsed. The message is for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);

impl LabelSelector {
    /// The conjunction of these requirements; without any it matches everything.
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort();
        requirements.dedup();
        Self { requirements, nothing: false }
    }

    /// Matches no object at all.
    pub fn nothing() -> Self {
        Self { requirements: Vec::new(), nothing: true }
    }

    /// Parses the text of a query parameter; the empty text matches everything.
    ///
    /// # Errors
    /// Invalid syntax, key or value; respond with 400 and the message.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::parse(text).map(Self::new)
    }

    /// Reads `matchLabels` and `matchExpressions`. Null and absent match nothing, `{}` matches
    /// everything.
    ///
    /// # Errors
    /// An unknown operator, or values that do not fit it; report the message at the selector's
    /// field.
    pub fn from_object(object: &Value) -> Result<Self, SelectorError> {
        if object.is_null() {
            return Ok(Self::nothing());
        }
        let mut requirements = Vec::new();
        for (key, value) in object["matchLabels"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            let test = Test::In(BTreeSet::from([value]));
            requirements.push(parse::checked(key, test)?);
        }
        for expression in object["matchExpressions"].as_array().into_iter().flatten() {
            requirements.push(expression_requirement(expression)?);
        }
        Ok(Self::new(requirements))
    }

    /// The selector of exactly these labels.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let requirement = |(key, value): (&str, &str)| Requirement {
            key: key.to_owned(),
            test: Test::In(BTreeSet::from([value.to_owned()])),
        };
        Self::new(labels.into_iter().map(requirement).collect())
    }

    /// Whether an object matches. `lookup` returns the value of a label.
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing && self.requirements.iter().all(|one| one.holds(lookup(&one.key)))
    }

    /// Whether a set of labels matches.
    pub fn matches_labels(&self, labels: &(impl Labels + ?Sized)) -> bool {
        self.matches(|key| labels.label_value(key))
    }

    /// Whether every object matches.
    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// The requirements, sorted; empty for a selector that matches everything or nothing.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nothing {
            return f.write_str("<none>");
        }
        for (index, requirement) in self.requirements.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

fn expression_requirement(expression: &Value) -> Result<Requirement, SelectorError> {
    let key = expression["key"].as_str().unwrap_or_default();
    let operator = expression["operator"].as_str().unwrap_or_default();
    let values: BTreeSet<String> = expression["values"]
        .as_array()
        .map(|list| list.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    let test = match operator {
        "In" => Test::In(values),
        "NotIn" => Test::NotIn(values),
        "Exists" if values.is_empty() => Test::Exists,
        "DoesNotExist" if values.is_empty() => Test::DoesNotExist,
        "Exists" | "DoesNotExist" => {
            return Err(SelectorError(
                "values: Invalid value: values set must be empty for exists and does not exist"
                    .to_owned(),
            ));
        }
        other => {
            return Err(SelectorError(format!(
                "\"{other}\" is not a valid label selector operator"
            )));
        }
    };
    parse::checked(key, test)
}

/// Problems of a map of labels at `field`.
pub fn validate_labels(field: &str, labels: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        for problem in names::qualified_name(key) {
            causes.push(Cause::invalid(field, &Value::from(key.as_str()), &problem));
        }
        for problem in names::label_value(value.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid(field, value, &problem));
        }
    }
    causes
}

/// Problems of a map of annotations at `field`. Upper case is allowed in the prefix of keys.
pub fn validate_annotations(field: &str, annotations: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        for problem in names::qualified_name(&key.to_lowercase()) {
            causes.push(Cause::invalid(field, &Value::from(key.as_str()), &problem));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_SIZE_MAX {
        causes.push(Cause::too_long(field, ANNOTATIONS_SIZE_MAX));
    }
    causes
}

/// Problems of a selector object (`matchLabels`, `matchExpressions`) at `field`.
pub fn validate_selector(field: &str, selector: &Value) -> Vec<Cause> {
    let mut causes = validate_labels(&format!("{field}.matchLabels"), &selector["matchLabels"]);
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    for (index, expression) in expressions.enumerate() {
        let field = format!("{field}.matchExpressions[{index}]");
        let empty = expression["values"].as_array().is_none_or(Vec::is_empty);
        match expression["operator"].as_str().unwrap_or_default() {
            "In" | "NotIn" if empty => causes.push(Cause::required(
                format!("{field}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if !empty => causes.push(Cause::forbidden(
                format!("{field}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => causes.push(Cause::invalid(
                format!("{field}.operator"),
                &expression["operator"],
                "not a valid selector operator",
            )),
        }
        let key = expression["key"].as_str().unwrap_or_default();
        for problem in names::qualified_name(key) {
            causes.push(Cause::invalid(format!("{field}.key"), &key.into(), &problem));
        }
        for (index, value) in expression["values"].as_array().into_iter().flatten().enumerate() {
            for problem in names::label_value(value.as_str().unwrap_or_default()) {
                causes.push(Cause::invalid(format!("{field}.values[{index}]"), value, &problem));
            }
        }
    }
    causes
}
