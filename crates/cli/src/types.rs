//! The types of `/v3` as the server describes them, so that commands work with all of them.

use serde_json::{Map, Value};

use crate::api::{self, Api, NamedType};
use crate::error::{CliError, Failure};
use crate::similar;

/// Types that are suggested for a mistyped one.
const SUGGESTIONS_MAX: usize = 6;

/// A type with a collection.
#[derive(Clone, Debug)]
pub struct Type {
    /// The value of `type` in objects.
    pub id: String,
    pub plural: String,
    /// Schema of each field.
    pub fields: Map<String, Value>,
}

impl Type {
    /// Finds the type with this id or plural, in any case.
    pub async fn find(api: &Api, name: &str) -> Result<Self, CliError> {
        let path = format!("/v3/schemas/{}", api::encode(name));
        let what = format!("type \"{name}\"");
        let schema = match api.call(http::Method::GET, &path, None, &what).await {
            Ok(schema) => schema,
            Err(error) if error.failure == Failure::NotFound => {
                let schemas = api.list("schemas", &[]).await?;
                return Err(unknown_type_error(name, &schemas));
            }
            Err(error) => return Err(error),
        };
        Self::of_schema(&schema).ok_or_else(|| {
            CliError::new(Failure::NotFound, format!("type \"{name}\" has no objects of its own"))
                .hint("it is part of other types; name one of those")
        })
    }

    /// The type of a schema; none for types that are only parts of other types.
    pub fn of_schema(schema: &Value) -> Option<Self> {
        let collection = schema["links"]["collection"].as_str()?;
        let plural = api::path_of(collection).trim_end_matches('/').rsplit('/').next()?.to_owned();
        let fields = schema["resourceFields"].as_object()?.clone();
        Some(Self { id: schema["id"].as_str()?.to_owned(), plural, fields })
    }

    /// The field that users call the name.
    pub fn name_field(&self) -> &'static str {
        if self.fields.contains_key("username") { "username" } else { "name" }
    }

    /// The type as [`Api::resolve`] takes it, for objects in any scope.
    pub fn as_named(&self) -> NamedType<'_> {
        let name_field = self.name_field();
        NamedType { singular: &self.id, plural: &self.plural, name_field, inside: None }
    }

    /// The type whose id a field holds.
    pub fn reference(&self, field: &str) -> Option<&str> {
        self.fields.get(field)?["type"].as_str()?.strip_prefix("reference[")?.strip_suffix(']')
    }

    /// Whether the schema allows an operation on a field: `create`, `update`, `writeOnly`.
    pub fn allows(&self, field: &str, what: &str) -> bool {
        self.fields.get(field).is_some_and(|schema| schema[what] == true)
    }
}

/// Types of most commands, suggested when a mistyped one is similar to none.
const COMMON: &str = "cluster, node, project, user, roleTemplate and setting";

fn unknown_type_error(name: &str, schemas: &[Value]) -> CliError {
    let lower = name.to_lowercase();
    let with_objects = schemas.iter().filter(|schema| schema["links"]["collection"].is_string());
    let ids: Vec<&str> = with_objects.filter_map(|schema| schema["id"].as_str()).collect();
    let containing = ids.iter().copied().filter(|id| id.to_lowercase().contains(&lower));
    let containing: Vec<&str> = containing.take(SUGGESTIONS_MAX).collect();
    let hint = match (similar::closest(name, ids.iter().copied()), containing.as_slice()) {
        (Some(meant), _) => format!("did you mean \"{meant}\"?"),
        (None, []) => format!(
            "common types are {COMMON}; with completion, a tab after \"drover inspect\" shows all"
        ),
        (None, some) => format!("did you mean one of: {}", some.join(", ")),
    };
    CliError::new(Failure::NotFound, format!("the server has no type \"{name}\"")).hint(hint)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_type_is_what_its_schema_says() {
        let schema = json!({
            "id": "project", "pluralName": "projects",
            "links": {"collection": "https://host/v3/projects"},
            "resourceFields": {
                "name": {"type": "string", "create": true, "update": true},
                "clusterId": {"type": "reference[cluster]", "create": true, "update": false},
            },
        });
        let kind = Type::of_schema(&schema).unwrap();
        assert_eq!((kind.plural.as_str(), kind.name_field()), ("projects", "name"));
        assert_eq!(kind.reference("clusterId"), Some("cluster"));
        assert_eq!(kind.reference("name"), None);
        assert!(kind.allows("name", "update") && !kind.allows("clusterId", "update"));
        for odd in [json!({"id": "part", "links": {}}), json!(7), json!([]), json!(null)] {
            assert!(Type::of_schema(&odd).is_none(), "{odd}");
        }
    }

    #[test]
    fn mistyped_resource_type_suggests_the_closest_one() {
        let schema = |id: &str| json!({"id": id, "links": {"collection": "x"}});
        let part = json!({"id": "clusterSpec", "links": {}});
        let schemas = [schema("cluster"), schema("clusterAlert"), schema("user"), part];
        let hint = |name: &str| unknown_type_error(name, &schemas).hint.unwrap();
        for typed in ["clster", "clutser", "Clusters"] {
            assert_eq!(hint(typed), "did you mean \"cluster\"?", "{typed}");
        }
        assert_eq!(hint("clust"), "did you mean one of: cluster, clusterAlert");
        assert!(hint("xyz").starts_with("common types are cluster, node,"), "{}", hint("xyz"));
    }
}
