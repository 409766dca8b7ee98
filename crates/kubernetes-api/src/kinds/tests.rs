//! Built-in kinds compared with responses of kube-apiserver 1.36.3: `tests/defaults.json` has
//! objects as sent and as stored, `tests/invalid.json` objects with the causes of their refusal,
//! `tests/cells.json` objects with their table rows.

use std::collections::BTreeSet;

use api_meta::object::ObjectExt;
use api_meta::patch::ListStrategy;
use apiserver::admission::built_in::{accounts, priority, tolerations};
use apiserver::attributes::UserInfo;
use apiserver::strategy::{Operation, Strategy, Write};
use serde_json::{Value, json};

use super::*;

const UID: &str = "6b1d7a3c-7a53-4a3b-8d7e-0c6c6f0f7a11";
const CREATED: &str = "2026-01-01T00:00:00Z";

fn resource(group: &str, plural: &str) -> Resource {
    let mut resources = full_profile(&std::sync::Arc::default());
    let found = resources
        .iter()
        .position(|resource| resource.group == group && resource.plural == plural)
        .unwrap_or_else(|| panic!("no {plural} in {group:?}"));
    resources.swap_remove(found)
}

fn resource_of_kind(object: &Value) -> Resource {
    let mut resources = full_profile(&std::sync::Arc::default());
    let found = resources
        .iter()
        .position(|r| r.kind == object.kind() && r.api_version() == object.api_version())
        .unwrap_or_else(|| panic!("no {} {}", object.api_version(), object.kind()));
    resources.swap_remove(found)
}

/// Runs `work` in the context of a write.
fn with_write<T>(operation: Operation, object: &Value, work: impl FnOnce(&Write<'_>) -> T) -> T {
    let user = UserInfo::new("tester", &[]);
    work(&Write {
        user: &user,
        operation,
        namespace: object.namespace(),
        name: object.name(),
        dry_run: false,
    })
}

/// Does what the handlers do with a new object, up to storage and back.
fn create(resource: &Resource, given: &Value) -> (Value, Vec<api_meta::status::Cause>) {
    let mut object = given.clone();
    let strategy: &dyn Strategy = &*resource.strategy;
    if resource.namespaced {
        object.set_meta("namespace", "default");
    }
    if resource.has_status() && !strategy.keeps_status_on_create() {
        object.as_object_mut().expect("a map").remove("status");
    }
    strategy.default(&mut object);
    if resource.kind == "Pod" {
        admit_pod(&mut object);
    }
    object.set_meta("uid", UID);
    object.set_meta("creationTimestamp", CREATED);
    if resource.rules.generation {
        object.set_meta("generation", 1);
    }
    let copy = object.clone();
    with_write(Operation::Create, &copy, |write| {
        strategy.prepare(write, &mut object, None);
        let mut causes = strategy.validate(write, &object, None);
        if causes.is_empty() {
            let admitted = strategy.admit(write, Some(&mut object), None);
            if let Err(status) = futures::executor::block_on(admitted) {
                causes = status.details.expect("names its causes").causes;
            }
        }
        if strategy.rewrites_on_read() {
            strategy.on_read(&mut object);
        }
        (object, causes)
    })
}

/// What admission adds to a pod in a namespace without special settings.
fn admit_pod(pod: &mut Value) {
    if let Some(spec) = pod["spec"].as_object_mut() {
        accounts::default_account(spec);
        accounts::add_account(spec, &json!({}));
    }
    if pod["spec"].is_object() {
        priority::set_priority(pod, None).expect("recorded pods state no other priority");
    }
    tolerations::preset(pod);
}

/// Removes values that differ from run to run, and changes by upstream's node and volume
/// controllers.
fn comparable(mut object: Value) -> Value {
    for field in ["uid", "creationTimestamp"] {
        object.remove_meta(field);
    }
    match object.kind() {
        "Node" => {
            if let Some(taints) = object["spec"].get_mut("taints").and_then(Value::as_array_mut) {
                taints.retain(|taint| taint["key"] != "node.kubernetes.io/not-ready");
                if taints.is_empty() {
                    object["spec"].as_object_mut().expect("a map").remove("taints");
                }
            }
        }
        "VolumeAttributesClass" => drop(object.remove_meta("finalizers")),
        "PersistentVolume" | "PersistentVolumeClaim" => {
            object.remove_meta("finalizers");
            object["status"].as_object_mut().expect("a map").remove("lastPhaseTransitionTime");
        }
        _ => {}
    }
    let text = object.to_string();
    // Generated names, uids and addresses.
    let mut parts = text.split("kube-api-access-");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("kube-api-access-");
        text.push_str(&part[5..]);
    }
    let mut object: Value = serde_json::from_str(&text).expect("still JSON");
    replace_uids(&mut object);
    object
}

