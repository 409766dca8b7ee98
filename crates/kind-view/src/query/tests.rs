//! Lists as they are requested, against objects in memory.

use proptest::prelude::*;
use serde_json::json;

use super::*;

impl Sortable for Value {
    fn object(&self) -> &Value {
        self
    }
}

fn query(text: &str) -> Result<Query, ApiError> {
    Query::parse(&rest_view::urls::query_pairs(text))
}

fn pods() -> Vec<Value> {
    [("web", "b", 3, "Running"), ("web", "a", 10, "Pending"), ("data", "a", 2, "Running")]
        .map(|(namespace, name, restarts, phase)| {
            json!({
                "metadata": {"namespace": namespace, "name": name, "fields": [name, restarts]},
                "status": {"phase": phase},
                "spec": {"containers": [{"image": format!("repo/{name}")}, {"image": "sidecar"}]},
            })
        })
        .into()
}

/// `namespace/name` of what the query selects.
fn selected(text: &str) -> Vec<String> {
    names(&query(text).unwrap().select(pods()).rows)
}

fn names(rows: &[Value]) -> Vec<String> {
    let name = |row: &Value| {
        let [_, namespace, name] = row.id();
        format!("{namespace}/{name}")
    };
    rows.iter().map(name).collect()
}

#[test]
fn filters_are_parts_of_values_and_in_quotes_all_of_one() {
    assert_eq!(selected("filter=status.phase=Run"), ["data/a", "web/b"]);
    assert_eq!(selected("filter=status.phase='Run'"), [""; 0]);
    assert_eq!(selected("filter=status.phase!=Run"), ["web/a"]);
    assert_eq!(selected("filter=status.phase=Pend,metadata.namespace=data"), ["data/a", "web/a"]);
    assert_eq!(selected("filter=status.phase=Run&filter=metadata.name=b"), ["web/b"]);
    assert_eq!(selected("filter=spec.containers.image=repo/b"), ["web/b"]);
    assert_eq!(selected("filter=spec.containers.image!=side"), [""; 0]);
    assert_eq!(selected("filter=metadata.fields[1]='10'"), ["web/a"]);
}

#[test]
fn numbers_sort_as_numbers_and_ties_by_name() {
    assert_eq!(selected(""), ["data/a", "web/a", "web/b"]);
    assert_eq!(selected("sort=metadata.fields[1]"), ["data/a", "web/b", "web/a"]);
    assert_eq!(selected("sort=-metadata.fields[1]"), ["web/a", "web/b", "data/a"]);
    assert_eq!(selected("sort=metadata.name,-metadata.namespace"), ["web/a", "data/a", "web/b"]);
    assert_eq!(selected("sort=nothing"), ["data/a", "web/a", "web/b"]);
}

#[test]
fn pages_count_what_the_filters_leave() {
    let page = |text: &str| {
        let selection = query(text).unwrap().select(pods());
        (names(&selection.rows), selection.count, selection.pages)
    };
    assert_eq!(page("pagesize=2"), (vec!["data/a".into(), "web/a".into()], 3, Some(2)));
    assert_eq!(page("pagesize=2&page=2"), (vec!["web/b".into()], 3, Some(2)));
    assert_eq!(page("pagesize=2&page=3"), (vec![], 3, Some(2)));
    assert_eq!(page("pagesize=2&filter=status.phase=Pending").1, 1);
}

