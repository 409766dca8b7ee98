//! Validation of values, with the texts of Kubernetes.
//!
//! On updates, violations in parts that equal their old counterpart are tolerated (ratcheting):
//! existing objects must stay writable when a schema becomes stricter.

use std::cmp::Ordering;
use std::collections::HashSet;

use api_meta::status::Cause;
use serde_json::{Number, Value};

use crate::format;
use crate::list;
use crate::number::as_integer;
use crate::schema::{
    Additional, CAUSES_MAX, ListType, NodeId, Schema, SchemaNode, Type, VALUE_DEPTH_MAX,
    ValueRules, join, type_name,
};

/// The field of causes that concern no single field.
const NO_FIELD: &str = "<nil>";

impl Schema {
    /// Returns all violations, at most [`CAUSES_MAX`]; none for a valid object. `old` is the object
    /// before an update.
    pub fn validate(&self, value: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut causes = Vec::new();
        self.value(self.root, value, old, "", 0, &mut causes);
        // Several schemas of one value may report the same violation.
        let mut reported = HashSet::new();
        causes.retain(|cause| reported.insert((cause.field.clone(), cause.message.clone())));
        causes.truncate(CAUSES_MAX);
        let Some(expressions) = &self.expressions else {
            return causes;
        };
        // Rules are evaluated only on objects that fit the schema.
        if causes.iter().any(stops_rules) {
            causes.push(Cause::invalid(
                NO_FIELD,
                &Value::Null,
                "some validation rules were not checked because the object was invalid; correct \
                 the existing errors to complete validation",
            ));
        } else {
            causes.extend(expressions.validate(self, value, old));
            causes.truncate(CAUSES_MAX);
        }
        causes
    }

    /// Violations of a value against the node `id`. Paths begin at the value.
    pub(crate) fn validate_below(&self, id: NodeId, value: &Value) -> Vec<Cause> {
        let mut causes = Vec::new();
        self.value(id, value, None, "", 0, &mut causes);
        causes
    }

    fn value(
        &self,
        id: NodeId,
        value: &Value,
        old: Option<&Value>,
        path: &str,
        depth: usize,
        out: &mut Vec<Cause>,
    ) {
        if old == Some(value) || out.len() >= CAUSES_MAX || depth > VALUE_DEPTH_MAX {
            return;
        }
        let node = self.node(id);
        if value.is_null() && node.nullable {
            return;
        }
        check_type(node, value, path, out);
        if let Some(rules) = &node.rules {
            self.combinations(rules, value, path, depth, out);
            match value {
                Value::String(text) => check_text(rules, value, text, path, out),
                Value::Number(number) => check_number(node.kind, rules, number, path, out),
                _ => {}
            }
            check_enum(rules, value, path, out);
        } else if node.kind == Some(Type::Integer) {
            check_integer(None, value, path, out);
        }
        match value {
            Value::Array(items) => self.array(node, items, old, path, depth, out),
            Value::Object(_) => self.object(node, value, old, path, depth, out),
            _ => {}
        }
    }

    fn array(
        &self,
        node: &SchemaNode,
        items: &[Value],
        old: Option<&Value>,
        path: &str,
        depth: usize,
        out: &mut Vec<Cause>,
    ) {
        if let Some(child) = node.items {
            let old = old.and_then(Value::as_array);
            for (index, item) in items.iter().enumerate() {
                let before = old.and_then(|old| self.counterpart(node, old, item));
                self.value(child, item, before, &format!("{path}[{index}]"), depth + 1, out);
            }
        }
        if let Some(rules) = &node.rules {
            let count = items.len() as u64;
            if let Some(max) = rules.max_items.filter(|max| count > *max) {
                out.push(too_many(path, count, max));
            }
            if let Some(min) = rules.min_items.filter(|min| count < *min) {
                let text = format!("{path} in body should have at least {min} items");
                out.push(Cause::invalid(path, &Value::from(count), &text));
            }
        }
        list::duplicates(self, node, items, path, out);
    }

