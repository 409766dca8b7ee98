//! What kube-apiserver writes for an object in which nothing is set: the zero values of the fields
//! that its Go types never omit. Bookmarks are such objects.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

/// API version, kind and the fields beside the metadata, as version 1.36 writes them.
const TABLE: &str = include_str!("unset.txt");

static FIELDS: LazyLock<HashMap<(&str, &str), &str>> = LazyLock::new(|| {
    let rows = TABLE.lines().filter_map(|row| {
        let (api_version, rest) = row.split_once(' ')?;
        let (kind, fields) = rest.split_once(' ')?;
        Some(((api_version, kind), fields))
    });
    rows.collect()
});

/// The fields of an object in which nothing is set, without metadata and type; empty for kinds that
/// are not built in.
pub fn fields(api_version: &str, kind: &str) -> Map<String, Value> {
    let text = FIELDS.get(&(api_version, kind));
    text.map(|text| serde_json::from_str(text).expect("the table's test has read it"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_fields_beside_the_metadata() {
        for (api_version, kind) in FIELDS.keys() {
            let row = fields(api_version, kind);
            assert!(!row.contains_key("metadata"), "{kind}");
        }
        assert_eq!(FIELDS.len(), TABLE.lines().count());
    }
}