#[test]
fn what_cannot_be_read_is_refused_with_the_parameter() {
    for (text, expected) in [
        ("filter=a", "parameter filter \"a\" needs the form field=value"),
        ("filter=..=b", "its field has an empty part"),
        ("filter=a='b", "has no second quote"),
        ("sort=a,,b", "its field \"\" is empty"),
        ("sort=a&sort=b", "may be given once"),
        ("pagesize=0", "must be a number from 1 to 100000"),
        ("page=2", "needs pagesize"),
        ("pagesize=2&limit=1", "not with both"),
        ("continue=%21", "is not a token of this view"),
        ("labelSelector=a==b==c", "parameter labelSelector"),
        ("include=a..b", "has an empty part"),
    ] {
        let error = query(text).unwrap_err();
        assert!(error.status == 400 && error.message.contains(expected), "{text}: {error}");
    }
    let many = format!("filter={}", vec!["a=b"; 65].join(","));
    assert!(query(&many).unwrap_err().message.contains("is more than 64"));
    assert!(query("name=x&removed_null=1&limit=all&resourceVersion=7").is_ok());
}

#[test]
fn a_token_is_good_for_its_own_order_only() {
    let first = query("limit=1&sort=metadata.name").unwrap().select(pods());
    let token = first.next.unwrap();
    assert!(query(&format!("limit=1&sort=metadata.name&continue={token}")).is_ok());
    let other = query(&format!("limit=1&sort=-metadata.name&continue={token}")).unwrap_err();
    assert!(other.message.contains("another order"), "{other}");
}

#[test]
fn objects_that_are_read_one_by_one_are_selected_here() {
    let pod = &json!({"metadata": {"name": "a", "namespace": "web", "labels": {"app": "x"}}});
    for (text, expected) in [
        ("labelSelector=app%3Dx", true),
        ("labelSelector=app%21%3Dx", false),
        ("fieldSelector=metadata.name%3Da", true),
        ("fieldSelector=metadata.namespace%3Ddata", false),
    ] {
        assert_eq!(query(text).unwrap().selects(pod).unwrap(), expected, "{text}");
    }
    let refused = query("fieldSelector=spec.nodeName%3Da").unwrap().selects(pod).unwrap_err();
    assert!(refused.message.contains("use filter"), "{refused}");
}

#[test]
fn only_requested_fields_are_shown() {
    let mut pod = pods().remove(0);
    pod["id"] = "web/b".into();
    query("include=metadata.name&include=status").unwrap().reduce(&mut pod);
    let expected =
        json!({"id": "web/b", "metadata": {"name": "b"}, "status": {"phase": "Running"}});
    assert_eq!(pod, expected);
    query("exclude=status.phase").unwrap().reduce(&mut pod);
    assert_eq!(pod["status"], json!({}));
}

proptest! {
    /// Following the tokens visits each object once, in the order of the whole list.
    #[test]
    fn tokens_lead_through_the_whole_list(
        objects in prop::collection::vec(("[a-c]{1,2}", "[a-c]{1,2}", 0..5_i64), 0..30),
        limit in 1_usize..7,
        order in prop::sample::select(vec!["", "value", "-value", "missing,-value"]),
    ) {
        let mut objects: Vec<Value> = objects.into_iter().map(|(namespace, name, value)| {
            json!({"metadata": {"namespace": namespace, "name": name}, "value": value})
        }).collect();
        objects.sort_by_key(Sortable::id);
        objects.dedup_by_key(|object| object.id());
        let base = if order.is_empty() { String::new() } else { format!("&sort={order}") };
        let whole = query(&base).unwrap().select(objects.clone()).rows;
        let (mut seen, mut next) = (Vec::new(), String::new());
        loop {
            let part = query(&format!("limit={limit}{base}{next}")).unwrap().select(objects.clone());
            prop_assert!(part.rows.len() <= limit && part.count == whole.len());
            seen.extend(part.rows);
            match part.next {
                Some(token) => next = format!("&continue={token}"),
                None => break,
            }
        }
        prop_assert_eq!(seen, whole);
    }

    #[test]
    fn no_query_panics(pairs in prop::collection::vec(("filter|sort|page|pagesize|limit|continue|include", ".*"), 0..6)) {
        if let Ok(query) = Query::parse(&pairs) {
            let mut rows = query.select(pods()).rows;
            rows.iter_mut().for_each(|row| query.reduce(row));
        }
    }
}