fn replace_uids(value: &mut Value) {
    match value {
        Value::String(text) if text.len() == 36 && text.matches('-').count() == 4 => {
            "uid".clone_into(text);
        }
        Value::String(text) if text.starts_with("10.") && text.matches('.').count() == 3 => {
            let (network, _) = text.split_once('.').expect("has dots");
            *text = network.to_owned();
        }
        Value::Array(items) => items.iter_mut().for_each(replace_uids),
        Value::Object(map) => map.values_mut().for_each(replace_uids),
        _ => {}
    }
}

#[test]
fn a_stored_object_equals_what_upstream_stores() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("tests/defaults.json")).expect("recorded JSON");
    assert!(cases.len() > 40);
    for case in cases {
        let given = &case["given"];
        let (stored, causes) = create(&resource_of_kind(given), given);
        let name = format!("{} {}", given.kind(), given.name());
        assert_eq!(causes, [], "{name}");
        let (own, upstream) = (comparable(stored), comparable(case["stored"].clone()));
        assert_eq!(differences("", &own, &upstream), Vec::<String>::new(), "{name}");
    }
}

/// Paths at which two values differ.
fn differences(path: &str, own: &Value, upstream: &Value) -> Vec<String> {
    match (own, upstream) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let missing = Value::String("(absent)".to_owned());
            keys.into_iter()
                .flat_map(|key| {
                    let (a, b) = (a.get(key).unwrap_or(&missing), b.get(key).unwrap_or(&missing));
                    differences(&format!("{path}.{key}"), a, b)
                })
                .collect()
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .flat_map(|(index, (a, b))| differences(&format!("{path}[{index}]"), a, b))
            .collect(),
        (a, b) if a == b => Vec::new(),
        (a, b) => vec![format!("{path}: own {a}, upstream {b}")],
    }
}

#[test]
fn defaulting_twice_changes_nothing() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("tests/defaults.json")).expect("recorded JSON");
    for case in cases {
        let resource = resource_of_kind(&case["given"]);
        let mut once = case["stored"].clone();
        resource.strategy.default(&mut once);
        let mut twice = once.clone();
        resource.strategy.default(&mut twice);
        assert_eq!(once, twice, "{}", resource.kind);
        if resource.strategy.rewrites_on_read() {
            // Defaults are those of the stored version.
            continue;
        }
        let (once, stored) = (comparable(once), comparable(case["stored"].clone()));
        assert_eq!(differences("", &once, &stored), Vec::<String>::new(), "{}", resource.kind);
    }
}

#[test]
fn texts_of_drivers_stay_as_they_are() {
    let parameters = json!({"fsType": "", "startTime": "2026-01-01T02:00:00+02:00", "a": null});
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "a"}, "provisioner": "p", "parameters": parameters});
    let (mut created, causes) = create(&resource_of_kind(&class), &class);
    assert!(causes.is_empty(), "{causes:?}");
    let kept = json!({"fsType": "", "startTime": "2026-01-01T02:00:00+02:00", "a": ""});
    assert_eq!(created["parameters"].take(), kept);
}

#[test]
fn invalid_objects_are_refused_with_the_causes_of_upstream() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("tests/invalid.json")).expect("recorded JSON");
    assert!(cases.len() > 40);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut failures = Vec::new();
    for case in cases {
        let resource = resource(&text(&case["group"]), &text(&case["plural"]));
        let mut given = case["given"].clone();
        given["apiVersion"] = resource.api_version().into();
        given["kind"] = resource.kind.clone().into();
        let (object, mut causes) = create(&resource, &given);
        causes.extend(api_meta::metadata::validate_name(&object, resource.name_rule));
        let mut own: Vec<String> =
            causes.iter().map(|c| format!("{} {} {}", c.reason, c.field, c.message)).collect();
        own.sort();
        own.dedup();
        let mut upstream: Vec<String> = case["causes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|c| {
                let (reason, message) = (text(&c["reason"]), text(&c["message"]));
                format!("{reason} {} {message}", text(&c["field"]))
            })
            .collect();
        upstream.sort();
        if own != upstream {
            failures.push(json!({"given": given, "own": own, "upstream": upstream}));
        }
    }
    assert!(failures.is_empty(), "{:#}", Value::Array(failures));
}

