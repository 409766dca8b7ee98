//! Stored object ↔ resource fields. Pure, driven by the fields of the descriptor.
//!
//! Only declared fields are shown. So finalizers, resource versions, owner references and managed
//! fields are never shown, and a secret is not shown by accident. In the other direction only
//! declared, writable fields are changed; the rest of the object stays as it is.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::types::descriptor::{CREATOR_ANNOTATION, Descriptor};
use crate::types::field::{Field, FieldLocation, FieldType};
use crate::types::registry::Registry;

/// A label of all objects that are created through the view.
const CREATOR_LABEL: (&str, &str) = ("cattle.io/creator", "norman");
/// Keys of labels and annotations with this text cannot be changed or removed by an update.
const PROTECTED: &str = "cattle.io/";
/// Keys below [`PROTECTED`] that can be changed, but not removed by leaving them out.
const CHANGEABLE: &str = "field.cattle.io/";

/// Fields of a stored object as the view shows them.
///
/// `reveal`: also fields that are shown only in the reply to a create.
pub fn to_view(
    descriptor: &Descriptor,
    registry: &Registry,
    stored: &Value,
    reveal: bool,
) -> Map<String, Value> {
    let mut view = Map::new();
    for field in descriptor.fields.values() {
        if field.kind == FieldType::Password || (field.write_only && !reveal) {
            continue;
        }
        let raw = match field.location_or_computed() {
            FieldLocation::Computed => None,
            location => read(stored, location),
        };
        show(&mut view, field, raw, registry, &descriptor.version);
    }
    let from_annotations = annotation_keys(descriptor);
    if let Some(Value::Object(annotations)) = view.get_mut("annotations") {
        annotations.retain(|key, _| !from_annotations.contains(key.as_str()));
    }
    if descriptor.parent_field.is_some() {
        view.insert("namespaceId".to_owned(), Value::Null);
    }
    for mapper in &descriptor.mappers {
        mapper.to_view(stored, &mut view);
    }
    view
}

/// Inserts one value, with its default, null or companion field.
fn show(
    out: &mut Map<String, Value>,
    field: &Field,
    raw: Option<Value>,
    registry: &Registry,
    version: &str,
) {
    let raw = raw.filter(|value| !value.is_null()).or_else(|| field.default.clone());
    let Some(value) = raw else {
        if matches!(field.kind, FieldType::Reference(_)) {
            out.insert(field.name.clone(), Value::Null);
        }
        return;
    };
    if field.kind == FieldType::Date
        && let Some(at) = value.as_str().and_then(|text| text.parse::<Timestamp>().ok())
    {
        out.insert(format!("{}TS", field.name), at.as_millisecond().into());
    }
    out.insert(field.name.clone(), shown_value(&field.kind, value, registry, version));
}

/// Embedded types show only their declared fields, without secrets, and absent fields by their
/// defaults.
fn shown_value(kind: &FieldType, value: Value, registry: &Registry, version: &str) -> Value {
    match (kind, value) {
        (FieldType::Array(of), Value::Array(items)) => items
            .into_iter()
            .map(|item| shown_value(of, item, registry, version))
            .collect::<Vec<_>>()
            .into(),
        (FieldType::Map(of), Value::Object(entries)) => entries
            .into_iter()
            .map(|(key, entry)| (key, shown_value(of, entry, registry, version)))
            .collect::<Map<_, _>>()
            .into(),
        (FieldType::Struct(id), Value::Object(mut entries)) => {
            let Some(kind) = registry.struct_type(version, id) else { return entries.into() };
            let mut out = Map::new();
            for field in kind.fields.iter().filter(|field| !field.is_secret()) {
                let raw = entries.remove(&field.name);
                // Kubernetes does not store `false` and 0 where they equal the default.
                if raw.is_some() || field.default.is_some() {
                    show(&mut out, field, raw, registry, version);
                }
            }
            out.into()
        }
        (_, value) => value,
    }
}

