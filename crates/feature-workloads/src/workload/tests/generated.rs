//! The laws of the mapping over generated objects: the tables say what there is, so that a field
//! that is added to them is tested too.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::test_runner::RngAlgorithm;
use rest_view::{Field, FieldLocation, FieldType};
use serde_json::{Map, Value, json};

use crate::workload::kind::WorkloadKind;
use crate::workload::lens::Lens;
use crate::workload::types::{POD_SPEC, Types};
use crate::workload::{flat, path};

static TYPES: LazyLock<Types> = LazyLock::new(Types::read);
/// Nested types within nested types.
const DEPTH_MAX: usize = 7;

/// Stored values of a type, with some that the view does not know.
fn stored_of(id: &str, depth: usize) -> BoxedStrategy<Value> {
    let fields = TYPES.fields(id).unwrap_or_default();
    let parts: Vec<_> = fields.iter().filter_map(|field| part(field, depth)).collect();
    let unknown = prop::option::weighted(0.3, json_value());
    let particular = particular(id, depth);
    (parts, unknown, particular)
        .prop_map(|(parts, unknown, particular)| {
            let mut stored = Value::Object(Map::new());
            for (way, value) in parts.into_iter().flatten() {
                merge(&mut stored, &way, value);
            }
            if let Value::Object(more) = particular {
                for (key, value) in more {
                    merge(&mut stored, &[key], value);
                }
            }
            if let Some(value) = unknown {
                merge(&mut stored, &["unknownHere".to_owned()], value);
            }
            stored
        })
        .boxed()
}

/// Lays a value into another; parts of one object come from several fields.
fn merge(stored: &mut Value, way: &[String], value: Value) {
    match (path::read(stored, way).cloned(), value) {
        (Some(Value::Object(mut there)), Value::Object(new)) => {
            there.extend(new);
            path::write(stored, way, there.into());
        }
        (_, value) if way.is_empty() && !value.is_object() => {}
        (_, value) => path::write(stored, way, value),
    }
}

type Part = Option<(Vec<String>, Value)>;

fn part(field: &Field, depth: usize) -> Option<BoxedStrategy<Part>> {
    let Some(FieldLocation::Path(way)) = &field.location else { return None };
    let way: Vec<String> = way.iter().filter(|key| !key.is_empty()).cloned().collect();
    let value = value_of(field, &field.kind, depth)?;
    let present = if depth < 2 { 0.6 } else { 0.3 };
    Some(prop::option::weighted(present, value.prop_map(move |v| (way.clone(), v))).boxed())
}

fn value_of(field: &Field, kind: &FieldType, depth: usize) -> Option<BoxedStrategy<Value>> {
    let text = || prop_oneof!["[a-z]{1,6}", "[a-z]{1,3} [A-Z/.-]{1,3}", Just("true".to_owned())];
    Some(match kind {
        FieldType::Struct(_) | FieldType::Array(_) if depth >= DEPTH_MAX => return None,
        FieldType::Struct(id) => stored_of(id, depth + 1),
        FieldType::Array(of) => {
            let item = value_of(field, of, depth + 1)?;
            prop::collection::vec(item, 0..3).prop_map(Value::Array).boxed()
        }
        FieldType::Map(_) => {
            prop::collection::btree_map("[a-z/.]{1,5}", text(), 0..3).prop_map(|m| json!(m)).boxed()
        }
        FieldType::Boolean => any::<bool>().prop_map(Value::from).boxed(),
        FieldType::Int => (0..70_000i64).prop_map(Value::from).boxed(),
        FieldType::IntOrString => {
            prop_oneof![(0..9i64).prop_map(Value::from), Just(json!("25%"))].boxed()
        }
        _ if !field.options.is_empty() => {
            prop::sample::select(field.options.clone()).prop_map(Value::from).boxed()
        }
        FieldType::Date => Just(json!("2024-05-06T07:08:09Z")).boxed(),
        _ => text().prop_map(Value::from).boxed(),
    })
}

fn json_value() -> BoxedStrategy<Value> {
    prop_oneof![
        Just(json!({})),
        Just(json!({"a": [1, {"b": null}]})),
        Just(json!([1, "x"])),
        "[a-z]{0,3}".prop_map(Value::from),
    ]
    .boxed()
}

/// Parts that no location covers.
fn particular(id: &str, depth: usize) -> BoxedStrategy<Value> {
    match id {
        _ if depth > DEPTH_MAX => Just(json!({})).boxed(),
        "container" => {
            (prop::collection::vec(variable(), 0..4), prop::collection::vec(whole(), 0..3))
                .prop_map(|(env, from)| json!({"env": env, "envFrom": from}))
                .boxed()
        }
        "probe" | "handler" => handler(),
        "podSpec" => {
            let list = || prop::collection::vec(stored_of("container", depth + 1), 0..3);
            (list(), prop::option::of(list()), scheduling())
                .prop_map(|(containers, init, mut spec)| {
                    spec["containers"] = containers.into();
                    if let Some(init) = init {
                        spec["initContainers"] = init.into();
                    }
                    spec
                })
                .boxed()
        }
        _ => Just(json!({})).boxed(),
    }
}