#[test]
fn lists_merge_by_the_keys_of_their_kind() {
    let key = |group: &str, kind: &str, path: &str| {
        apiserver::kind::merge_keys(group, kind).list(&path.split('.').collect::<Vec<_>>())
    };
    let by = ListStrategy::MergeBy;
    for (group, kind, path, strategy) in [
        ("", "Pod", "spec.containers", by("name")),
        ("apps", "Deployment", "spec.template.spec.containers.ports", by("containerPort")),
        ("batch", "CronJob", "spec.jobTemplate.spec.template.spec.volumes", by("name")),
        ("", "Service", "spec.ports", by("port")),
        ("", "Node", "status.addresses", by("type")),
        ("", "Node", "spec.taints", ListStrategy::Replace),
        ("", "Pod", "spec.tolerations", ListStrategy::Replace),
        ("", "Endpoints", "subsets.ports", ListStrategy::Replace),
        ("", "Pod", "metadata.finalizers", ListStrategy::Set),
        ("", "Namespace", "spec.finalizers", ListStrategy::Replace),
        ("", "ServiceAccount", "secrets", by("name")),
        ("apps", "Deployment", "status.conditions", by("type")),
        ("networking.k8s.io", "NetworkPolicy", "spec.ingress.ports", ListStrategy::Replace),
        ("", "Pod", "spec.containers.volumeMounts", by("mountPath")),
        ("", "Pod", "spec.topologySpreadConstraints", by("topologyKey")),
    ] {
        assert_eq!(key(group, kind, path), strategy, "{kind} {path}");
    }
}

#[test]
fn a_row_equals_what_upstream_prints() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("tests/cells.json")).expect("recorded JSON");
    assert!(cases.len() > 50);
    let mut failures = Vec::new();
    for case in cases {
        let object = &case["object"];
        let resource = resource_of_kind(object);
        let now = case["now"].as_i64().expect("a time");
        let columns: Vec<Value> = resource
            .columns
            .iter()
            .map(|c| json!([c.name, c.kind, c.format, c.priority]))
            .collect();
        assert_eq!(Value::from(columns), case["columns"], "{}", resource.kind);
        let own = Value::from(resource.strategy.cells(object, now));
        if own != case["cells"] {
            let name = format!("{} {}", resource.kind, object.name());
            failures.push(json!({"object": name, "own": own, "upstream": case["cells"]}));
        }
    }
    assert!(failures.is_empty(), "{:#}", Value::Array(failures));
}

#[test]
fn a_field_that_an_object_leaves_out_is_selected_by_its_zero_value() {
    let (mut checked, mut wrong) = (0, Vec::new());
    for resource in full_profile(&std::sync::Arc::default()) {
        let schema =
            apiserver::schemas::builtin_schema(&resource.group, &resource.version, &resource.kind)
                .expect("every kind has a schema");
        for field in &resource.selectable_fields {
            let zero = match schema.type_at(&field.path) {
                Some("boolean") => "false",
                Some("integer" | "number") => "0",
                _ => "",
            };
            checked += 1;
            if field.unset != zero {
                wrong.push(format!("{} {}: {:?}", resource.kind, field.label, field.unset));
            }
        }
    }
    assert!(wrong.is_empty() && checked > 30, "{checked}: {wrong:?}");
}

#[test]
fn bookmarks_of_every_watched_kind_have_their_fields() {
    let table = include_str!("../../../apiserver/src/schemas/unset.txt");
    let rows = table.lines().filter_map(|row| row.rsplit_once(" {").map(|(kind, _)| kind));
    let known: BTreeSet<&str> = rows.collect();
    for resource in full_profile(&std::sync::Arc::default()) {
        let key = format!("{} {}", resource.api_version(), resource.kind);
        assert!(!resource.verbs.contains(&"watch") || known.contains(&*key), "{key}");
    }
}