/// A new object from validated input. Its namespace comes from the parent field, if there is one.
pub fn to_stored(descriptor: &Descriptor, input: &Map<String, Value>, creator: &str) -> Value {
    let mut stored = Value::Object(Map::new());
    if let Some((api_version, kind)) = &descriptor.object_type {
        stored["apiVersion"] = api_version.clone().into();
        stored["kind"] = kind.clone().into();
    }
    stored["metadata"] = Value::Object(Map::new());
    for field in annotations_first(descriptor) {
        if let Some(value) = input.get(&field.name).filter(|_| field.create) {
            write(&mut stored, field.location_or_computed(), value.clone());
        }
    }
    for mapper in &descriptor.mappers {
        mapper.to_stored(input, &mut stored);
    }
    if let Some(parent) = &descriptor.parent_field
        && let Some(id) = input.get(parent).and_then(Value::as_str)
    {
        let namespace = id.rsplit(':').next().unwrap_or_default();
        stored["metadata"]["namespace"] = namespace.into();
    }
    if !stored["metadata"]["name"].is_string() {
        stored["metadata"]["generateName"] = descriptor.name_prefix.clone().into();
    }
    if !creator.is_empty() {
        let location = FieldLocation::Annotation(CREATOR_ANNOTATION.to_owned());
        write(&mut stored, &location, creator.into());
    }
    let (key, value) = CREATOR_LABEL;
    let path = FieldLocation::Path(["metadata", "labels", key].map(str::to_owned).to_vec());
    write(&mut stored, &path, value.into());
    stored
}

/// Merges validated input into a stored object.
///
/// Embedded types are merged, maps and lists are replaced, null removes. With `replace`, writable
/// fields that are not in the input are removed as well. A password that is absent or empty stays
/// unchanged: clients do not see it, and send back what they see.
pub fn merge(
    descriptor: &Descriptor,
    registry: &Registry,
    stored: &mut Value,
    input: &Map<String, Value>,
    replace: bool,
) {
    for field in annotations_first(descriptor).filter(|field| field.update) {
        let location = field.location_or_computed();
        if field.kind == FieldType::Password && says_unchanged(input.get(&field.name)) {
            continue;
        }
        let new = match input.get(&field.name) {
            Some(value) => {
                let mut value = value.clone();
                if let Some(current) = read(stored, location) {
                    let version = &descriptor.version;
                    carry_over_passwords(&field.kind, &current, &mut value, registry, version);
                }
                value
            }
            None if replace && !is_metadata_map(field) => field.default.clone().unwrap_or_default(),
            None => continue,
        };
        if let Some(map) = metadata_map(field) {
            let preserved = annotation_keys(descriptor);
            replace_metadata_map(stored, map, new, &preserved);
            continue;
        }
        let current = if replace { None } else { read(stored, location) };
        let merged = match current {
            Some(current) => merged_value(&field.kind, current, new, registry, &descriptor.version),
            None => new,
        };
        write(stored, location, merged);
    }
    for mapper in &descriptor.mappers {
        mapper.to_stored(input, stored);
    }
}

fn says_unchanged(password: Option<&Value>) -> bool {
    password.is_none_or(|password| password == "")
}

/// Fields that identify an item of a list.
const ITEM_NAMES: [&str; 4] = ["url", "endpoint", "address", "name"];

/// Copies the passwords of `current` into `new` where `new` has none. An item of a list gets those
/// of the one item with the same URL, address or name, so that no password is sent to another host.
fn carry_over_passwords(
    kind: &FieldType,
    current: &Value,
    new: &mut Value,
    registry: &Registry,
    version: &str,
) {
    match (kind, current, new) {
        (FieldType::Struct(id), Value::Object(current), Value::Object(new)) => {
            let declared = registry.struct_type(version, id);
            for field in declared.iter().flat_map(|kind| &kind.fields) {
                let Some(current) = current.get(&field.name) else { continue };
                if field.kind != FieldType::Password {
                    if let Some(new) = new.get_mut(&field.name) {
                        carry_over_passwords(&field.kind, current, new, registry, version);
                    }
                } else if says_unchanged(new.get(&field.name)) {
                    new.insert(field.name.clone(), current.clone());
                }
            }
        }
        (FieldType::Map(of), Value::Object(current), Value::Object(new)) => {
            for (key, new) in new {
                if let Some(current) = current.get(key) {
                    carry_over_passwords(of, current, new, registry, version);
                }
            }
        }
        (FieldType::Array(of), Value::Array(current), Value::Array(new)) => {
            let name_of = |item: &Value| {
                let names = ITEM_NAMES.into_iter();
                let found = names.filter_map(|name| Some((name, item.get(name)?.clone())));
                found.into_iter().find(|(_, value)| value.is_string())
            };
            for new in new {
                let Some(name) = name_of(new) else { continue };
                let mut same = current.iter().filter(|item| name_of(item).as_ref() == Some(&name));
                if let (Some(current), None) = (same.next(), same.next()) {
                    carry_over_passwords(of, current, new, registry, version);
                }
            }
        }
        _ => {}
    }
}