    /// The old item that corresponds to `item`, in lists whose items have an identity.
    fn counterpart<'a>(
        &self,
        node: &SchemaNode,
        old: &'a [Value],
        item: &Value,
    ) -> Option<&'a Value> {
        if node.list_type != ListType::Map {
            return None;
        }
        let key = list::item_key(self, node, item)?;
        old.iter().find(|before| list::item_key(self, node, before).as_ref() == Some(&key))
    }

    fn object(
        &self,
        node: &SchemaNode,
        value: &Value,
        old: Option<&Value>,
        path: &str,
        depth: usize,
        out: &mut Vec<Cause>,
    ) {
        let Some(fields) = value.as_object() else {
            return;
        };
        if let Some(rules) = &node.rules {
            let count = fields.len() as u64;
            if let Some(max) = rules.max_properties.filter(|max| count > *max) {
                out.push(too_many(path, count, max));
            }
            if let Some(min) = rules.min_properties.filter(|min| count < *min) {
                let text = format!("{path} in body should have at least {min} properties");
                out.push(Cause::invalid(path, &Value::from(count), &text));
            }
        }
        for (key, child) in fields {
            let id = match (node.property(key), node.additional) {
                (Some(id), _) | (None, Additional::Schema(id)) => id,
                _ => continue,
            };
            let before = old.and_then(|old| old.get(key));
            self.value(id, child, before, &join(path, key), depth + 1, out);
        }
        let required =
            node.rules.iter().flat_map(|rules| rules.required.iter()).map(|name| &**name);
        for name in required.filter(|name| !fields.contains_key(*name)) {
            out.push(Cause::required(join(path, name), ""));
        }
        if node.embedded {
            for name in ["apiVersion", "kind"] {
                let given = fields.get(name).and_then(Value::as_str).is_some_and(|s| !s.is_empty());
                let declared = node
                    .rules
                    .as_ref()
                    .is_some_and(|rules| rules.required.iter().any(|required| &**required == name));
                if !given && (!declared || fields.contains_key(name)) {
                    out.push(Cause::required(join(path, name), ""));
                }
            }
        }
    }

    fn combinations(
        &self,
        rules: &ValueRules,
        value: &Value,
        path: &str,
        depth: usize,
        out: &mut Vec<Cause>,
    ) {
        let run = |id: &NodeId| {
            let mut found = Vec::new();
            self.value(*id, value, None, path, depth + 1, &mut found);
            found
        };
        if !rules.any_of.is_empty() {
            let mut results: Vec<_> = rules.any_of.iter().map(run).collect();
            if results.iter().all(|found| !found.is_empty()) {
                out.push(bodyless(format!("{path:?} must validate at least one schema (anyOf)")));
                out.append(&mut results[self.nearest(&rules.any_of, value)]);
            }
        }
        if !rules.one_of.is_empty() {
            let mut results: Vec<_> = rules.one_of.iter().map(run).collect();
            let valid = results.iter().filter(|found| found.is_empty()).count();
            if valid != 1 {
                let text = format!("{path:?} must validate one and only one schema (oneOf).");
                let detail = match valid {
                    0 => "Found none valid".to_owned(),
                    many => format!("Found {many} valid alternatives"),
                };
                out.push(bodyless(format!("{text} {detail}")));
                if valid == 0 {
                    out.append(&mut results[self.nearest(&rules.one_of, value)]);
                }
            }
        }
        if !rules.all_of.is_empty() {
            let mut results: Vec<_> = rules.all_of.iter().map(run).collect();
            let valid = results.iter().filter(|found| found.is_empty()).count();
            if valid < results.len() {
                let detail = if valid == 0 { ". None validated" } else { "" };
                out.push(bodyless(format!(
                    "{path:?} must validate all the schemas (allOf){detail}"
                )));
                results.iter_mut().for_each(|found| out.append(found));
            }
        }
        if rules.not.iter().any(|id| run(id).is_empty()) {
            out.push(bodyless(format!("{path:?} must not validate the schema (not)")));
        }
    }

    /// The alternative whose violations are reported when all fail: the first of those that cover
    /// most of `value`. The number of violations does not matter.
    fn nearest(&self, alternatives: &[NodeId], value: &Value) -> usize {
        let covered = alternatives.iter().map(|id| self.covered_parts(*id, value));
        let (index, _) = covered.enumerate().fold((0, 0), |best, (index, covered)| {
            if covered > best.1 { (index, covered) } else { best }
        });
        index
    }

    /// The number of parts of `value` that a schema covers.
    fn covered_parts(&self, id: NodeId, value: &Value) -> usize {
        let node = self.node(id);
        let below: usize = match value {
            Value::Object(fields) => fields
                .iter()
                .filter_map(|(key, child)| Some(self.covered_parts(node.property(key)?, child)))
                .sum(),
            Value::Array(items) => node
                .items
                .map_or(0, |id| items.iter().map(|item| self.covered_parts(id, item)).sum()),
            _ => 0,
        };
        1 + below
    }
}

fn stops_rules(cause: &Cause) -> bool {
    matches!(
        cause.reason.as_str(),
        "FieldValueNotSupported"
            | "FieldValueRequired"
            | "FieldValueTooLong"
            | "FieldValueTooMany"
            | "FieldValueTypeInvalid"
    )
}

/// A violation that upstream reports without a field and with an empty value.
fn bodyless(text: String) -> Cause {
    Cause::invalid(NO_FIELD, &Value::from(""), &text)
}

fn too_many(path: &str, count: u64, max: u64) -> Cause {
    let items = if max == 1 { "item" } else { "items" };
    let text = format!("Too many: {count}: must have at most {max} {items}");
    Cause::new("FieldValueTooMany", path, text)
}

