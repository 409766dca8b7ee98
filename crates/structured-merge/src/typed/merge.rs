//! Merges an apply configuration into a value.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::compare::{Entries, entries, is_empty, items};
use super::{TypeShape, ValidationErrors, Walk, item_element, scalar_error, shape};
use crate::element::PathElement;
use crate::schema::{ListKind, ListSchema, MapSchema, Schema, TypeId};

/// The value `live` merged with `config`. Null when nothing is left.
///
/// # Errors
/// A scalar fits its type on neither side, an item of an associative list has no identity, or
/// `config` contains duplicate items.
pub fn merge(schema: &Schema, live: &Value, config: &Value) -> Result<Value, ValidationErrors> {
    let mut walk = Merge { schema, walk: Walk::default() };
    let merged = walk.value(schema.root(), Some(live), Some(config));
    walk.walk.into_result()?;
    Ok(merged.unwrap_or_default())
}

struct Merge<'s> {
    schema: &'s Schema,
    walk: Walk,
}

impl<'s> Merge<'s> {
    /// The merged value. Where both sides have a value, that of the configuration is used.
    fn value(&mut self, of: TypeId, live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
        let atom = self.schema.atom(of);
        let deciding = if config.is_none() { live } else { config };
        match shape(atom, deciding) {
            TypeShape::Scalar(scalar) => {
                let problem = |value: Option<&Value>| scalar_error(scalar, value?);
                if let (Some(live), Some(config)) = (problem(live), problem(config)) {
                    self.walk.push_error(format!("lhs: {live}"));
                    self.walk.push_error(format!("rhs: {config}"));
                    return None;
                }
                deciding.cloned()
            }
            TypeShape::Map(map) => {
                let (live, config) = (entries(live), entries(config));
                if map.atomic || is_empty(live) && is_empty(config) {
                    return deciding.cloned();
                }
                self.fields(map, live, config)
            }
            TypeShape::List(list) => {
                let (live, config) = (items(live), items(config));
                if list.kind == ListKind::Atomic || live.is_empty() && config.is_empty() {
                    return deciding.cloned();
                }
                self.items(list, live, config)
            }
            TypeShape::Nothing => {
                self.walk.push_error("schema error: invalid atom: inlined");
                None
            }
        }
    }

    fn fields(
        &mut self,
        map: &MapSchema,
        live: Option<&Entries>,
        config: Option<&Entries>,
    ) -> Option<Value> {
        let mut out = Entries::new();
        let names: BTreeSet<&String> =
            live.into_iter().chain(config).flat_map(serde_json::Map::keys).collect();
        for name in names {
            let Some(of) = map.field_type(name) else { continue };
            self.walk.path.push(PathElement::field(name));
            let live = live.and_then(|all| all.get(name));
            let config = config.and_then(|all| all.get(name));
            if let Some(value) = self.value(of, live, config) {
                out.insert(name.clone(), value);
            }
            self.walk.path.pop();
        }
        (!out.is_empty()).then_some(Value::Object(out))
    }

    /// Items that both sides have are in the order of the configuration. The others stay between
    /// them, those of the live list first.
    fn items(&mut self, list: &ListSchema, live: &[Value], config: &[Value]) -> Option<Value> {
        let config = self.index(list, config, false);
        let live = self.index(list, live, true);
        if !self.walk.errors.is_empty() {
            return None;
        }
        let mut shared: VecDeque<&PathElement> =
            config.order.iter().map(|(element, _)| element).filter(|e| live.has(e)).collect();
        let mut out = Vec::new();
        let mut merged = BTreeSet::new();
        let (mut at_live, mut at_config) = (0, 0);
        while at_live < live.order.len() || at_config < config.order.len() {
            if let (Some((left, _)), Some((right, _))) =
                (live.order.get(at_live), config.order.get(at_config))
            {
                if left == right {
                    merged.insert(left);
                    out.extend(self.item(list, left, live.single(left), config.single(left)));
                    at_live += 1;
                    at_config += 1;
                    shared.pop_front();
                    continue;
                }
                if config.has(left) && shared.front().is_some_and(|next| *next != left) {
                    at_live += 1;
                    continue;
                }
            }
            if let Some((left, value)) = live.order.get(at_live) {
                if !config.has(left) {
                    out.extend(self.item(list, left, Some(value), None));
                    at_live += 1;
                    continue;
                }
                if merged.contains(left) {
                    at_live += 1;
                }
            }
            if let Some((right, _)) = config.order.get(at_config) {
                merged.insert(right);
                out.extend(self.item(list, right, live.single(right), config.single(right)));
                at_config += 1;
                if shared.front().is_some_and(|next| *next == right) {
                    shared.pop_front();
                }
            }
        }
        (!out.is_empty()).then_some(Value::Array(out))
    }

    fn item(
        &mut self,
        list: &ListSchema,
        element: &PathElement,
        live: Option<&Value>,
        config: Option<&Value>,
    ) -> Option<Value> {
        self.walk.path.push(element.clone());
        let value = self.value(list.items, live, config);
        self.walk.path.pop();
        value
    }

    fn index<'v>(&mut self, list: &ListSchema, items: &'v [Value], duplicates: bool) -> Index<'v> {
        let mut index = Index { order: Vec::new(), singles: BTreeMap::new() };
        for (at, item) in items.iter().enumerate() {
            let element = match item_element(self.schema, list, item) {
                Ok(element) => element,
                Err(problem) => {
                    self.walk.push_error(format!("element {at}: {problem}"));
                    continue;
                }
            };
            if index.has(&element) {
                if !duplicates {
                    self.walk.push_error(format!("duplicate entries for key {element}"));
                    continue;
                }
                // Duplicate items have no single value to merge with: the configuration replaces
                // them.
                index.singles.insert(element.clone(), &Value::Null);
            } else {
                index.singles.insert(element.clone(), item);
            }
            index.order.push((element, item));
        }
        index
    }
}

/// The items of one side, in order and by identity.
struct Index<'v> {
    order: Vec<(PathElement, &'v Value)>,
    singles: BTreeMap<PathElement, &'v Value>,
}

impl<'v> Index<'v> {
    fn has(&self, element: &PathElement) -> bool {
        self.singles.contains_key(element)
    }
    fn single(&self, element: &PathElement) -> Option<&'v Value> {
        self.singles.get(element).copied()
    }
}