fn variable() -> BoxedStrategy<Value> {
    let name = "[A-C]";
    let from = prop_oneof![
        Just(json!({"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}})),
        Just(json!({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}})),
        any::<Option<bool>>()
            .prop_map(|o| json!({"configMapKeyRef": {"name": "c", "key": "k", "optional": o}})),
        Just(json!({"secretKeyRef": {"name": "s", "key": "k", "optional": true}})),
        Just(json!({"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}})),
    ];
    prop_oneof![
        (name, "[a-z]{0,3}").prop_map(|(name, value)| json!({"name": name, "value": value})),
        name.prop_map(|name| json!({"name": name})),
        (name, from).prop_map(|(name, from)| json!({"name": name, "valueFrom": from})),
    ]
    .boxed()
}

fn whole() -> BoxedStrategy<Value> {
    prop::sample::select(vec![
        json!({"prefix": "P_", "secretRef": {"name": "s"}}),
        json!({"configMapRef": {"name": "c", "optional": true}}),
        json!({"prefix": "", "configMapRef": {"name": "c", "optional": false}}),
        json!({"otherRef": {"name": "x"}}),
    ])
    .boxed()
}

fn handler() -> BoxedStrategy<Value> {
    prop::sample::select(vec![
        json!({}),
        json!({"exec": {"command": ["a", "b"]}}),
        json!({"exec": {}}),
        json!({"httpGet": {"port": 80, "path": "/", "scheme": "HTTP", "x": 1}}),
        json!({"httpGet": {"port": "http", "httpHeaders": [{"name": "a", "value": "b"}]}}),
        json!({"tcpSocket": {"port": 80, "host": "h"}}),
        json!({"sleep": {"seconds": 3}}),
    ])
    .boxed()
}

fn scheduling() -> BoxedStrategy<Value> {
    let expression = || {
        prop::sample::select(vec![
            json!({"key": "disk", "operator": "In", "values": ["ssd"]}),
            json!({"key": "zone", "operator": "NotIn", "values": ["a", "b"]}),
            json!({"key": "gpu", "operator": "Exists"}),
            json!({"key": "old", "operator": "DoesNotExist"}),
            json!({"key": "cores", "operator": "Gt", "values": ["3"]}),
            json!({"key": "odd", "operator": "In", "values": []}),
        ])
    };
    let term = move || {
        let fields = json!([{"key": "metadata.name", "operator": "In", "values": ["n"]}]);
        (prop::collection::vec(expression(), 0..3), any::<bool>()).prop_map(
            move |(all, by_field)| {
                let mut term = json!({"matchExpressions": all});
                if by_field {
                    term["matchFields"] = fields.clone();
                }
                term
            },
        )
    };
    let weighted = (1..100, term()).prop_map(|(w, t)| json!({"weight": w, "preference": t}));
    let labels = prop::collection::btree_map("[a-c]", "[x-z]{0,1}", 0..3);
    (
        prop::option::of(labels),
        prop::option::of(prop::collection::vec(term(), 0..3)),
        prop::option::of(prop::collection::vec(weighted, 0..3)),
        any::<bool>(),
    )
        .prop_map(|(labels, required, preferred, with_pods)| {
            let mut spec = json!({});
            if let Some(labels) = labels {
                spec["nodeSelector"] = json!(labels);
            }
            if let Some(terms) = required {
                let way = "requiredDuringSchedulingIgnoredDuringExecution";
                spec["affinity"]["nodeAffinity"][way] = json!({"nodeSelectorTerms": terms});
            }
            if let Some(terms) = preferred {
                let way = "preferredDuringSchedulingIgnoredDuringExecution";
                spec["affinity"]["nodeAffinity"][way] = terms.into();
            }
            if with_pods {
                spec["affinity"]["podAntiAffinity"] = json!({"x": [1]});
            }
            spec
        })
        .boxed()
}

fn objects() -> impl Strategy<Value = (WorkloadKind, Value)> {
    prop::sample::select(WorkloadKind::ALL.to_vec()).prop_flat_map(|kind| {
        let template = match kind {
            WorkloadKind::Pod => Just(json!({})).boxed(),
            _ => prop::sample::select(vec![
                json!({}),
                json!({"labels": {"a": "b"}, "annotations": {"x": "y"}}),
                json!({"annotations": {"field.cattle.io/ports":
                    "[[{\"name\":\"a\",\"kind\":\"NodePort\",\"sourcePort\":30000}],[]]"}}),
                json!({"annotations": {"field.cattle.io/ports": "no json",
                    "field.cattle.io/workloadMetrics": "[{\"port\":80}]"}}),
            ])
            .boxed(),
        };
        (stored_of(kind.id(), 0), stored_of(POD_SPEC, 1), template).prop_map(
            move |(mut object, spec, template)| {
                let way: Vec<String> = kind.pod_spec().iter().map(|&k| k.to_owned()).collect();
                merge(&mut object, &way, spec);
                if kind != WorkloadKind::Pod {
                    let mut way = way;
                    way.pop();
                    way.push("metadata".to_owned());
                    path::write(&mut object, &way, template);
                }
                let resource = kind.resource();
                object["apiVersion"] = resource.api_version().into();
                object["kind"] = resource.kind.into();
                object["metadata"] = json!({"name": "web", "namespace": "default", "uid": "u"});
                (kind, object)
            },
        )
    })
}

/// The same cases in each run, and no file of those that failed.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_algorithm: RngAlgorithm::ChaCha,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn what_was_got_and_put_back_changes_nothing((kind, object) in objects()) {
        let flat = flat::get(&TYPES, kind, &object);
        let back = flat::put(&TYPES, kind, &flat).unwrap();
        prop_assert_eq!(&back, &object);
    }

    /// One change somewhere, as a client that sends all it got: nothing else of the object changes.
    #[test]
    fn a_change_touches_nothing_else((kind, object) in objects(), image in "[a-z]{1,5}:new") {
        let mut flat = flat::get(&TYPES, kind, &object);
        // Containers with the same name cannot be distinguished.
        let names: Vec<_> = flat["containers"].as_array().into_iter().flatten()
            .map(|container| container["name"].clone()).collect();
        let is_named = names.iter().enumerate().all(|(at, name)| {
            name.is_string() && !names[..at].contains(name)
        });
        prop_assume!(is_named);
        flat["terminationGracePeriodSeconds"] = 77_777.into();
        let containers = flat["containers"].as_array_mut();
        let first = containers.and_then(|list| list.first_mut());
        let changed = first.map(|container| container["image"] = image.clone().into()).is_some();
        let back = flat::put(&TYPES, kind, &flat).unwrap();

        let mut expected = object.clone();
        let way: Vec<String> = kind.pod_spec().iter().map(|&key| key.to_owned()).collect();
        let spec = path::read(&object, &way).cloned().unwrap_or_default();
        let list = ["containers", "initContainers"].into_iter().find(|key| {
            spec[*key].as_array().is_some_and(|list| !list.is_empty())
        });
        let mut spec = spec;
        spec["terminationGracePeriodSeconds"] = 77_777.into();
        if let (true, Some(list)) = (changed, list) {
            spec[list][0]["image"] = image.into();
        }
        path::write(&mut expected, &way, spec);
        prop_assert_eq!(&back, &expected);
    }

    /// What the view shows of what was put is what was sent, for a new object.
    #[test]
    fn a_new_object_shows_what_was_sent((kind, object) in objects()) {
        let sent = flat::get(&TYPES, kind, &object);
        let mut new = sent.clone();
        new.as_object_mut().unwrap().remove(flat::STORED);
        let Ok(stored) = flat::put(&TYPES, kind, &new) else { return Ok(()) };
        let shown = flat::get(&TYPES, kind, &stored);
        let lens = Lens { types: &TYPES, namespace: "default" };
        let some = |flat: &Value| {
            let keys = ["volumes", "hostNetwork", "dnsConfig", "gids", "scale", "restartPolicy"];
            let said = keys.iter().filter_map(|&key| Some((key.to_owned(), flat.get(key)?.clone())));
            said.collect::<Map<_, _>>()
        };
        for id in [POD_SPEC, kind.id()] {
            prop_assert!(lens.is_same(id, &some(&shown), &some(&sent)), "{}\n{}", shown, sent);
        }
    }

    /// Whatever shape an object or its view has, the mapping does not fail.
    #[test]
    fn no_shape_is_too_odd((kind, object) in objects(), odd in json_value(), seed in any::<u64>()) {
        let mut broken = object;
        break_somewhere(&mut broken, seed, &odd);
        let flat = flat::get(&TYPES, kind, &broken);
        prop_assert_eq!(&flat::put(&TYPES, kind, &flat).unwrap(), &broken);
        let mut sent = flat;
        if let Some(map) = sent.as_object_mut() {
            map.remove(flat::STORED);
        }
        break_somewhere(&mut sent, seed.rotate_left(7), &odd);
        if let Err(error) = flat::put(&TYPES, kind, &sent) {
            prop_assert_eq!(error.status, 422);
            prop_assert!(error.field.is_some(), "{}", error);
        }
    }
}

/// Replaces a value with one of another shape.
fn break_somewhere(value: &mut Value, seed: u64, odd: &Value) {
    let next = seed / 7 + 1;
    match value {
        _ if seed < 40 => *value = odd.clone(),
        Value::Object(map) if !map.is_empty() => {
            let at = usize::try_from(seed % map.len() as u64).unwrap();
            let fixed = ["apiVersion", "kind", "metadata"];
            let Some((_, inner)) =
                map.iter_mut().filter(|(k, _)| !fixed.contains(&k.as_str())).nth(at)
            else {
                return;
            };
            break_somewhere(inner, next, odd);
        }
        Value::Array(items) if !items.is_empty() => {
            let at = usize::try_from(seed % items.len() as u64).unwrap();
            break_somewhere(&mut items[at], next, odd);
        }
        value => *value = odd.clone(),
    }
}
