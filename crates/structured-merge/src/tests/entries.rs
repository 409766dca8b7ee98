//! Whole writes, with entries and times.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Single, schema};
use crate::{ApplyError, LAST_APPLIED, ManagedFields, Schema, UPDATE_MANAGERS_MAX, Write};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn write<'a>(schema: &'a Schema, manager: &'a str, second: i64) -> Write<'a, Single> {
    Write {
        versions: &Single,
        schema,
        api_version: "v1",
        subresource: "",
        manager,
        now: at(second),
        compiled: false,
    }
}

fn object(more: Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}});
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

/// The stored object after an update.
fn updated(schema: &Schema, live: Option<&Value>, new: Value, by: &str, second: i64) -> Value {
    let entries = write(schema, by, second).update(live, &new).unwrap();
    let mut stored = new;
    stored["metadata"]["uid"] = "u".into();
    stored["metadata"]["managedFields"] = entries.unwrap_or_default();
    stored
}

fn who(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().unwrap().iter();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or("-").to_owned();
    entries
        .map(|entry| ["operation", "manager", "time"].map(|name| text(entry, name)).join(" "))
        .collect()
}

#[test]
fn a_create_is_tracked_and_server_fields_are_not() {
    let schema = schema();
    let stored = updated(&schema, None, object(json!({"text": "x"})), "", 0);
    assert_eq!(
        stored["metadata"]["managedFields"],
        json!([{
            "manager": "unknown", "operation": "Update", "apiVersion": "v1",
            "time": "1970-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:text": {}},
        }])
    );
}

#[test]
fn applying_the_same_again_changes_nothing() {
    let schema = schema();
    let config = object(json!({"text": "x"}));
    let created = write(&schema, "a", 1).apply(None, &config, false).unwrap();
    let mut live = created.object;
    live["metadata"]["uid"] = "u".into();
    let again = write(&schema, "a", 2).apply(Some(&live), &config, false).unwrap();
    assert!(!again.changed);
    assert_eq!(again.object, live);
    let shared = write(&schema, "b", 3).apply(Some(&live), &config, false).unwrap();
    assert!(!shared.changed);
    assert_eq!(who(&shared.object), ["Apply b -", "Apply a 1970-01-01T00:00:01Z"]);
}

#[test]
fn conflicts_name_manager_version_and_subresource() {
    let schema = schema();
    let live = updated(&schema, None, object(json!({"text": "x", "count": 1})), "kubectl", 1);
    let config = object(json!({"text": "y"}));
    let error = write(&schema, "b", 2).apply(Some(&live), &config, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl\" using v1: .text"
    );
    assert_eq!(
        error.causes(),
        [("conflict with \"kubectl\" using v1".to_owned(), ".text".to_owned())]
    );
    let status = Write { subresource: "status", ..write(&schema, "s", 3) };
    let mut new = live.clone();
    new["text"] = "z".into();
    let entries = status.update(Some(&live), &new).unwrap();
    new["metadata"]["managedFields"] = entries.unwrap();
    let config = object(json!({"text": "y", "count": 2}));
    let error = write(&schema, "b", 4).apply(Some(&new), &config, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"kubectl\" using v1:\n- .count\n\
         conflicts with \"s\" with subresource \"status\" using v1:\n- .text"
    );
}

#[test]
fn a_request_body_may_reset_the_entries_or_omit_them() {
    let schema = schema();
    let live = updated(&schema, None, object(json!({"text": "x"})), "a", 1);
    let body = |entries: Value| {
        let mut body = object(json!({"text": "x", "count": 1}));
        body["metadata"]["managedFields"] = entries;
        body
    };
    for absent in [Value::Null, json!([]), json!([{"manager": "broken"}])] {
        let kept = updated(&schema, Some(&live), body(absent), "b", 2);
        assert_eq!(who(&kept).len(), 2);
    }
    let new = body(json!([{}]));
    assert_eq!(write(&schema, "b", 2).update(Some(&live), &new).unwrap(), None);
    let built_in = Write { compiled: true, ..write(&schema, "b", 2) };
    let new = body(json!([]));
    assert_eq!(built_in.update(Some(&live), &new).unwrap(), None);
    let subresource = Write { subresource: "status", ..write(&schema, "b", 2) };
    let new = body(json!([]));
    assert!(subresource.update(Some(&live), &new).unwrap().is_some());
}

