//! Printer columns of custom resources.

use api_meta::object::ObjectExt;
use api_meta::time;
use apiserver::resource::TableColumn;
use serde_json::Value;
use structural_schema::JsonPath;

/// The description of the column `Name` of every kind, like in Kubernetes.
pub const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when \
    creating resources, although some resources may allow a client to request the generation of an \
    appropriate name automatically. Name is primarily intended for creation idempotence and \
    configuration definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
/// The description of columns with the time of creation, like in Kubernetes.
pub const CREATED_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server \
    time when this object was created. It is not guaranteed to be set in happens-before order \
    across separate operations. Clients may not set this value. It is represented in RFC3339 form \
    and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// The source of the cells of a column other than the name: their path and type.
#[derive(Clone, Debug)]
pub struct CellSource {
    path: JsonPath,
    kind: String,
}

/// The columns of a version of a definition, the name first, and the sources of all others. Without
/// declared columns there is one with the age.
pub fn columns_of(version: &Value) -> (Vec<TableColumn>, Vec<CellSource>) {
    let mut columns = vec![name_column()];
    let mut sources = Vec::new();
    let declared = version["additionalPrinterColumns"].as_array().map(Vec::as_slice);
    for column in declared.unwrap_or_default() {
        let text = |key: &str| column[key].as_str().unwrap_or_default().to_owned();
        // Validation has refused paths that do not parse.
        let Ok(path) = JsonPath::parse(&text("jsonPath")) else {
            continue;
        };
        let description = match text("description") {
            empty if empty.is_empty() => {
                format!(
                    "Custom resource definition column (in JSONPath format): {}",
                    text("jsonPath")
                )
            }
            given => given,
        };
        columns.push(TableColumn {
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            description,
            priority: column["priority"].as_i64().and_then(|p| p.try_into().ok()).unwrap_or(0),
        });
        sources.push(CellSource { path, kind: text("type") });
    }
    if declared.is_none_or(<[Value]>::is_empty) {
        columns.push(TableColumn {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: CREATED_DESCRIPTION.to_owned(),
            priority: 0,
        });
        let path = JsonPath::parse(".metadata.creationTimestamp").expect("a constant path");
        sources.push(CellSource { path, kind: "date".to_owned() });
    }
    (columns, sources)
}

/// The column `Name`, the first of every table.
pub fn name_column() -> TableColumn {
    TableColumn {
        name: "Name".to_owned(),
        kind: "string".to_owned(),
        format: "name".to_owned(),
        description: NAME_DESCRIPTION.to_owned(),
        priority: 0,
    }
}

/// The cells of an object: its name and one per source; null for absent values. `now` is in Unix
/// seconds.
pub fn cells(sources: &[CellSource], object: &Value, now: i64) -> Vec<Value> {
    let cell = |source: &CellSource| match source.path.first(object) {
        Some(value) => cell(&source.kind, value, now),
        None => Value::Null,
    };
    std::iter::once(Value::from(object.name())).chain(sources.iter().map(cell)).collect()
}

/// Converts a value to its column type; null when it has another type.
fn cell(kind: &str, value: &Value, now: i64) -> Value {
    match (kind, value) {
        (_, Value::Null) => Value::Null,
        ("string", Value::String(_)) => value.clone(),
        ("string", other) => other.to_string().into(),
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64().map(|float| float as i64).into(),
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => match time::parse_seconds(text) {
            Some(then) => time::human_duration(now - then).into(),
            None => "<invalid>".into(),
        },
        _ => Value::Null,
    }
}
