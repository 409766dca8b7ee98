//! The OpenAPI document.

use serde_json::{Value, json};

use super::world::World;
use crate::{Caller, Descriptor, Field, FieldType, Methods, StructType};

async fn document(world: &World) -> Value {
    let reply = world.get("/v3/openapi.json").await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body
}

/// Everything that a reference leads to is there.
fn references(document: &Value, value: &Value, found: &mut usize) {
    if let Some(target) = value["$ref"].as_str() {
        *found += 1;
        let pointer = target.strip_prefix('#').expect("inside the document");
        assert!(document.pointer(pointer).is_some(), "{target} leads nowhere");
    }
    match value {
        Value::Object(entries) => entries.values().for_each(|v| references(document, v, found)),
        Value::Array(items) => items.iter().for_each(|v| references(document, v, found)),
        _ => {}
    }
}

#[tokio::test]
async fn a_document_says_of_each_type_what_its_schema_says() {
    let world = World::new();
    let document = document(&world).await;
    let schemas = &document["components"]["schemas"];
    let names = ["Widget", "WidgetCreate", "WidgetCondition", "PaintInputCreate"];
    let types: Vec<(&str, &Value)> = names.map(|name| (name, &schemas[name])).to_vec();
    insta::assert_yaml_snapshot!("openapi_types", types);
    let paths = ["/v3/widgets", "/v3/widgets/{id}", "/v3/depots/{depot}/widgets"];
    let paths: Vec<(&str, &Value)> = paths.map(|path| (path, &document["paths"][path])).to_vec();
    insta::assert_yaml_snapshot!("openapi_paths", paths);
}

#[tokio::test]
async fn references_of_a_document_lead_somewhere() {
    let world = World::new();
    let document = document(&world).await;
    let mut found = 0;
    references(&document, &document, &mut found);
    assert!(found > 50, "{found} references");
}

#[tokio::test]
async fn a_document_comes_in_both_forms_to_who_may_read_schemas() {
    let mut world = World::new();
    let json = world.get("/v3/openapi.json").await;
    assert_eq!(json.headers["content-type"], "application/json");
    assert_eq!(json.headers["cache-control"], "no-store");
    let yaml = world.get("/v3/openapi.yaml").await;
    assert_eq!(yaml.headers["content-type"], "application/yaml");
    let read: Value = serde_saphyr::from_slice(&yaml.bytes).unwrap();
    assert_eq!(read, json.body);
    // Also in a browser: the path selects the format.
    let request = http::Request::builder().uri("/v3/openapi.json").header("accept", "text/html");
    let reply = world.send(request.header("user-agent", "Mozilla/5.0"), "").await;
    assert_eq!((reply.status, reply.body), (200, json.body));
    assert_eq!(world.call("POST", "/v3/openapi.json", json!({})).await.code(), "MethodNotAllow");
    for path in ["/v3/openapi", "/v3/openapi.xml", "/v3/depots/d-1/openapi.json"] {
        assert_eq!(world.get(path).await.status, 404, "{path}");
    }

    world.caller = Caller { token_cluster: Some("d-1".to_owned()), ..Caller::user("u-alice") };
    for path in ["/v3/schemas", "/v3/openapi.json"] {
        assert_eq!(world.get(path).await.status, 401, "{path}");
    }
    world.caller = Caller::anonymous();
    for path in ["/v3/schemas", "/v3/openapi.json", "/v3/openapi.yaml"] {
        assert_eq!(world.get(path).await.status, 401, "{path}");
    }
    let public = world.get("/v3-public/openapi.json").await;
    assert_eq!(public.status, 200);
    assert_eq!(
        (&public.body["security"], &public.body["components"]["securitySchemes"]),
        (&Value::Null, &Value::Null)
    );
    let greet = &public.body["paths"]["/v3-public/doors"]["post"]["parameters"][0];
    assert_eq!((&greet["name"], &greet["schema"]["enum"]), (&json!("action"), &json!(["greet"])));
}

#[tokio::test]
async fn a_document_begins_paths_where_the_caller_does() {
    let world = World::new();
    let request = http::Request::builder().uri("/v3/openapi.json");
    let reply = world.send(request.header("x-api-url-prefix", "/behind/a/proxy"), "").await;
    assert_eq!(reply.body["servers"], json!([{"url": "/behind/a/proxy"}]));
    assert_eq!(document(&world).await["servers"], json!([{"url": "/"}]));
}

