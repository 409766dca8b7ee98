//! The table against reading everything, over any history.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::ApiVersion;
use crate::collection::listing::page_of;
use crate::collection::query::{Filter, Modifier};
use crate::tests::world::{depot, widget};

const NAMESPACES: [&str; 3] = ["d-1", "d-10", "d-2"];
const NAMES: [&str; 6] = ["a", "ab", "b", "b-c", "c", "z"];
/// When the objects are evaluated; some were created shortly before.
const NOW: &str = "2024-01-01T00:00:04Z";
const LATER: &str = "2024-01-01T00:00:30Z";

#[derive(Clone, Debug)]
enum Step {
    Put(Key, Value),
    Remove(Key),
}

fn key() -> impl Strategy<Value = Key> {
    let (namespace, name) = (prop::sample::select(&NAMESPACES), prop::sample::select(&NAMES));
    (namespace, name).prop_map(|(namespace, name)| Key {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

/// With values that are absent, null, empty, and of another type than the field's.
fn spec() -> impl Strategy<Value = Value> {
    let color = prop::option::of(prop::sample::select(vec![
        json!(null),
        json!(""),
        json!("red"),
        json!("blue"),
        json!("7"),
    ]));
    let weight = prop::option::of(prop::sample::select(vec![json!(5), json!(40), json!(7)]));
    let enabled = prop::option::of(any::<bool>());
    let size = prop::option::of(prop::sample::select(vec!["small", "large"]));
    let name = prop::sample::select(vec!["One", "two", ""]);
    (color, weight, enabled, size, name).prop_map(|(color, weight, enabled, size, name)| {
        let mut spec = json!({"displayName": name});
        for (field, value) in [
            ("color", color),
            ("weight", weight),
            ("enabled", enabled.map(Value::from)),
            ("size", size.map(Value::from)),
        ] {
            if let Some(value) = value {
                spec[field] = value;
            }
        }
        spec
    })
}

fn step() -> impl Strategy<Value = Step> {
    let created = prop::sample::select(vec!["2024-01-01T00:00:00Z", "2023-01-01T00:00:00Z"]);
    let deleted = prop::option::weighted(0.1, Just("2023-12-31T23:57:00Z"));
    let put = (key(), spec(), created, deleted).prop_map(|(key, spec, created, deleted)| {
        let mut object = json!({
            "apiVersion": "example.cattle.io/v1", "kind": "Widget",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": key.name,
                         "creationTimestamp": created},
            "spec": spec,
        });
        object["spec"]["depotName"] = key.namespace.clone().into();
        if let Some(deleted) = deleted {
            object["metadata"]["deletionTimestamp"] = deleted.into();
        }
        Step::Put(key, object)
    });
    prop_oneof![4 => put, 1 => key().prop_map(Step::Remove)]
}

fn query() -> impl Strategy<Value = ListQuery> {
    let fields = ["color", "weight", "enabled", "size", "name", "state", "id", "transitioning"];
    let values = ["red", "blue", "", "7", "40", "true", "false", "small", "One", "active"];
    let modifier =
        prop::sample::select(vec![Modifier::Eq, Modifier::Ne, Modifier::In, Modifier::NotIn]);
    let values = prop::collection::vec(prop::sample::select(values.to_vec()), 1..3);
    let field = prop::sample::select(fields.to_vec());
    let filter = (field.clone(), modifier, values).prop_map(|(field, modifier, values)| Filter {
        field: field.to_owned(),
        modifier,
        values: values.into_iter().map(str::to_owned).collect(),
    });
    let marker = prop::option::of(key().prop_map(|key| format!("{}:{}", key.namespace, key.name)));
    let filters = prop::collection::vec(filter, 0..3);
    let sort = prop::option::of(field.prop_map(str::to_owned));
    (filters, sort, any::<bool>(), 1_usize..6, marker).prop_map(
        |(filters, sort, descending, limit, marker)| ListQuery {
            filters,
            sort,
            descending,
            limit,
            marker,
        },
    )
}

/// What a caller may see.
fn visible() -> impl Strategy<Value = Vec<Visible>> {
    let namespace = prop::sample::select(&NAMESPACES)
        .prop_map(|namespace| Visible::Namespace(namespace.to_owned()));
    let part = prop_oneof![namespace, key().prop_map(Visible::Object)];
    prop_oneof![
        1 => Just(vec![Visible::Everything]),
        2 => prop::collection::vec(part, 0..4),
    ]
}

fn sees(visible: &[Visible], key: &Key) -> bool {
    visible.iter().any(|part| match part {
        Visible::Everything => true,
        Visible::Namespace(namespace) => *namespace == key.namespace,
        Visible::Object(object) => object == key,
    })
}

fn bytes(object: &Value) -> Bytes {
    object.to_string().into()
}

/// Objects by namespace and name.
type ObjectsById = BTreeMap<(String, String), (Key, Value)>;

fn take(state: &mut ObjectsById, step: Step) -> ObjectChange {
    match step {
        Step::Put(key, object) => {
            let bytes = bytes(&object);
            state.insert((key.namespace.clone(), key.name.clone()), (key.clone(), object));
            ObjectChange::Stored(Recorded { key, bytes })
        }
        Step::Remove(key) => {
            state.remove(&(key.namespace.clone(), key.name.clone()));
            ObjectChange::Deleted(key)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_table_returns_the_same_as_a_scan(
        before in prop::collection::vec(step(), 0..12),
        after in prop::collection::vec(step(), 0..24),
        queries in prop::collection::vec((query(), visible()), 1..8),
    ) {
        let registry = Registry::new([ApiVersion::new("g", "v3", "/v3")], [depot(), widget()]);
        let descriptor = registry.find("/v3", "widget").unwrap().clone();
        let mut columns = Columns::new();
        for (query, _) in &queries {
            for filter in &query.filters {
                columns.entry(filter.field.clone()).or_default();
            }
            columns.extend(query.sort.iter().map(|name| (name.clone(), true)));
        }
        let (now, later): (Timestamp, Timestamp) = (NOW.parse().unwrap(), LATER.parse().unwrap());
        let mut state = ObjectsById::new();
        for step in before {
            take(&mut state, step);
        }
        let all = state.values();
        let all = all.map(|(key, object)| Recorded { key: key.clone(), bytes: bytes(object) });
        let mut table = ObjectTable::new(descriptor.clone(), registry.clone(), &columns);
        table.fill(all.collect(), now);
        let changes = after.into_iter().map(|step| take(&mut state, step)).collect();
        table.apply(changes, now);
        prop_assert_eq!(table.len(), state.len());

        let (caller, urls) = (Caller::user("u-alice"), Urls::new("https://host.example"));
        for (at, (query, visible)) in [now, later].into_iter().flat_map(|at| {
            queries.iter().map(move |query| (at, query))
        }) {
            table.settle(at);
            let presentation = Presentation {
                caller: &caller, urls: &urls, registry: &registry, now: at, action_links: false,
            };
            let seen = state.values().filter(|(key, _)| sees(visible, key));
            let seen: Vec<Value> = seen.map(|(_, object)| object.clone()).collect();
            let read = page_of(&presentation, &descriptor, query, &seen);
            let found = table.page(query, visible);
            let objects: Vec<Value> =
                found.objects.iter().map(|object| serde_json::from_slice(object).unwrap()).collect();
            let showing = collection::Showing::new(&presentation, &descriptor);
            let resources = objects.iter().map(|object| showing.resource(object, false)).collect();
            prop_assert_eq!(Page { resources, ..found.page }, read);
        }
    }
}