fn merged_value(
    kind: &FieldType,
    current: Value,
    new: Value,
    registry: &Registry,
    version: &str,
) -> Value {
    let (FieldType::Struct(id), Value::Object(mut merged), Value::Object(new)) =
        (kind, current, &new)
    else {
        return new;
    };
    let declared = registry.struct_type(version, id);
    for (key, value) in new {
        let nested = declared.and_then(|kind| kind.field(key)).map(|field| &field.kind);
        let value = match (merged.remove(key), nested) {
            (_, _) if value.is_null() => continue,
            (Some(current), Some(nested)) => {
                merged_value(nested, current, value.clone(), registry, version)
            }
            _ => value.clone(),
        };
        merged.insert(key.clone(), value);
    }
    merged.into()
}

/// The maps first: fields that are stored in annotations must overwrite them.
fn annotations_first(descriptor: &Descriptor) -> impl Iterator<Item = &Field> {
    let fields = descriptor.fields.values();
    let maps = fields.clone().filter(|field| is_metadata_map(field));
    maps.chain(fields.filter(|field| !is_metadata_map(field)))
}

fn is_metadata_map(field: &Field) -> bool {
    metadata_map(field).is_some()
}

/// The map of the metadata of the object that the field is, whatever the view calls it.
fn metadata_map(field: &Field) -> Option<&str> {
    let Some(FieldLocation::Path(path)) = &field.location else { return None };
    match path.as_slice() {
        [metadata, map] if metadata == "metadata" => {
            ["labels", "annotations"].contains(&map.as_str()).then_some(map)
        }
        _ => None,
    }
}

fn annotation_keys(descriptor: &Descriptor) -> BTreeSet<&str> {
    let keys = descriptor.fields.values().filter_map(|field| match &field.location {
        Some(FieldLocation::Annotation(key) | FieldLocation::AnnotationJson(key)) => {
            Some(key.as_str())
        }
        _ => None,
    });
    keys.collect()
}

fn replace_metadata_map(stored: &mut Value, name: &str, new: Value, preserved: &BTreeSet<&str>) {
    let protected = |key: &str| {
        key == CREATOR_ANNOTATION || (key.contains(PROTECTED) && !key.starts_with(CHANGEABLE))
    };
    let stays = |key: &str| key.contains(PROTECTED) || preserved.contains(key);
    let mut merged = match stored["metadata"][name].take() {
        Value::Object(current) => current,
        _ => Map::new(),
    };
    merged.retain(|key, _| stays(key));
    if let Value::Object(new) = new {
        merged.extend(new.into_iter().filter(|(key, value)| !protected(key) && !value.is_null()));
    }
    stored["metadata"][name] = merged.into();
}

/// The value at a location; `None` when absent.
pub(crate) fn read(stored: &Value, location: &FieldLocation) -> Option<Value> {
    match location {
        FieldLocation::Path(path) => {
            let found = path.iter().try_fold(stored, |value, key| value.get(key))?;
            Some(found.clone())
        }
        FieldLocation::Annotation(key) => stored["metadata"]["annotations"].get(key).cloned(),
        FieldLocation::AnnotationJson(key) => {
            serde_json::from_str(stored["metadata"]["annotations"].get(key)?.as_str()?).ok()
        }
        FieldLocation::Computed => None,
    }
}

/// Sets the value at a location and creates the objects on the path; null removes the value.
pub(crate) fn write(stored: &mut Value, location: &FieldLocation, value: Value) {
    let annotation = |key: &str| ["metadata", "annotations", key].map(str::to_owned).to_vec();
    let (path, value) = match location {
        FieldLocation::Path(path) => (path.clone(), value),
        FieldLocation::Annotation(key) => (annotation(key), value),
        FieldLocation::AnnotationJson(key) if value.is_null() => (annotation(key), value),
        FieldLocation::AnnotationJson(key) => (annotation(key), value.to_string().into()),
        FieldLocation::Computed => return,
    };
    let Some((last, way)) = path.split_last() else { return };
    let mut target = stored;
    for key in way {
        if value.is_null() && target.get(key).is_none() {
            return;
        }
        if !target[key.as_str()].is_object() {
            target[key.as_str()] = Value::Object(Map::new());
        }
        target = &mut target[key.as_str()];
    }
    match (target.as_object_mut(), value) {
        (Some(map), Value::Null) => {
            map.remove(last);
        }
        (Some(map), value) => {
            map.insert(last.clone(), value);
        }
        (None, _) => {}
    }
}
