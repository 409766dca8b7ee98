//! Tables against lists that read everything.

use proptest::prelude::*;
use rest_view::Key;
use serde_json::json;

use super::*;
use crate::query::Sortable;

struct Object(Value);

impl Sortable for Object {
    fn object(&self) -> &Value {
        &self.0
    }
}

/// An object whose fields depend on the number.
fn object(namespace: usize, name: usize, number: usize) -> Value {
    let phase = ["Running", "Pending", ""][number % 3];
    let mut object = json!({
        "metadata": {"namespace": format!("n{namespace}"), "name": format!("o{name}"),
            "resourceVersion": number.to_string(), "fields": [format!("o{name}"), number % 5],
            "labels": {"app": format!("a{}", number % 3)}},
        "spec": {"images": [format!("i{}", number % 4), "sidecar"]},
        "status": {"phase": phase},
    });
    if number.is_multiple_of(4) {
        object["status"] = Value::Null;
    }
    object
}

const QUERIES: [&str; 14] = [
    "",
    "pagesize=3&page=2",
    "pagesize=100&page=9",
    "limit=2",
    "sort=metadata.fields[1]&limit=4",
    "sort=-metadata.fields[1],status.phase&pagesize=4&page=2",
    "sort=-status.phase&limit=3",
    "filter=status.phase=Run",
    "filter=status.phase!=Run&filter=spec.images=i1,spec.images=i2",
    "filter=spec.images='sidecar'&sort=metadata.labels.app&pagesize=2",
    "labelSelector=app%21%3Da1&limit=2",
    "fieldSelector=metadata.name%3Do1",
    "filter=metadata.cluster.id=c-a&sort=metadata.cluster.name,-metadata.name",
    "filter=nothing=x",
];

fn visible(number: usize) -> Vec<Visible> {
    match number {
        0 => vec![Visible::Everything],
        1 => vec![Visible::Namespace("n1".into())],
        2 => Vec::new(),
        _ => vec![
            Visible::Namespace("n2".into()),
            Visible::Object(Key { namespace: "n0".into(), name: "o3".into() }),
        ],
    }
}

fn is_visible(visible: &[Visible], key: &Key) -> bool {
    visible.iter().any(|part| match part {
        Visible::Everything => true,
        Visible::Namespace(namespace) => *namespace == key.namespace,
        Visible::Object(own) => own == key,
    })
}

/// Objects, number, number of pages and token of a part of a list.
type Part = (Vec<Value>, usize, Option<usize>, Option<String>);

/// The part of a list that reads everything.
fn scanned(all: &[Value], query: &Query, visible: &[Visible], cluster: &Value) -> Part {
    let seen = all.iter().filter(|object| is_visible(visible, &Key::of(object)));
    let selected = seen.filter(|object| query.selects(object).unwrap());
    let rows = selected.map(|object| {
        let mut object = object.clone();
        crate::list::set_cluster(&mut object, cluster);
        Object(object)
    });
    let part = query.select(rows.collect());
    let metadata = |Object(mut object): Object| {
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("cluster");
        }
        object
    };
    (part.rows.into_iter().map(metadata).collect(), part.count, part.pages, part.next)
}

fn indexed(table: &mut KindTable, query: &Query, visible: &[Visible], cluster: &Value) -> Part {
    table.prepare(query);
    assert!(table.is_ready_for(query));
    let head = table.head(query, visible, cluster);
    let part = query.cut(head.found, head.beyond);
    let rows = part.rows.iter().map(PackedRow::unpack).collect();
    (rows, part.count, part.pages, part.next)
}

fn query(text: &str, token: Option<&str>) -> Query {
    let mut pairs = rest_view::urls::query_pairs(text);
    pairs.extend(token.map(|token| ("continue".to_owned(), token.to_owned())));
    Query::parse(&pairs).unwrap()
}

proptest! {
    #[test]
    fn a_table_returns_the_same_as_a_list_that_reads_everything(
        changes in prop::collection::vec((0_usize..3, 0_usize..6, 0_usize..60, any::<bool>()), 1..60),
        text in prop::sample::select(&QUERIES[..]),
        early in any::<bool>(),
        right in 0_usize..4,
        is_fleet in any::<bool>(),
    ) {
        let mut table = KindTable::new(Packing::default());
        // Columns that are there follow the changes.
        if early {
            QUERIES.iter().take(8).for_each(|text| table.prepare(&query(text, None)));
        }
        let mut all: Vec<Value> = Vec::new();
        for (namespace, name, number, is_removed) in changes {
            let object = object(namespace, name, number);
            let key = Key::of(&object);
            all.retain(|other| Key::of(other) != key);
            if is_removed {
                table.remove(&key);
            } else {
                table.set(&object);
                all.push(object);
            }
        }
        let cluster = if is_fleet { json!({"id": "c-a", "name": "north"}) } else { Value::Null };
        let visible = visible(right);
        let mut token = None;
        for _ in 0..20 {
            let query = query(text, token.as_deref());
            let expected = scanned(&all, &query, &visible, &cluster);
            prop_assert_eq!(&indexed(&mut table, &query, &visible, &cluster), &expected);
            token = expected.3;
            if token.is_none() {
                break;
            }
        }
    }
}

#[test]
fn columns_and_orders_are_bounded() {
    let mut table = KindTable::new(Packing::default());
    (0..20).for_each(|name| table.set(&object(0, name, name)));
    for number in 0..100 {
        let own = query(&format!("sort=f{number}&filter=g{number}=x"), None);
        table.prepare(&own);
        assert!(table.is_ready_for(&own));
        assert!(table.columns.len() <= COLUMNS_MAX && table.orders.len() <= ORDERS_MAX);
    }
}

#[test]
fn an_empty_table_needs_no_memory_for_what_was_in_it() {
    let mut table = KindTable::new(Packing::default());
    table.prepare(&query("sort=metadata.name&filter=status.phase=x", None));
    (0..50).for_each(|name| table.set(&object(0, name, name)));
    let full = table.size();
    (0..50).for_each(|name| table.remove(&Key::of(&object(0, name, 0))));
    assert!(table.bytes == 0 && table.size() < full / 5, "{} of {full}", table.size());
}
