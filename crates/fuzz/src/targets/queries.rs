//! Filters, orders, pages and tokens of lists of `/v1`.

use kind_view::{Query, Sortable};
use rest_view::urls::query_pairs;
use serde_json::{Value, json};

/// Objects in the list.
const OBJECTS: usize = 6;
/// Pages that a list of so few objects can have.
const PAGES_MAX: usize = OBJECTS + 1;

struct Object(Value);

impl Sortable for Object {
    fn object(&self) -> &Value {
        &self.0
    }
}

fn objects() -> Vec<Object> {
    let object = |number: usize| {
        Object(json!({
            "metadata": {"namespace": "a", "name": format!("o{number}"), "labels": {"x.y/z": "1"}},
            "n": number % 3, "list": [{"v": number}, {"v": "t"}], "t": null, "b": number == 2,
        }))
    };
    (0..OBJECTS).map(object).collect()
}

/// A query string. What it selects is a part of the list, and its tokens come to an end.
pub fn kind_query(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut pairs = query_pairs(text);
    let mut seen = 0;
    for _ in 0..PAGES_MAX {
        let Ok(query) = Query::parse(&pairs) else { return };
        let selection = query.select(objects());
        assert!(selection.rows.len() <= selection.count && selection.count <= OBJECTS);
        for Object(mut object) in selection.rows {
            seen += 1;
            query.reduce(&mut object);
        }
        let Some(token) = selection.next else {
            assert!(seen <= OBJECTS, "objects were selected twice");
            return;
        };
        pairs.retain(|(name, _)| name != "continue");
        pairs.push(("continue".to_owned(), token));
    }
    panic!("the tokens do not end");
}