#[tokio::test]
async fn types_inside_a_resource_are_listed_beside_those_of_the_same_name() {
    let world = World::new();
    let store = || std::sync::Arc::new(super::world::MemoryStore::default());
    let part = StructType::new("part", vec![Field::string("maker")]);
    let shelf = Descriptor::with_store("widget", "widgets", store())
        .version("/v3/depot")
        .methods(Methods::READ)
        .spec([Field::array("parts", FieldType::of("part"))])
        .types([part]);
    world.view.register(shelf);
    let document = document(&world).await;
    let paths = document["paths"].as_object().unwrap();
    let found: Vec<&str> = paths.keys().map(String::as_str).collect();
    let expected = [
        "/v3/depots",
        "/v3/depots/{depot}/widgets",
        "/v3/depots/{depot}/widgets/{id}",
        "/v3/depots/{id}",
        "/v3/widgets",
        "/v3/widgets/{id}",
    ];
    assert_eq!(found, expected);
    let inside = &paths["/v3/depots/{depot}/widgets"];
    assert_eq!(inside["get"]["operationId"], "listInDepotWidget");
    assert_eq!(inside["parameters"][0]["name"], "depot");
    assert_eq!(inside.get("post"), None);
    let parts = "/components/schemas/InDepotWidget/allOf/1/properties/parts/items/$ref";
    assert_eq!(document.pointer(parts), Some(&json!("#/components/schemas/InDepotPart")));
    assert_eq!(document["components"]["schemas"].get("Part"), None);
}

#[tokio::test]
async fn what_only_a_create_must_have_is_required_there_and_nowhere_else() {
    let world = World::new();
    let store = || std::sync::Arc::new(super::world::MemoryStore::default());
    let ring = Descriptor::with_store("ring", "rings", store())
        .spec([
            Field::of("outer", "outer").create_update(),
            Field::int("size").create_update().required().default(3),
            Field::int("port").create_update().range(1, 9),
            Field::string("code").create().valid_chars("a-]").length(2, 4),
            Field::array("ports", FieldType::Int).create_update().range(1, 9),
            Field::new("pin", FieldType::Password).create_update(),
            Field::string("key").write_only(),
            Field::options("mode", &["on", "off"]).create_update().default(""),
        ])
        .types([
            StructType::writable("outer", vec![Field::array("inner", FieldType::of("inner"))]),
            StructType::writable("inner", vec![Field::string("name").required()]),
        ]);
    world.view.register(ring);
    let document = document(&world).await;
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["RingCreate"].get("required"), None);
    assert_eq!(schemas["InnerCreate"]["required"], json!(["name"]));
    assert_eq!(schemas["Inner"].get("required"), None);
    let inner = "/properties/inner/items/$ref";
    let target = |name: &str| schemas[name].pointer(inner).unwrap().as_str().unwrap();
    assert!(target("OuterCreate").ends_with("/InnerCreate"));
    assert!(target("Outer").ends_with("/Inner"));
    let create = &schemas["RingCreate"]["properties"];
    let outer = json!({"allOf": [{"$ref": "#/components/schemas/OuterCreate"}], "nullable": true});
    assert_eq!(create["outer"], outer);
    assert_eq!(create["code"]["pattern"], r"^[a\-\]]*$");
    assert_eq!(
        (&create["code"]["minLength"], &create["code"]["maxLength"]),
        (&json!(2), &json!(4))
    );
    assert_eq!(create["ports"]["items"]["maximum"], 9);
    assert_eq!(create["size"]["default"], 3);
    // Zero is none of those.
    assert_eq!((&create["port"]["minimum"], create["port"].get("default")), (&json!(1), None));
    assert_eq!(create["mode"]["enum"], json!(["on", "off", "", null]));
    assert_eq!(create.get("key"), None);
    let shown = &schemas["Ring"]["allOf"][1]["properties"];
    assert_eq!(shown["pin"]["writeOnly"], true);
    // A response has it, if only one.
    assert_eq!((&shown["key"]["readOnly"], shown["key"].get("writeOnly")), (&json!(true), None));
    assert_eq!(shown["createdTS"]["type"], "integer");
}
