//! Schemas.

use serde_json::{Value, json};

use super::world::World;
use crate::{Descriptor, FieldType, KubeResource, Place};

#[tokio::test]
async fn the_schema_of_a_type_says_what_clients_build_themselves_from() {
    let world = World::new();
    insta::assert_json_snapshot!(world.get("/v3/schemas/widget").await.body);
}

#[tokio::test]
async fn the_schema_list_names_every_type_and_embedded_type() {
    let world = World::new();
    let reply = world.get("/v3/schemas").await;
    assert_eq!(reply.body["resourceType"], "schema");
    assert_eq!(
        reply.ids(),
        ["depot", "depth", "dimensions", "paintInput", "widget", "widgetCondition"]
    );
    for schema in reply.body["data"].as_array().unwrap() {
        let fields = schema["resourceFields"].as_object().unwrap();
        for (name, field) in fields {
            assert!(field["create"].is_boolean() && field["update"].is_boolean(), "{name}");
        }
    }
}

#[tokio::test]
async fn a_resource_with_a_sub_context_points_at_the_schemas_inside_it() {
    let world = World::new();
    world.depots.put(json!({"metadata": {"name": "d-1"}}));
    let reply = world.get("/v3/depots/d-1").await;
    assert_eq!(reply.headers["x-api-schemas"], "https://host.example/v3/depots/d-1/schemas");
    let reply = world.get("/v3/depots").await;
    assert_eq!(reply.headers["x-api-schemas"], "https://host.example/v3/schemas");
    assert_eq!(world.get("/v3/depots/d-1/schemas").await.ids(), Vec::<&str>::new());
    assert_eq!(world.get("/v3/depot/schemas").await.status, 200);
}

#[tokio::test]
async fn a_type_registered_while_running_is_served() {
    let world = World::new();
    assert_eq!(world.get("/v3/gadgets").await.status, 404);
    let resource = KubeResource::new("example.io", "v1", "gadgets", "Gadget", false);
    let gadget = Descriptor::new("gadget", "gadgets", resource)
        .store(std::sync::Arc::new(super::world::MemoryStore::default()));
    world.view.register(gadget);
    assert_eq!(world.get("/v3/gadgets").await.status, 200);
    assert_eq!(world.get("/v3/schemas/gadget").await.status, 200);
    world.view.unregister("/v3", "gadget");
    assert_eq!(world.get("/v3/gadgets").await.status, 404);
}

#[test]
fn fields_that_nobody_described_come_from_the_crd() {
    let schema = json!({
        "properties": {
            "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": {
                "displayName": {"type": "string"},
                "replicas": {"type": "integer", "default": 1},
                "port": {"x-kubernetes-int-or-string": true},
                "mode": {"type": "string", "enum": ["a", "b"]},
                "limits": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "rules": {"type": "array", "items": {"type": "object", "properties": {
                    "verbs": {"type": "array", "items": {"type": "string"}},
                }}},
            }},
            "status": {"type": "object", "properties": {
                "seen": {"type": "string", "format": "date-time"},
            }},
            "extra": {"type": "boolean"},
        },
    });
    let resource = KubeResource::new("example.io", "v1", "gadgets", "Gadget", false);
    let gadget = Descriptor::new("gadget", "gadgets", resource)
        .display_name(crate::Field::string("name").create_update().at("spec.displayName"))
        .derive_fields(&schema);
    let of = |name: &str| {
        let field = &gadget.fields[name];
        (field.kind.to_string(), field.create)
    };
    assert!(!gadget.fields.contains_key("displayName"));
    assert_eq!(of("replicas"), ("int".to_owned(), true));
    assert_eq!(gadget.fields["replicas"].default, Some(Value::from(1)));
    assert_eq!(of("port"), ("intOrString".to_owned(), true));
    assert_eq!(of("mode"), ("enum".to_owned(), true));
    assert_eq!(of("limits"), ("map[string]".to_owned(), true));
    assert_eq!(of("free"), ("map[json]".to_owned(), true));
    assert_eq!(of("rules"), ("array[gadgetRules]".to_owned(), true));
    assert_eq!(of("seen"), ("date".to_owned(), false));
    assert_eq!(of("extra"), ("boolean".to_owned(), true));
    assert_eq!(gadget.fields["extra"].place, Some(Place::path("extra")));
    let rules = gadget.types.iter().find(|kind| kind.id == "gadgetRules").unwrap();
    assert_eq!(rules.field("verbs").unwrap().kind, FieldType::array(FieldType::String));
}
