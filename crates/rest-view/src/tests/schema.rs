//! Schemas.

use serde_json::{Value, json};

use super::world::World;
use crate::{Descriptor, Field, FieldLocation, FieldType, KubeResource, Methods, StructType};

const NO_METHODS: Methods =
    Methods { list: false, get: false, create: false, update: false, delete: false };

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
async fn what_nobody_can_reach_is_in_no_list_of_schemas() {
    let world = World::new();
    let drop_off = Methods { create: true, ..NO_METHODS };
    let store = || std::sync::Arc::new(super::world::MemoryStore::default());
    let vault = Descriptor::with_store("vault", "vaults", store()).methods(drop_off);
    let lonely = StructType::new("lonely", vec![Field::of("inner", "lonelyInner")]);
    world.view.register(vault.types([lonely]));
    let looped = vec![Field::array("next", FieldType::of("looped")), Field::of("gone", "gone")];
    let ring = Descriptor::with_store("ring", "rings", store())
        .methods(Methods::READ)
        .spec([Field::map("links", FieldType::array(FieldType::of("looped")))])
        .types([StructType::new("looped", looped)]);
    world.view.register(ring);

    let reply = world.get("/v3/schemas").await;
    let ids = reply.ids();
    assert!(ids.contains(&"ring") && ids.contains(&"looped"), "{ids:?}");
    assert!(!ids.contains(&"vault") && !ids.contains(&"lonely"), "{ids:?}");
    let vault = world.get("/v3/schemas/vault").await.body;
    assert_eq!(
        (&vault["links"]["collection"], &vault["collectionMethods"]),
        (&Value::Null, &json!(["POST"]))
    );
    assert_eq!(world.get("/v3/vaults").await.code(), "MethodNotAllow");
    let rings = world.get("/v3/rings").await.body;
    assert_eq!((rings["data"].clone(), rings.get("createTypes")), (json!([]), None));
}

#[tokio::test]
async fn a_field_says_which_characters_it_takes() {
    let world = World::new();
    let field = Field::string("code").create().valid_chars("0123").invalid_chars("9");
    world.view.change(|registry| {
        registry.add_fields("/v3", "widget", [field.clone()]);
    });
    let schema = world.get("/v3/schemas/widget").await.body;
    let expected = json!({
        "type": "string", "create": true, "update": false, "nullable": true,
        "validChars": "0123", "invalidChars": "9",
    });
    assert_eq!(schema["resourceFields"]["code"], expected);
}

#[test]
fn filters_follow_the_types_of_fields() {
    let all = ["eq", "ne", "in", "notin"];
    let labels = ["dnsLabel", "dnsLabelRestricted", "hostname"];
    let others = ["string", "enum", "date", "int", "reference[x]"];
    for kind in labels.into_iter().chain(others) {
        assert_eq!(FieldType::parse(kind).unwrap().modifiers(), all, "{kind}");
    }
    assert_eq!(FieldType::Boolean.modifiers(), ["eq", "ne"]);
    for kind in [
        "password",
        "float",
        "json",
        "base64",
        "intOrString",
        "array[string]",
        "map[string]",
        "array[reference[x]]",
        "widgetCondition",
    ] {
        assert!(FieldType::parse(kind).unwrap().modifiers().is_empty(), "{kind}");
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
    assert_eq!(gadget.fields["extra"].location, Some(FieldLocation::path("extra")));
    let rules = gadget.types.iter().find(|kind| kind.id == "gadgetRules").unwrap();
    assert_eq!(rules.field("verbs").unwrap().kind, FieldType::array(FieldType::String));
}
