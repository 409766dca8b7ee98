//! Types of the view as `/v1/schemas` describes them to one caller.

use rest_view::Urls;
use serde_json::{Map, Value, json};

use crate::kinds::ServedKind;
use crate::path::Place;
use crate::rights::Rights;

/// Fields that every object has. All others are in the OpenAPI document of the place.
const FIELDS: [(&str, &str); 3] =
    [("apiVersion", "string"), ("kind", "string"), ("metadata", "json")];

/// A kind as a schema; `None` when the caller may do nothing with it.
pub fn of_kind(place: &Place, urls: &Urls, kind: &ServedKind, rights: &Rights) -> Option<Value> {
    let may = |verb: &str| rights.allow(verb, kind);
    let (mut of_resources, mut of_collection) = (Vec::new(), Vec::new());
    if may("list") || may("get") {
        of_resources.push("GET");
        of_collection.push("GET");
    }
    if may("create") {
        of_collection.push("POST");
    }
    if may("update") {
        of_resources.push("PUT");
    }
    if may("update") || may("patch") {
        of_resources.push("PATCH");
    }
    if may("delete") {
        of_resources.push("DELETE");
    }
    if of_resources.is_empty() && of_collection.is_empty() {
        return None;
    }
    let resource = &kind.resource;
    let verbs: Vec<&String> = kind.verbs.iter().filter(|verb| may(verb)).collect();
    let mut links = json!({"self": schema_url(place, urls, &kind.id())});
    if !of_collection.is_empty() {
        links["collection"] = collection_url(place, urls, kind).into();
    }
    Some(json!({
        "id": kind.id(),
        "type": "schema",
        "links": links,
        "description": "",
        "pluralName": kind.plural(),
        "resourceMethods": of_resources,
        "collectionMethods": of_collection,
        "resourceFields": fields(),
        "resourceActions": {},
        "collectionActions": {},
        "attributes": {
            "group": resource.group, "version": resource.version, "kind": resource.kind,
            "resource": resource.plural, "namespaced": resource.namespaced, "verbs": verbs,
        },
    }))
}

fn fields() -> Map<String, Value> {
    let field = |(name, kind): (&str, &str)| {
        (name.to_owned(), json!({"type": kind, "create": true, "update": true}))
    };
    FIELDS.map(field).into_iter().collect()
}

/// The URL of a schema.
pub fn schema_url(place: &Place, urls: &Urls, id: &str) -> String {
    urls.path(&format!("{}/schemas/{id}", place.view_root()))
}

/// The URL of all objects of a kind.
pub fn collection_url(place: &Place, urls: &Urls, kind: &ServedKind) -> String {
    urls.path(&format!("{}/{}", place.view_root(), kind.plural()))
}
