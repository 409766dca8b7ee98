//! Managers in several versions, between which a field is renamed.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{from_model, set};
use crate::{ConvertError, Managers, Schema, Typed, UpdateError, Updater, Versions};

/// Version `v1` has `count`, version `v2` has `replicas`; objects with a count of 9 cannot be
/// converted.
struct Renamed {
    v1: Schema,
    v2: Schema,
}

impl Renamed {
    fn new() -> &'static Self {
        let schema = |count: &str| {
            let text = json!({"type": "string"});
            let properties = json!({
                "apiVersion": text, "text": text, count: {"type": "integer"},
            });
            from_model(json!({"type": "object", "properties": properties}))
        };
        Box::leak(Box::new(Self { v1: schema("count"), v2: schema("replicas") }))
    }

    fn typed(&'static self, object: Value) -> Typed<'static> {
        let schema = if object["apiVersion"] == "v1" { &self.v1 } else { &self.v2 };
        Typed::unchecked(Cow::Owned(object), schema)
    }
}

impl Versions for Renamed {
    fn convert<'a>(&'a self, object: &Typed<'a>, version: &str) -> Result<Typed<'a>, ConvertError> {
        let (schema, before, after) = match version {
            "v1" => (&self.v1, "replicas", "count"),
            "v2" => (&self.v2, "count", "replicas"),
            _ => return Err(ConvertError::MissingVersion(version.to_owned())),
        };
        let mut value = object.value.clone().into_owned();
        if value[before] == 9 {
            return Err(ConvertError::Failed("rather not".to_owned()));
        }
        value["apiVersion"] = version.into();
        let fields = value.as_object_mut().unwrap();
        if let Some(count) = fields.remove(before) {
            fields.insert(after.to_owned(), count);
        }
        Ok(Typed::unchecked(Cow::Owned(value), schema))
    }
}

fn applied(
    versions: &'static Renamed,
    live: &Value,
    config: Value,
    managers: &Managers,
    manager: &str,
) -> Result<(Option<Value>, Managers), UpdateError> {
    let updater = Updater { versions };
    let version = config["apiVersion"].as_str().unwrap().to_owned();
    let (live, config) = (versions.typed(live.clone()), versions.typed(config));
    let live = versions.convert(&live, &version).unwrap();
    let managers = managers.clone();
    let (object, managers) = updater.apply(&live, &config, &version, managers, manager, false)?;
    Ok((object.map(|object| object.value.into_owned()), managers))
}

#[test]
fn fields_are_shared_and_conflict_under_their_name_in_each_version() {
    let versions = Renamed::new();
    let config = json!({"apiVersion": "v2", "replicas": 2, "text": "a"});
    let (live, managers) =
        applied(versions, &json!({"apiVersion": "v2"}), config, &Managers::new(), "a").unwrap();
    let live = live.unwrap();
    let error = applied(versions, &live, json!({"apiVersion": "v1", "count": 3}), &managers, "b");
    assert_eq!(error.unwrap_err().to_string(), "conflict with \"a\": .replicas");
    let shared = json!({"apiVersion": "v1", "count": 2});
    let (object, managers) = applied(versions, &live, shared, &managers, "b").unwrap();
    assert_eq!((object, managers.len()), (None, 2));
    // The first manager changes to the other version. Fields that it leaves out are removed, except
    // the shared one.
    let config = json!({"apiVersion": "v1"});
    let (object, managers) = applied(versions, &live, config, &managers, "a").unwrap();
    assert_eq!(object, Some(json!({"apiVersion": "v1", "count": 2})));
    assert_eq!(managers["b"].set, set(&json!({"f:apiVersion": {}, "f:count": {}})));
}

#[test]
fn managers_in_removed_versions_are_dropped() {
    let versions = Renamed::new();
    let config = json!({"apiVersion": "v1", "text": "a"});
    let live = json!({"apiVersion": "v1"});
    let (live, mut managers) = applied(versions, &live, config, &Managers::new(), "a").unwrap();
    managers.get_mut("a").unwrap().api_version = "v0".to_owned();
    let config = json!({"apiVersion": "v1", "text": "b"});
    let (object, managers) = applied(versions, &live.unwrap(), config, &managers, "b").unwrap();
    assert_eq!(object.unwrap()["text"], "b");
    assert_eq!(managers.keys().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_failed_conversion_names_its_purpose() {
    let versions = Renamed::new();
    let config = json!({"apiVersion": "v2", "replicas": 2});
    let (live, managers) =
        applied(versions, &json!({"apiVersion": "v2"}), config, &Managers::new(), "a").unwrap();
    let config = json!({"apiVersion": "v1", "count": 9});
    let error = applied(versions, &live.unwrap(), config, &managers, "b").unwrap_err();
    assert_eq!(error.to_string(), "failed to convert new object: rather not");
}
