//! The documented behaviour of server-side apply, on sets without times.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{Single, schema, set};
use crate::{Managers, Schema, Typed, UpdateError, Updater, VersionedSet};

/// An object and its managers through a series of writes.
struct Story {
    schema: &'static Schema,
    live: Value,
    managers: Managers,
}

impl Story {
    fn new() -> Self {
        let schema: &'static Schema = Box::leak(Box::new(schema()));
        Self { schema, live: json!({}), managers: Managers::new() }
    }

    fn typed(&self, value: &Value) -> Typed<'static> {
        Typed::unchecked(Cow::Owned(value.clone()), self.schema)
    }

    fn update(&mut self, manager: &str, new: Value) {
        let updater = Updater { versions: &Single };
        let (live, typed) = (self.typed(&self.live), self.typed(&new));
        let managers = self.managers.clone();
        self.managers = updater.update(&live, &typed, "v1", managers, manager).unwrap();
        self.live = new;
    }

    fn try_apply(
        &mut self,
        manager: &str,
        config: &Value,
        force: bool,
    ) -> Result<bool, UpdateError> {
        let updater = Updater { versions: &Single };
        let (live, config) = (self.typed(&self.live), self.typed(config));
        let managers = self.managers.clone();
        let (object, managers) = updater.apply(&live, &config, "v1", managers, manager, force)?;
        self.managers = managers;
        let changed = object.is_some();
        if let Some(object) = object {
            self.live = object.value.into_owned();
        }
        Ok(changed)
    }

    fn apply(&mut self, manager: &str, config: Value) -> bool {
        self.try_apply(manager, &config, false).unwrap()
    }

    fn conflicts(&mut self, manager: &str, config: Value) -> String {
        self.try_apply(manager, &config, false).unwrap_err().to_string()
    }

    #[track_caller]
    fn owns(&self, manager: &str, fields: Value) {
        let owned = self.managers.get(manager).map(|owner| owner.set.to_value());
        assert_eq!(owned, Some(set(&fields).to_value()), "{manager}");
    }
}

#[test]
fn applied_fields_are_owned_and_omitted_ones_removed() {
    let mut story = Story::new();
    assert!(story.apply("a", json!({"text": "x", "granular": {"k": "1", "l": "1"}})));
    story.owns("a", json!({"f:text": {}, "f:granular": {"f:k": {}, "f:l": {}}}));
    assert!(story.apply("a", json!({"granular": {"k": "1"}})));
    assert_eq!(story.live, json!({"granular": {"k": "1"}}));
    story.owns("a", json!({"f:granular": {"f:k": {}}}));
}

#[test]
fn fields_that_other_managers_own_too_stay() {
    let mut story = Story::new();
    story.apply("a", json!({"text": "x", "set": ["p", "q"]}));
    assert!(!story.apply("b", json!({"text": "x", "set": ["q"]})));
    assert!(story.apply("a", json!({"count": 1})));
    assert_eq!(story.live, json!({"count": 1, "set": ["q"], "text": "x"}));
    story.owns("b", json!({"f:text": {}, "f:set": {"v:\"q\"": {}}}));
}

#[test]
fn a_different_value_is_a_conflict_until_forced() {
    let mut story = Story::new();
    story.apply("a", json!({"text": "x", "items": [{"name": "n", "value": "1"}]}));
    assert_eq!(story.conflicts("b", json!({"text": "y"})), "conflict with \"a\": .text");
    let both = json!({"text": "y", "items": [{"name": "n", "value": "2"}]});
    assert_eq!(
        story.conflicts("b", both.clone()),
        "conflicts with \"a\":\n- .text\n- .items[name=\"n\"].value"
    );
    story.try_apply("b", &both, true).unwrap();
    assert_eq!(story.live, both);
    story.owns("a", json!({"f:items": {"k:{\"name\":\"n\"}": {".": {}, "f:name": {}}}}));
}

#[test]
fn updates_take_the_fields_they_change_and_never_conflict() {
    let mut story = Story::new();
    story.apply("a", json!({"text": "x", "count": 1}));
    story.update("b", json!({"text": "y", "count": 1, "flag": true}));
    story.owns("a", json!({"f:count": {}}));
    story.owns("b", json!({"f:text": {}, "f:flag": {}}));
    assert_eq!(story.conflicts("a", json!({"text": "x"})), "conflict with \"b\": .text");
    story.update("c", json!({"count": 1}));
    story.owns("a", json!({"f:count": {}}));
    assert!(!story.managers.contains_key("b") && !story.managers.contains_key("c"));
}

#[test]
fn fields_that_updaters_add_stay_in_structs_and_are_removed_with_items() {
    let mut story = Story::new();
    story.apply("a", json!({"pair": {"a": "1"}, "items": [{"name": "n"}, {"name": "m"}]}));
    let labelled = json!([{"name": "n", "labels": {"k": "v"}}, {"name": "m"}]);
    story.update("b", json!({"pair": {"a": "1", "b": 2}, "items": labelled}));
    story.apply("a", json!({"items": [{"name": "m"}]}));
    assert_eq!(story.live, json!({"pair": {"b": 2}, "items": [{"name": "m"}]}));
}

#[test]
fn atomic_values_are_removed_and_conflict_as_a_whole() {
    let mut story = Story::new();
    story.apply("a", json!({"whole": {"a": "1"}, "list": [{"name": "l"}]}));
    assert_eq!(
        story.conflicts("b", json!({"whole": {"b": 1}, "list": []})),
        "conflicts with \"a\":\n- .list\n- .whole"
    );
    story.apply("a", json!({"whole": {"b": 2}}));
    assert_eq!(story.live, json!({"whole": {"b": 2}}));
}

#[test]
fn managers_in_removed_versions_are_dropped_by_updates() {
    let mut story = Story::new();
    story.update("a", json!({"text": "x"}));
    let old = VersionedSet {
        set: set(&json!({"f:text": {}})),
        api_version: "v0".to_owned(),
        applied: true,
    };
    story.managers.insert("old".to_owned(), old);
    story.apply("b", json!({"count": 1}));
    assert_eq!(story.managers.keys().collect::<Vec<_>>(), ["a", "b"]);
}
