//! The older format: Swagger 2, one document for everything. It expresses less than v3; what it
//! cannot express is omitted.

use serde_json::{Map, Value, json};

const V3_REFERENCES: &str = "#/components/schemas/";
const V2_REFERENCES: &str = "#/definitions/";
/// Keywords of v3 that v2 does not have.
const DROPPED: [&str; 6] = ["nullable", "oneOf", "anyOf", "allOf", "not", "default"];

/// The v2 document made from the paths and the definitions of v3.
pub fn document(info: Value, paths: Map<String, Value>, schemas: Map<String, Value>) -> Value {
    let definitions: Map<String, Value> = schemas
        .into_iter()
        .map(|(name, schema)| {
            let schema = match opaque_kind(&schema) {
                Some(opaque) => opaque,
                None => narrow_schema(schema),
            };
            (name, schema)
        })
        .collect();
    let paths: Map<String, Value> =
        paths.into_iter().map(|(path, entry)| (path, path_item(entry))).collect();
    json!({
        "swagger": "2.0", "info": info, "paths": paths, "definitions": definitions,
        "securityDefinitions": {"BearerToken": {
            "description": "Bearer Token authentication",
            "type": "apiKey", "name": "authorization", "in": "header"}},
        "security": [{"BearerToken": []}],
    })
}

/// A kind whose objects may have any field, as kube-apiserver publishes it: kubectl would reject
/// every field that is not declared. `None` for other definitions.
fn opaque_kind(schema: &Value) -> Option<Value> {
    let kind = schema.get("x-kubernetes-group-version-kind")?;
    if schema.get("x-kubernetes-preserve-unknown-fields") != Some(&Value::Bool(true)) {
        return None;
    }
    let mut opaque = json!({"type": "object", "x-kubernetes-group-version-kind": kind});
    if let Some(fields) = schema.get("x-kubernetes-selectable-fields") {
        opaque["x-kubernetes-selectable-fields"] = fields.clone();
    }
    Some(opaque)
}

fn narrow_schema(mut schema: Value) -> Value {
    narrow(&mut schema);
    schema
}

/// Converts a schema to the keywords of v2.
fn narrow(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    let int_or_string = map.get("format").and_then(Value::as_str) == Some("int-or-string");
    if int_or_string || is_quantity(map) {
        map.insert("type".to_owned(), "string".into());
    }
    // A reference was wrapped only because it has a description.
    let wrapped = map
        .get("allOf")
        .and_then(Value::as_array)
        .filter(|all| all.len() == 1)
        .and_then(|all| all[0].get("$ref").cloned());
    if let Some(reference) = wrapped {
        map.insert("$ref".to_owned(), reference);
    }
    let is_true = |key: &str| map.get(key) == Some(&Value::Bool(true));
    // Clients would reject null, or drop fields that are not declared.
    let opaque = is_true("nullable") || is_true("x-kubernetes-preserve-unknown-fields");
    let typeless = opaque || is_true("x-kubernetes-int-or-string");
    for keyword in DROPPED {
        map.remove(keyword);
    }
    let of_opaque = ["properties", "items", "required"].into_iter().filter(|_| opaque);
    for keyword in of_opaque.chain(typeless.then_some("type")) {
        map.remove(keyword);
    }
    if let Some(Value::String(reference)) = map.get_mut("$ref") {
        *reference = reference.replace(V3_REFERENCES, V2_REFERENCES);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = map.get_mut(key) {
            narrow(child);
        }
    }
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(narrow);
    }
}

fn is_quantity(map: &Map<String, Value>) -> bool {
    let types = map.get("oneOf").and_then(Value::as_array).map(Vec::as_slice);
    matches!(types, Some([a, b]) if a["type"] == "string" && b["type"] == "number")
        && !map.contains_key("type")
}

fn path_item(entry: Value) -> Value {
    let Value::Object(map) = entry else {
        return entry;
    };
    let converted = map.into_iter().map(|(key, value)| {
        let value = match (key.as_str(), value) {
            ("parameters", Value::Array(list)) => list.into_iter().map(parameter).collect(),
            (_, value) => operation(value),
        };
        (key, value)
    });
    Value::Object(converted.collect())
}

fn operation(mut operation: Value) -> Value {
    let mut parameters: Vec<Value> = match operation["parameters"].take() {
        Value::Array(list) => list.into_iter().map(parameter).collect(),
        _ => Vec::new(),
    };
    let body = operation["requestBody"].take();
    let mut consumes = vec![Value::from("*/*")];
    if let Some(content) = body["content"].as_object() {
        consumes = content.keys().map(|media| media.as_str().into()).collect();
        let mut schema = content.values().next().map(|c| c["schema"].clone()).unwrap_or_default();
        narrow(&mut schema);
        let mut parameter = json!({"name": "body", "in": "body", "schema": schema});
        if body["required"] == true {
            parameter["required"] = true.into();
        }
        parameters.push(parameter);
    }
    let mut produces = Vec::new();
    let mut responses = Map::new();
    for (code, response) in operation["responses"].take().as_object().into_iter().flatten() {
        let mut converted = json!({"description": response["description"]});
        if let Some(content) = response["content"].as_object() {
            produces = content.keys().map(|media| Value::from(media.as_str())).collect();
            let schema = content.values().next().map(|content| content["schema"].clone());
            converted["schema"] = schema.unwrap_or_default();
            narrow(&mut converted["schema"]);
        }
        responses.insert(code.clone(), converted);
    }
    let map = operation.as_object_mut().expect("operations are objects");
    map.retain(|key, _| !matches!(key.as_str(), "requestBody" | "parameters"));
    if !parameters.is_empty() {
        map.insert("parameters".to_owned(), parameters.into());
    }
    map.insert("responses".to_owned(), Value::Object(responses));
    map.insert("consumes".to_owned(), consumes.into());
    map.insert("produces".to_owned(), produces.into());
    map.insert("schemes".to_owned(), json!(["https"]));
    operation
}

/// In v2, the type of a parameter is a member of the parameter itself.
fn parameter(parameter: Value) -> Value {
    let Value::Object(mut map) = parameter else {
        return parameter;
    };
    if let Some(Value::Object(schema)) = map.remove("schema") {
        map.extend(schema);
    }
    Value::Object(map)
}