fn check_type(node: &SchemaNode, value: &Value, path: &str, out: &mut Vec<Cause>) {
    let actual = type_name(value);
    let (fits, expected) = match node.kind {
        Some(kind) => {
            let fits = match (kind, value) {
                (_, Value::Null) => false,
                (Type::Integer, Value::Number(number)) => as_integer(number).is_some(),
                (Type::Number, Value::Number(_)) => true,
                (kind, _) => kind.name() == actual,
            };
            (fits, kind.name())
        }
        None if node.int_or_string => {
            let integer = value.as_number().is_some_and(|number| as_integer(number).is_some());
            (integer || value.is_string(), "integer,string")
        }
        None => (true, ""),
    };
    if !fits {
        let text = format!("{path} in body must be of type {expected}: \"{actual}\"");
        out.push(Cause::type_invalid(path, &Value::from(actual), &text));
    }
}

fn check_text(rules: &ValueRules, value: &Value, text: &str, path: &str, out: &mut Vec<Cause>) {
    // Only the first violation of these is reported.
    let length = || text.chars().count() as u64;
    if let Some(max) = rules.max_length.filter(|max| length() > *max) {
        out.push(Cause::too_long(path, max as usize));
    } else if let Some(min) = rules.min_length.filter(|min| length() < *min) {
        let text = format!("{path} in body should be at least {min} chars long");
        out.push(Cause::invalid(path, value, &text));
    } else if let Some((pattern, regex)) = &rules.pattern
        && !regex.is_match(text)
    {
        let text = format!("{path} in body should match '{pattern}'");
        out.push(Cause::invalid(path, value, &text));
    }
    if let Some(format) = &rules.format
        && format::matches(format, text) == Some(false)
    {
        let text = format!("{path} in body must be of type {format}: {value}");
        out.push(Cause::type_invalid(path, value, &text));
    }
}

fn check_integer(format: Option<&str>, value: &Value, path: &str, out: &mut Vec<Cause>) {
    let Some(number) = value.as_number() else {
        return;
    };
    let in_range = match (as_integer(number), format) {
        (None, _) => false,
        (Some(integer), Some("int32")) => i32::try_from(integer).is_ok(),
        (Some(integer), Some("uint32")) => u32::try_from(integer).is_ok(),
        (Some(integer), Some("uint64")) => integer >= 0,
        _ => true,
    };
    if !in_range {
        let kind = match format {
            Some(format) => format!("integer with format {format}"),
            None => "integer (default format)".to_owned(),
        };
        out.push(bodyless(format!("Checked value must be of type {kind} in {path}")));
    }
}

fn check_number(
    kind: Option<Type>,
    rules: &ValueRules,
    number: &Number,
    path: &str,
    out: &mut Vec<Cause>,
) {
    let value = Value::Number(number.clone());
    if kind == Some(Type::Integer) {
        check_integer(rules.format.as_deref(), &value, path, out);
    }
    if let Some(bound) = &rules.maximum {
        let order = compare(number, &bound.limit);
        if order == Ordering::Greater || bound.exclusive && order == Ordering::Equal {
            let relation = if bound.exclusive { "less than" } else { "less than or equal to" };
            let text = format!("{path} in body should be {relation} {}", bound.limit);
            out.push(Cause::invalid(path, &value, &text));
        }
    }
    if let Some(bound) = &rules.minimum {
        let order = compare(number, &bound.limit);
        if order == Ordering::Less || bound.exclusive && order == Ordering::Equal {
            let relation =
                if bound.exclusive { "greater than" } else { "greater than or equal to" };
            let text = format!("{path} in body should be {relation} {}", bound.limit);
            out.push(Cause::invalid(path, &value, &text));
        }
    }
    if let Some(factor) = rules.multiple_of.filter(|factor| *factor > 0.0) {
        let quotient = number.as_f64().unwrap_or(f64::NAN) / factor;
        if quotient.fract() != 0.0 {
            let text = format!("{path} in body should be a multiple of {factor}");
            out.push(Cause::invalid(path, &value, &text));
        }
    }
}

fn compare(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let float = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
            float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal)
        }
    }
}

fn check_enum(rules: &ValueRules, value: &Value, path: &str, out: &mut Vec<Cause>) {
    let same = |allowed: &Value| match (allowed, value) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Ordering::Equal,
        _ => allowed == value,
    };
    if rules.one_of_values.is_empty() || rules.one_of_values.iter().any(same) {
        return;
    }
    let names: Vec<String> = rules
        .one_of_values
        .iter()
        .map(|allowed| allowed.as_str().map_or_else(|| allowed.to_string(), str::to_owned))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    out.push(Cause::not_supported(path, value, &names));
}
