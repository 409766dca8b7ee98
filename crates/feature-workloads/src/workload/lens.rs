//! One mapping in both directions: what the view shows of a stored value ([`Lens::get`]), and the
//! stored value with a changed view put back into it ([`Lens::put`]). Pure, and driven by the
//! locations in the tables.
//!
//! Two laws hold, and tests prove them: putting back what `get` returned changes nothing, and what
//! the view does not know survives. The first holds by construction: wherever a part of the view
//! did not change, the stored part is left as it is. [`particular`] maps what no location can
//! express.

use rest_view::{ApiError, Field, FieldLocation, FieldType};
use serde_json::{Map, Value};

use super::particular;
use super::path;
use super::types::Types;

/// The mapping of types whose objects are in one namespace.
#[derive(Clone, Copy)]
pub struct Lens<'a> {
    pub types: &'a Types,
    /// References inside a namespace are shown with it and stored without.
    pub namespace: &'a str,
}

impl Lens<'_> {
    /// What the view shows of a stored value of the type `id`. Shapes that the type does not have
    /// are shown as they are, or not at all.
    pub fn get(&self, id: &str, stored: &Value) -> Map<String, Value> {
        let mut view = Map::new();
        for field in self.types.fields(id).unwrap_or_default() {
            let shown = match location(field) {
                At::Path(way) => path::read(stored, way).map(|value| self.shown(field, value)),
                At::Among(way) => self.shown_among(field, stored, way),
                At::Json(key) => json_annotation(stored, key).map(|v| self.shown(field, &v)),
                At::Elsewhere => None,
            };
            view.extend(shown.filter(|v| !v.is_null()).map(|v| (field.name.clone(), v)));
        }
        particular::get(self, id, stored, &mut view);
        view
    }

    /// The stored value with `view` put back. `old`: as it is stored; `None` for a new one.
    ///
    /// # Errors
    /// A field of the view has not the form of its type; the error names the field.
    pub fn put(
        &self,
        id: &str,
        old: Option<&Value>,
        view: &Map<String, Value>,
    ) -> Result<Value, ApiError> {
        let before = old.map(|old| self.get(id, old));
        if let (Some(old), Some(before)) = (old, &before)
            && self.is_same(id, before, view)
        {
            return Ok(old.clone());
        }
        let mut stored = match old {
            Some(Value::Object(map)) => Value::Object(map.clone()),
            _ => Value::Object(Map::new()),
        };
        for field in self.types.fields(id).unwrap_or_default() {
            if before.as_ref().is_some_and(|before| self.is_same_field(field, before, view)) {
                continue;
            }
            let new = said(field, view);
            match location(field) {
                _ if !(field.create || field.update) => {}
                At::Path(way) => match (path::read(&stored, way).cloned(), new) {
                    (current, Some(new)) => {
                        let value = self.stored(field, &field.kind, current.as_ref(), new)?;
                        path::write(&mut stored, way, value);
                    }
                    (Some(current), None) if !is_blank(field, &current) => {
                        path::remove(&mut stored, way);
                    }
                    (_, None) => {}
                },
                At::Among(way) => self.put_among(field, &mut stored, way, new)?,
                At::Json(_) | At::Elsewhere => {}
            }
        }
        particular::put(self, id, before.as_ref(), view, &mut stored)?;
        Ok(stored)
    }

    fn shown(&self, field: &Field, value: &Value) -> Value {
        self.shown_as(&field.kind, value)
    }

    fn shown_as(&self, kind: &FieldType, value: &Value) -> Value {
        match (kind, value) {
            (FieldType::Struct(id), Value::Object(_)) if self.types.fields(id).is_some() => {
                self.get(id, value).into()
            }
            (FieldType::Array(of), Value::Array(items)) => {
                items.iter().map(|item| self.shown_as(of, item)).collect()
            }
            _ => value.clone(),
        }
    }

    /// A nested type whose fields are stored among others; nothing when it has none.
    fn shown_among(&self, field: &Field, stored: &Value, way: &[String]) -> Option<Value> {
        let FieldType::Struct(id) = &field.kind else { return None };
        let view = self.get(id, path::read(stored, way)?);
        (!view.is_empty()).then(|| view.into())
    }

    fn put_among(
        &self,
        field: &Field,
        stored: &mut Value,
        way: &[String],
        new: Option<&Value>,
    ) -> Result<(), ApiError> {
        let FieldType::Struct(id) = &field.kind else { return Ok(()) };
        let nothing = Map::new();
        let view = match new {
            Some(Value::Object(view)) => view,
            Some(_) => return Err(wrong(field, &field.kind)),
            None => &nothing,
        };
        let current = path::read(stored, way).cloned();
        if current.is_none() && view.is_empty() {
            return Ok(());
        }
        let value = self.put(id, current.as_ref(), view)?;
        path::write(stored, way, value);
        Ok(())
    }

    /// One value on its way back.
    fn stored(
        &self,
        field: &Field,
        kind: &FieldType,
        old: Option<&Value>,
        new: &Value,
    ) -> Result<Value, ApiError> {
        match (kind, new) {
            (FieldType::Struct(id), Value::Object(view)) => match self.types.fields(id) {
                Some(_) => self.put(id, old, view),
                None => Ok(new.clone()),
            },
            (FieldType::Array(of), Value::Array(items)) => {
                let old = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let partners = self.partners(of, old, items);
                let pairs = items.iter().zip(partners);
                pairs.map(|(item, old)| self.stored(field, of, old, item)).collect()
            }
            (kind, new) if fits(kind, new) => Ok(new.clone()),
            (kind, _) => Err(wrong(field, kind)),
        }
    }

    /// For each new item the stored item that it is a version of: the equal one, else the one with
    /// its name, else, for items without names, the one at its position.
    fn partners<'o>(
        &self,
        kind: &FieldType,
        old: &'o [Value],
        new: &[Value],
    ) -> Vec<Option<&'o Value>> {
        let FieldType::Struct(id) = kind else { return vec![None; new.len()] };
        let mut open: Vec<Option<Map<String, Value>>> =
            old.iter().map(|item| Some(self.get(id, item))).collect();
        let mut found = vec![None; new.len()];
        let name = |item: &Map<String, Value>| {
            item.get("name").filter(|name| name.as_str() != Some("")).cloned()
        };
        for round in 0..3 {
            for (at, item) in new.iter().enumerate() {
                let (None, Value::Object(item)) = (found[at], item) else { continue };
                let partner = open.iter().enumerate().position(|(index, old)| {
                    old.as_ref().is_some_and(|old| match round {
                        0 => self.is_same(id, old, item),
                        1 => name(old).is_some() && name(old) == name(item),
                        _ => index == at && name(old).is_none() && name(item).is_none(),
                    })
                });
                if let Some(index) = partner {
                    open[index] = None;
                    found[at] = Some(&old[index]);
                }
            }
        }
        found
    }

    /// Whether two views say the same. Null, a default, and an empty list or map say nothing.
    pub fn is_same(&self, id: &str, a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
        let fields = self.types.fields(id).unwrap_or_default();
        let mut writable = fields.iter().filter(|field| field.create || field.update);
        writable.all(|field| self.is_same_field(field, a, b))
    }

    fn is_same_field(&self, field: &Field, a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
        match (said(field, a), said(field, b)) {
            (Some(a), Some(b)) => self.is_same_value(&field.kind, a, b),
            (None, None) => true,
            // Fields among others say nothing when each of them says nothing.
            (Some(one), None) | (None, Some(one)) => match (location(field), &field.kind, one) {
                (At::Among(_), FieldType::Struct(id), Value::Object(one)) => {
                    self.is_same(id, one, &Map::new())
                }
                _ => false,
            },
        }
    }

    fn is_same_value(&self, kind: &FieldType, a: &Value, b: &Value) -> bool {
        match (kind, a, b) {
            (FieldType::Struct(id), Value::Object(a), Value::Object(b))
                if self.types.fields(id).is_some() =>
            {
                self.is_same(id, a, b)
            }
            (FieldType::Array(of), Value::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.is_same_value(of, a, b))
            }
            _ => a == b,
        }
    }
}

