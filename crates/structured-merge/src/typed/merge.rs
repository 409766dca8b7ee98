//! Laying a wish over a value.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::compare::{Entries, entries, is_empty, items};
use super::{Problems, Shape, Walk, item_element, scalar_problem, shape};
use crate::element::PathElement;
use crate::schema::{List, ListKind, Map, Schema, TypeId};

pub fn merge(schema: &Schema, live: &Value, wish: &Value) -> Result<Value, Problems> {
    let mut walk = Merge { schema, walk: Walk::default() };
    let merged = walk.value(schema.root(), Some(live), Some(wish));
    walk.walk.into_result()?;
    Ok(merged.unwrap_or_default())
}

struct Merge<'s> {
    schema: &'s Schema,
    walk: Walk,
}

impl<'s> Merge<'s> {
    /// The merged value; the wish decides where both have one.
    fn value(&mut self, of: TypeId, live: Option<&Value>, wish: Option<&Value>) -> Option<Value> {
        let atom = self.schema.atom(of);
        let deciding = if wish.is_none() { live } else { wish };
        match shape(atom, deciding) {
            Shape::Scalar(scalar) => {
                let problem = |value: Option<&Value>| scalar_problem(scalar, value?);
                if let (Some(live), Some(wish)) = (problem(live), problem(wish)) {
                    self.walk.problem(format!("lhs: {live}"));
                    self.walk.problem(format!("rhs: {wish}"));
                    return None;
                }
                deciding.cloned()
            }
            Shape::Map(map) => {
                let (live, wish) = (entries(live), entries(wish));
                if map.atomic || is_empty(live) && is_empty(wish) {
                    return deciding.cloned();
                }
                self.fields(map, live, wish)
            }
            Shape::List(list) => {
                let (live, wish) = (items(live), items(wish));
                if list.kind == ListKind::Atomic || live.is_empty() && wish.is_empty() {
                    return deciding.cloned();
                }
                self.items(list, live, wish)
            }
            Shape::Nothing => {
                self.walk.problem("schema error: invalid atom: inlined");
                None
            }
        }
    }

    fn fields(
        &mut self,
        map: &Map,
        live: Option<&Entries>,
        wish: Option<&Entries>,
    ) -> Option<Value> {
        let mut out = Entries::new();
        let names: BTreeSet<&String> =
            live.into_iter().chain(wish).flat_map(serde_json::Map::keys).collect();
        for name in names {
            let Some(of) = map.field_type(name) else { continue };
            self.walk.path.push(PathElement::field(name));
            let live = live.and_then(|all| all.get(name));
            let wish = wish.and_then(|all| all.get(name));
            if let Some(value) = self.value(of, live, wish) {
                out.insert(name.clone(), value);
            }
            self.walk.path.pop();
        }
        (!out.is_empty()).then_some(Value::Object(out))
    }

    /// Items that both sides have stand in the order of the wish; the others keep their place
    /// between them, those of the live list first.
    fn items(&mut self, list: &List, live: &[Value], wish: &[Value]) -> Option<Value> {
        let wish = self.index(list, wish, false);
        let live = self.index(list, live, true);
        if !self.walk.problems.is_empty() {
            return None;
        }
        let mut shared: VecDeque<&PathElement> =
            wish.order.iter().map(|(element, _)| element).filter(|e| live.has(e)).collect();
        let mut out = Vec::new();
        let mut merged = BTreeSet::new();
        let (mut at_live, mut at_wish) = (0, 0);
        while at_live < live.order.len() || at_wish < wish.order.len() {
            if let (Some((mine, _)), Some((theirs, _))) =
                (live.order.get(at_live), wish.order.get(at_wish))
            {
                if mine == theirs {
                    merged.insert(mine);
                    out.extend(self.item(list, mine, live.single(mine), wish.single(mine)));
                    at_live += 1;
                    at_wish += 1;
                    shared.pop_front();
                    continue;
                }
                if wish.has(mine) && shared.front().is_some_and(|next| *next != mine) {
                    at_live += 1;
                    continue;
                }
            }
            if let Some((mine, value)) = live.order.get(at_live) {
                if !wish.has(mine) {
                    out.extend(self.item(list, mine, Some(value), None));
                    at_live += 1;
                    continue;
                }
                if merged.contains(mine) {
                    at_live += 1;
                }
            }
            if let Some((theirs, _)) = wish.order.get(at_wish) {
                merged.insert(theirs);
                out.extend(self.item(list, theirs, live.single(theirs), wish.single(theirs)));
                at_wish += 1;
                if shared.front().is_some_and(|next| *next == theirs) {
                    shared.pop_front();
                }
            }
        }
        (!out.is_empty()).then_some(Value::Array(out))
    }

    fn item(
        &mut self,
        list: &List,
        element: &PathElement,
        live: Option<&Value>,
        wish: Option<&Value>,
    ) -> Option<Value> {
        self.walk.path.push(element.clone());
        let value = self.value(list.items, live, wish);
        self.walk.path.pop();
        value
    }

    fn index<'v>(&mut self, list: &List, items: &'v [Value], duplicates: bool) -> Index<'v> {
        let mut index = Index { order: Vec::new(), singles: BTreeMap::new() };
        for (at, item) in items.iter().enumerate() {
            let element = match item_element(self.schema, list, item) {
                Ok(element) => element,
                Err(problem) => {
                    self.walk.problem(format!("element {at}: {problem}"));
                    continue;
                }
            };
            if index.has(&element) {
                if !duplicates {
                    self.walk.problem(format!("duplicate entries for key {element}"));
                    continue;
                }
                // What stands twice has no one value to merge with: the wish replaces it.
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
