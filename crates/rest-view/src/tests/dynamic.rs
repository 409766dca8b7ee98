//! Types that come and go while requests are served.

use serde_json::{Value, json};

use super::world::World;
use crate::DynamicSchema;
use crate::dynamic::InvalidSchema;

fn driver() -> Value {
    json!({
        "metadata": {"name": "cutterconfig"},
        "spec": {"schemaName": "cutterConfig", "resourceFields": {
            "bladeLength": {
                "type": "int", "create": true, "update": true, "default": {"intValue": 12},
                "min": 1, "max": 40, "description": "Length of the blade",
            },
            "accessKey": {"type": "password", "create": true, "update": true, "required": true},
            "zones": {
                "type": "array[string]", "create": true, "nullable": true,
                "default": {"stringSliceValue": ["a"]},
            },
            "bladeLabels": {
                "type": "array[string]", "create": true, "update": true,
                "default": {"stringSliceValue": null},
            },
            "mode": {
                "type": "enum", "create": true, "options": ["fast", "slow"],
                "default": {"stringValue": "slow"},
            },
        }},
    })
}

fn embedding() -> Value {
    json!({
        "metadata": {"name": "widget"},
        "spec": {"embed": true, "embedType": "widget", "resourceFields": {
            "cutterConfig": {
                "type": "cutterConfig", "create": true, "update": true, "nullable": true,
            },
        }},
    })
}

#[tokio::test]
async fn a_driver_adds_a_type_and_the_field_that_takes_it() {
    let world = World::new();
    let added = [driver(), embedding()].map(|object| DynamicSchema::of(&object).unwrap());
    world.view.change(|registry| {
        for schema in &added {
            assert!(schema.add(registry, "/v3"));
        }
    });

    let schema = world.get("/v3/schemas/cutterConfig").await.body;
    let blade = json!({
        "type": "int", "create": true, "update": true, "default": 12, "min": 1, "max": 40,
        "description": "Length of the blade", "dynamicField": true,
    });
    assert_eq!(schema["resourceFields"]["bladeLength"], blade);
    assert_eq!(schema["resourceFields"]["mode"]["default"], "slow");
    assert_eq!(schema["resourceFields"]["zones"]["default"], json!(["a"]));
    let widget = world.get("/v3/schemas/widget").await.body;
    assert_eq!(widget["resourceFields"]["cutterConfig"]["dynamicField"], true);
    assert!(world.get("/v3/schemas").await.ids().contains(&"cutterConfig"));

    let make = |config: Value| {
        let body = json!({"name": "x", "depotId": "d-1", "cutterConfig": config});
        world.call("POST", "/v3/widgets", body)
    };
    let refused = make(json!({"bladeLength": 3})).await;
    assert_eq!(
        (refused.code(), refused.body["fieldName"].as_str()),
        ("MissingRequired", Some("accessKey"))
    );
    assert_eq!(make(json!({"accessKey": "k", "bladeLength": 41})).await.code(), "MaxLimitExceeded");
    let made = make(json!({"accessKey": "k"})).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let shown = json!({"bladeLength": 12, "mode": "slow", "zones": ["a"]});
    assert_eq!(made.body["cutterConfig"], shown, "and no password");
    let (depot, name) = made.body["id"].as_str().unwrap().split_once(':').unwrap();
    let stored = world.widgets.stored(depot, name).unwrap();
    assert_eq!(stored["spec"]["cutterConfig"]["accessKey"], "k");

    for labels in [json!({"a": "b"}), json!(["a=b"])] {
        let made = make(json!({"accessKey": "k", "bladeLabels": labels})).await;
        assert_eq!(made.body["cutterConfig"]["bladeLabels"], labels);
    }
    let wrong = make(json!({"accessKey": "k", "bladeLabels": {"a": {}}})).await;
    assert_eq!(wrong.code(), "InvalidFormat");
    let wrong = make(json!({"accessKey": "k", "zones": {"a": "b"}})).await;
    assert_eq!(wrong.code(), "InvalidFormat");

    world.view.change(|registry| added.iter().for_each(|schema| schema.remove(registry, "/v3")));
    assert_eq!(world.get("/v3/schemas/cutterConfig").await.status, 404);
    let widget = world.get("/v3/schemas/widget").await.body;
    assert_eq!(widget["resourceFields"].get("cutterConfig"), None);
    assert_eq!(make(json!({"accessKey": "k"})).await.body.get("cutterConfig"), None);
}

#[tokio::test]
async fn objects_that_describe_no_type_are_reported() {
    let with = |change: fn(&mut Value)| {
        let mut object = embedding();
        change(&mut object);
        DynamicSchema::of(&object).unwrap_err()
    };
    let no_embed_type = with(|object| object["spec"]["embedType"] = "".into());
    assert_eq!(no_embed_type, InvalidSchema::NoEmbedType);
    let of_no_type =
        with(|object| object["spec"]["resourceFields"]["cutterConfig"]["type"] = "array[".into());
    let (field, kind) = ("cutterConfig".to_owned(), "array[".to_owned());
    assert_eq!(of_no_type, InvalidSchema::UnknownType { field, kind });
    let no_map = with(|object| object["spec"]["resourceFields"] = json!([1]));
    assert!(matches!(no_map, InvalidSchema::Unreadable(_)), "{no_map}");
    assert_eq!(DynamicSchema::of(&json!({})), Err(InvalidSchema::NoName));
    let world = World::new();
    world.view.change(|registry| {
        let mut nowhere = DynamicSchema::of(&embedding()).unwrap();
        nowhere.id = "gadget".to_owned();
        assert!(!nowhere.add(registry, "/v3"));
    });
}
