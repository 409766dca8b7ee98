//! Files of objects: YAML or JSON, one or many.

use serde_json::{Map, Value};

use crate::error::{CliError, Failure};
use crate::types::Type;

/// Objects in one file.
const DOCUMENTS_MAX: usize = 10_000;
/// Keys that every object of `/v3` has beside its fields.
const COMMON_KEYS: [&str; 7] =
    ["type", "id", "baseType", "links", "actions", "actionLinks", "createdTS"];
/// Fields that are the scope of a name.
const SCOPES: [&str; 3] = ["clusterId", "projectId", "namespaceId"];

/// A desired object.
#[derive(Debug)]
pub struct Document {
    /// Its type, as written in the file.
    pub kind: String,
    id: Option<String>,
    /// Its fields, without the keys that every object has.
    pub fields: Map<String, Value>,
    /// File and number of the object, for messages.
    pub location: String,
}

/// How the existing object of a document is found.
#[derive(Debug, PartialEq, Eq)]
pub enum LookupKey {
    Id(String),
    /// Fields and values that identify one object of the type.
    Fields(Vec<(String, String)>),
}

/// The objects of a file. A list counts as its elements.
pub fn read(text: &str, file: &str) -> Result<Vec<Document>, CliError> {
    let wrong = |why: String| {
        CliError::new(Failure::Invalid, format!("reading \"{file}\": {why}"))
            .hint("a file holds YAML or JSON; each object has a type, such as: {type: project}")
    };
    // As Kubernetes reads it: "n" and "yes" are text.
    let options = serde_saphyr::options! { strict_booleans: true };
    let values: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| wrong(error.to_string()))?;
    let values = values.into_iter().flat_map(|value| match value {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        one => vec![one],
    });
    let mut documents = Vec::new();
    for (index, value) in values.enumerate() {
        if index >= DOCUMENTS_MAX {
            return Err(wrong(format!("more than {DOCUMENTS_MAX} objects")));
        }
        let location = format!("\"{file}\", object {}", index + 1);
        documents.push(document(value, location).map_err(wrong)?);
    }
    Ok(documents)
}