/// Where a field is stored.
enum At<'a> {
    Path(&'a [String]),
    /// The fields of a nested type are among others in the object at this path.
    Among(&'a [String]),
    /// An annotation of the object, as JSON.
    Json(&'a str),
    /// What the REST view maps itself, or what [`particular`] does.
    Elsewhere,
}

fn location(field: &Field) -> At<'_> {
    match &field.location {
        Some(FieldLocation::Path(way)) => match way.as_slice() {
            // A dot at the end leaves an empty key, a dot alone two.
            [way @ .., last] if last.is_empty() => {
                At::Among(way.strip_suffix(&[String::new()]).unwrap_or(way))
            }
            way => At::Path(way),
        },
        Some(FieldLocation::AnnotationJson(key)) => At::Json(key),
        _ => At::Elsewhere,
    }
}

fn json_annotation(stored: &Value, key: &str) -> Option<Value> {
    let text = path::read_keys(stored, &["metadata", "annotations", key])?.as_str()?;
    serde_json::from_str(text).ok()
}

/// What a view says of a field.
fn said<'v>(field: &Field, view: &'v Map<String, Value>) -> Option<&'v Value> {
    view.get(&field.name).filter(|value| !is_blank(field, value))
}

/// Says nothing: null, the default, or an empty list or map.
fn is_blank(field: &Field, value: &Value) -> bool {
    match (&field.kind, value) {
        (_, Value::Null) => true,
        (FieldType::Array(_), Value::Array(items)) => items.is_empty(),
        (FieldType::Map(_), Value::Object(entries)) => entries.is_empty(),
        (FieldType::Reference(_), Value::String(id)) => id.is_empty(),
        _ => field.default.as_ref() == Some(value),
    }
}

fn fits(kind: &FieldType, value: &Value) -> bool {
    match kind {
        FieldType::Json => true,
        FieldType::Boolean => value.is_boolean(),
        FieldType::Int | FieldType::Float => value.is_number(),
        FieldType::IntOrString => value.is_number() || value.is_string(),
        FieldType::Array(_) | FieldType::Struct(_) => false,
        FieldType::Map(of) => value.as_object().is_some_and(|entries| {
            entries.values().all(|entry| entry.is_null() || fits(of, entry))
        }),
        _ => value.is_string(),
    }
}

/// The refusal of a value that has not the form of its type.
pub fn wrong(field: &Field, kind: &FieldType) -> ApiError {
    let text = format!("field \"{}\" must be of type {kind}", field.name);
    ApiError::invalid_field("InvalidFormat", &field.name, text)
}
