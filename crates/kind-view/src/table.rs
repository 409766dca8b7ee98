//! Objects with the cells that the Kubernetes API prints of them: its `Table` form.

use kube::Client;
use rest_view::ApiError;
use serde_json::{Value, json};

use crate::query::Sortable;

/// A table with whole objects, or plain objects from servers that print none.
const ACCEPT: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// One object, with its cells at `metadata.fields`.
#[derive(Debug, PartialEq)]
pub struct Row(pub Value);

impl Sortable for Row {
    fn object(&self) -> &Value {
        &self.0
    }
}

/// What one request returned.
#[derive(Debug, Default)]
pub struct Table {
    pub rows: Vec<Row>,
    /// The columns of `metadata.fields`, as schemas have them.
    pub columns: Vec<Value>,
    pub revision: String,
    /// The token for the rest of the list; empty at its end.
    pub rest: String,
    /// Size of the response.
    pub bytes: usize,
}

/// Reads a list or an object below `path`, which has a query already or not.
///
/// # Errors
/// The refusal of the API server, or 500 when it cannot be reached.
pub async fn read(client: &Client, path: &str) -> Result<Table, ApiError> {
    let text = client.request_text(request(path)?).await?;
    let response: Value = serde_json::from_str(&text).map_err(ApiError::server_error)?;
    if !response.is_object() {
        return Err(ApiError::server_error("the cluster returned no object and no list"));
    }
    Ok(Table { bytes: text.len(), ..of_response(response) })
}

/// A request for the table form of what is at `path`, which has a query already or not.
///
/// # Errors
/// 404: no object has a name that a path cannot contain.
pub fn request(path: &str) -> Result<http::Request<Vec<u8>>, ApiError> {
    let separator = if path.contains('?') { '&' } else { '?' };
    http::Request::get(format!("{path}{separator}includeObject=Object"))
        .header(http::header::ACCEPT, ACCEPT)
        .body(Vec::new())
        .map_err(|_| ApiError::no_such_id())
}

/// What `value` has in a field, if it has fields.
pub fn take(value: &mut Value, field: &str) -> Value {
    value.get_mut(field).map(Value::take).unwrap_or_default()
}

/// The rows of a response, or of an event of a watch.
pub fn of_response(mut response: Value) -> Table {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (revision, rest) =
        (text(&response["metadata"]["resourceVersion"]), text(&response["metadata"]["continue"]));
    if response["kind"] == "Table" {
        let columns = response["columnDefinitions"].as_array().map(Vec::as_slice);
        let columns = columns.unwrap_or_default().iter().enumerate().map(column).collect();
        let Value::Array(rows) = take(&mut response, "rows") else { return Table::default() };
        let rows = rows.into_iter().map(|mut row| {
            let (cells, mut object) = (take(&mut row, "cells"), take(&mut row, "object"));
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.insert("fields".to_owned(), cells);
            }
            Row(object)
        });
        return Table { rows: rows.collect(), columns, revision, rest, bytes: 0 };
    }
    let rows = match take(&mut response, "items") {
        Value::Array(items) => items.into_iter().map(Row).collect(),
        _ => vec![Row(response)],
    };
    Table { rows, columns: Vec::new(), revision, rest, bytes: 0 }
}

fn column((index, definition): (usize, &Value)) -> Value {
    json!({
        "name": definition["name"],
        "field": format!("$.metadata.fields[{index}]"),
        "type": definition["type"],
        "format": definition["format"],
        "description": definition["description"],
        "priority": definition["priority"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_cells_in_its_objects() {
        let table = of_response(json!({
            "kind": "Table", "metadata": {"resourceVersion": "7", "continue": "more"},
            "columnDefinitions": [{"name": "Name", "type": "string", "format": "name", "priority": 0}],
            "rows": [{"cells": ["a"], "object": {"metadata": {"name": "a"}}}],
        }));
        let expected = json!({"metadata": {"name": "a", "fields": ["a"]}});
        assert_eq!(table.rows, [Row(expected)]);
        assert_eq!((table.revision.as_str(), table.rest.as_str()), ("7", "more"));
        assert_eq!(table.columns[0]["field"], "$.metadata.fields[0]");
    }

    #[test]
    fn a_table_of_another_shape_is_no_harm() {
        for rows in [json!(7), json!([1, null, {"object": "x"}, {"object": {"metadata": "m"}}])] {
            let table = of_response(json!({"kind": "Table", "metadata": [], "rows": rows}));
            assert!(table.rows.iter().all(|row| row.id() == [""; 3]));
        }
    }

    #[test]
    fn lists_and_objects_without_a_table_are_rows_too() {
        let list = of_response(json!({"metadata": {}, "items": [{"metadata": {"name": "a"}}]}));
        let object = of_response(json!({"kind": "Pod", "metadata": {"name": "a"}}));
        assert_eq!((list.rows.len(), object.rows.len()), (1, 1));
    }
}