#[test]
fn fields_untracked_before_the_first_apply_get_an_owner() {
    let schema = schema();
    let mut live = object(json!({"text": "x", "count": 1}));
    live["metadata"]["uid"] = "u".into();
    let config = object(json!({"text": "x"}));
    let applied = write(&schema, "a", 5).apply(Some(&live), &config, false).unwrap();
    assert_eq!(
        who(&applied.object),
        ["Apply a -", "Update before-first-apply 1970-01-01T00:00:05Z"]
    );
}

#[test]
fn the_oldest_update_managers_are_merged() {
    let schema = schema();
    let mut live = updated(&schema, None, object(json!({"granular": {"k0": "v"}})), "m0", 0);
    for number in 1..=UPDATE_MANAGERS_MAX {
        let mut new = live.clone();
        new["granular"][format!("k{number}")] = "v".into();
        let second = i64::try_from(number).unwrap();
        live = updated(&schema, Some(&live), new, &format!("m{number}"), second);
    }
    let who = who(&live);
    assert_eq!(who.len(), UPDATE_MANAGERS_MAX);
    assert_eq!(who[0], "Update ancient-changes 1970-01-01T00:00:01Z");
    assert_eq!(who[1], "Update m2 1970-01-01T00:00:02Z");
    let fields = &live["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(*fields, json!({"f:granular": {".": {}, "f:k0": {}, "f:k1": {}}}));
}

#[test]
fn kubectl_takes_over_from_its_client_side_apply() {
    let schema = schema_with_metadata();
    let last = object(json!({"text": "x"})).to_string();
    let annotated = |mut object: Value| {
        object["metadata"]["annotations"] = json!({LAST_APPLIED: last});
        object
    };
    let live = annotated(object(json!({"text": "x"})));
    let live = updated(&schema, None, live, "kubectl-client-side-apply", 1);
    let config = object(json!({"text": "y"}));
    let other = write(&schema, "flux", 2).apply(Some(&live), &config, false);
    assert!(matches!(other, Err(ApplyError::Conflicts(_))));
    let applied = write(&schema, "kubectl", 2).apply(Some(&live), &config, false).unwrap();
    assert_eq!(applied.object["text"], "y");
    let kept = applied.object["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap();
    assert_eq!(kept, format!("{config}\n"));
}

fn schema_with_metadata() -> Schema {
    let text = json!({"type": "string"});
    super::from_model(json!({"type": "object", "properties": {
        "apiVersion": text, "kind": text, "text": text, "metadata": {"type": "object"},
    }}))
}

#[test]
fn entries_that_are_not_valid_are_named() {
    let entry = |more: Value| {
        let mut entry = json!({
            "manager": "a", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {},
        });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ManagedFields::decode(&json!([entry])).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(entry(json!({})), Ok(()));
    let refused = |more| entry(more).unwrap_err();
    assert_eq!(refused(json!({"operation": "Merge"})), "operation must be `Apply` or `Update`");
    assert_eq!(refused(json!({"apiVersion": ""})), "apiVersion must not be empty");
    assert_eq!(refused(json!({"fieldsType": ""})), "missing fieldsType in managed fields entry 0");
    assert_eq!(
        refused(json!({"fieldsType": "V2"})),
        "invalid fieldsType \"V2\" in managed fields entry 0"
    );
    assert!(refused(json!({"time": "noon"})).starts_with("time of managed fields entry 0"));
    assert!(refused(json!({"fieldsV1": 1})).starts_with("fields of managed fields entry 0"));
    let config = json!({"metadata": {"managedFields": []}});
    let error = write(&schema(), "a", 1).apply(None, &config, false).unwrap_err();
    assert_eq!(error.to_string(), "metadata.managedFields must be nil");
}