fn document(value: Value, location: String) -> Result<Document, String> {
    let Value::Object(mut fields) = value else { return Err(format!("{location} is no object")) };
    if fields.contains_key("apiVersion") && fields.contains_key("kind") {
        return Err(format!(
            "{location} is of a Kubernetes kind; apply it by \"drover kubectl --cluster NAME apply\""
        ));
    }
    let of = |fields: &Map<String, Value>, field: &str| {
        fields.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let kind = of(&fields, "type").ok_or_else(|| format!("{location} has no type"))?;
    let id = of(&fields, "id");
    fields.retain(|field, _| !COMMON_KEYS.contains(&field.as_str()));
    Ok(Document { kind, id, fields, location })
}

impl Document {
    /// Refuses unknown fields, and documents without a lookup key.
    pub fn check(&self, kind: &Type) -> Result<(), CliError> {
        for field in self.fields.keys() {
            if !kind.fields.contains_key(field) {
                let text = format!("{}: type {} has no field \"{field}\"", self.location, kind.id);
                let known: Vec<&str> = kind
                    .fields
                    .keys()
                    .map(String::as_str)
                    .filter(|known| kind.allows(known, "create") || kind.allows(known, "update"))
                    .collect();
                return Err(CliError::new(Failure::Invalid, text)
                    .hint(format!("it has: {}", known.join(", "))));
            }
        }
        self.lookup_key(kind).map(|_| ())
    }

    /// The id; else the name, within the cluster or project of the document; else, without a name,
    /// all references.
    pub fn lookup_key(&self, kind: &Type) -> Result<LookupKey, CliError> {
        if let Some(id) = &self.id {
            return Ok(LookupKey::Id(id.clone()));
        }
        let text = |field: &str| self.fields.get(field).and_then(Value::as_str).unwrap_or_default();
        let pairs = |fields: &mut dyn Iterator<Item = &str>| -> Vec<(String, String)> {
            fields
                .filter(|field| !text(field).is_empty())
                .map(|field| (field.to_owned(), text(field).to_owned()))
                .collect()
        };
        let name = kind.name_field();
        let found = if text(name).is_empty() {
            pairs(
                &mut self.fields.keys().map(String::as_str).filter(|f| kind.reference(f).is_some()),
            )
        } else {
            pairs(&mut std::iter::once(name).chain(SCOPES))
        };
        if found.is_empty() {
            let message = format!("{}: it has neither an id nor a {name}", self.location);
            return Err(CliError::new(Failure::Invalid, message)
                .hint(format!("write its {name}, so that it is found again the next time")));
        }
        Ok(LookupKey::Fields(found))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind() -> Type {
        Type::of_schema(&json!({
            "id": "binding", "links": {"collection": "/v3/bindings"},
            "resourceFields": {
                "name": {"type": "string", "create": true, "update": true},
                "clusterId": {"type": "reference[cluster]", "create": true, "update": false},
                "userId": {"type": "reference[user]", "create": true, "update": false},
                "note": {"type": "string", "create": true, "update": true},
            },
        }))
        .unwrap()
    }

    fn lookup_key(text: &str) -> LookupKey {
        read(text, "f").unwrap()[0].lookup_key(&kind()).unwrap()
    }

    #[test]
    fn files_hold_documents_lists_and_json() {
        let text =
            "type: a\nname: n\n---\n---\n- {type: b}\n- {type: c, id: x}\n---\n{\"type\": \"d\"}\n";
        let kinds: Vec<String> = read(text, "f").unwrap().into_iter().map(|d| d.kind).collect();
        assert_eq!(kinds, ["a", "b", "c", "d"]);
        assert!(read("", "f").unwrap().is_empty());
    }

    #[test]
    fn values_that_are_not_objects_are_refused_with_their_location() {
        for (text, said) in [
            ("just text", "\"f\", object 1 is no object"),
            ("type: a\n---\nname: x", "object 2 has no type"),
            ("type: 7", "has no type"),
            ("{apiVersion: v1, kind: Pod}", "drover kubectl"),
            ("{type: [", "reading \"f\""),
        ] {
            let error = read(text, "f").unwrap_err();
            assert_eq!(error.failure, Failure::Invalid, "{text}");
            assert!(error.message.contains(said), "{text}: {}", error.message);
        }
    }

    #[test]
    fn an_object_is_found_by_id_by_name_or_by_its_references() {
        let pairs = |pairs: &[(&str, &str)]| {
            LookupKey::Fields(
                pairs.iter().map(|(f, v)| ((*f).to_owned(), (*v).to_owned())).collect(),
            )
        };
        assert_eq!(lookup_key("{type: binding, id: x, name: n}"), LookupKey::Id("x".to_owned()));
        assert_eq!(
            lookup_key("{type: binding, name: n, clusterId: c, userId: u}"),
            pairs(&[("name", "n"), ("clusterId", "c")])
        );
        assert_eq!(
            lookup_key("{type: binding, note: x, clusterId: c, userId: u}"),
            pairs(&[("clusterId", "c"), ("userId", "u")])
        );
        let nameless = &read("{type: binding, note: x}", "f").unwrap()[0];
        assert!(nameless.check(&kind()).unwrap_err().message.contains("neither an id nor a name"));
        let unknown = &read("{type: binding, name: n, nmae: x}", "f").unwrap()[0];
        let error = unknown.check(&kind()).unwrap_err();
        assert!(error.message.contains("no field \"nmae\""), "{}", error.message);
    }

    #[test]
    fn the_output_of_inspect_can_be_applied() {
        let text =
            "{type: binding, id: x, links: {self: y}, actions: {}, baseType: binding, name: n}";
        let document = &read(text, "f").unwrap()[0];
        document.check(&kind()).unwrap();
        assert_eq!(document.fields.len(), 1);
    }
}
