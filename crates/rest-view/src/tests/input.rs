//! What is checked of each field before anything is written.

use std::sync::Arc;

use serde_json::{Value, json};

use super::world::{MemoryStore, World};
use crate::{Descriptor, Field, FieldType, Methods};

/// A world with the type `sample`, which has a field of every type.
fn world() -> World {
    let world = World::new();
    let sample = Descriptor::with_store("sample", "samples", Arc::<MemoryStore>::default())
        .methods(Methods::ALL)
        .spec(
            [
                Field::string("text").length(2, 5),
                Field::string("letters").valid_chars("abc"),
                Field::string("plain").invalid_chars("<>"),
                Field::string("stored").nullable(false),
                Field::new("label", FieldType::DnsLabel),
                Field::new("restricted", FieldType::DnsLabelRestricted),
                Field::new("host", FieldType::Hostname),
                Field::new("int", FieldType::Int).range(-1, 9).without_default(),
                Field::new("float", FieldType::Float),
                Field::boolean("flag"),
                Field::new("json", FieldType::Json),
                Field::new("port", FieldType::IntOrString),
                Field::date("day"),
                Field::options("choice", &["a", "b"]),
                Field::reference("widgetId", "widget"),
                Field::array("list", FieldType::Int),
                Field::array("words", FieldType::String).length(1, 3),
                Field::map("map", FieldType::Boolean),
                Field::map("texts", FieldType::String),
                Field::of("dimensions", "dimensions"),
                Field::new("hidden", FieldType::Password),
            ]
            .map(Field::create_update),
        )
        .spec([
            Field::array("needed", FieldType::String).create().required().default(json!(["x"])),
            Field::string("fixed").create(),
            Field::string("shown"),
        ]);
    world.view.register(sample);
    world
}

#[tokio::test]
async fn values_are_read_by_the_type_of_their_field() {
    let world = world();
    for (field, sent, shown) in [
        ("text", json!("  abc "), json!("abc")),
        ("text", json!(123), json!("123")),
        ("label", json!("a-1"), json!("a-1")),
        ("label", json!(""), Value::Null),
        ("restricted", json!("a1"), json!("a1")),
        ("host", json!("a.b-c.example"), json!("a.b-c.example")),
        ("int", json!("7"), json!(7)),
        ("int", json!(7.0), json!(7)),
        ("int", json!(["7"]), json!(7)),
        ("float", json!("1.5"), json!(1.5)),
        ("flag", json!("true"), json!(true)),
        ("flag", json!(""), json!(false)),
        ("json", json!([{"a": 1}]), json!([{"a": 1}])),
        ("port", json!("80"), json!(80)),
        ("port", json!("http"), json!("http")),
        ("day", json!("2024-01-01T00:00:00Z"), json!("2024-01-01T00:00:00Z")),
        ("day", json!(""), Value::Null),
        ("choice", json!("a"), json!("a")),
        ("choice", json!(""), Value::Null),
        ("widgetId", json!(" d-1:w-1 "), json!("d-1:w-1")),
        ("widgetId", json!(""), Value::Null),
        ("list", json!([1, "2"]), json!([1, 2])),
        // A single item is accepted as a list of one.
        ("list", json!("3"), json!([3])),
        ("map", json!({"a": "true", "b": null}), json!({"a": true, "b": null})),
        ("texts", json!({"a": " b\n", "c": 1}), json!({"a": " b\n", "c": "1"})),
        ("dimensions", json!({"height": "3", "other": 1}), json!({"height": 3})),
        ("hidden", json!(" x "), Value::Null),
        ("shown", json!("ignored"), Value::Null),
        ("nothing", json!("ignored"), Value::Null),
    ] {
        let body = json!({"name": "s", field: sent});
        let reply = world.call("POST", "/v3/samples", body).await;
        assert_eq!(reply.status, 201, "{field} {sent}: {}", reply.body);
        assert_eq!(reply.body[field], shown, "{field} {sent}");
    }
    let reply = world.call("POST", "/v3/samples", json!({"name": "s"})).await;
    assert_eq!(reply.body["needed"], json!(["x"]), "defaults are filled in");
}

#[tokio::test]
async fn each_rule_that_a_value_breaks_has_its_own_code() {
    let world = world();
    for (field, sent, code) in [
        ("text", json!("a"), "MinLengthExceeded"),
        ("text", json!("abcdef"), "MaxLengthExceeded"),
        ("text", json!([]), "InvalidFormat"),
        ("text", json!(["ab", "cd"]), "InvalidFormat"),
        ("letters", json!("abd"), "InvalidCharacters"),
        ("plain", json!("a<b"), "InvalidCharacters"),
        ("stored", Value::Null, "NotNullable"),
        ("label", json!("Upper"), "InvalidFormat"),
        ("label", json!("a".repeat(64)), "InvalidFormat"),
        ("restricted", json!("1a"), "InvalidFormat"),
        ("host", json!("a..b"), "InvalidFormat"),
        ("host", json!("a.".repeat(127)), "InvalidFormat"),
        ("int", json!(10), "MaxLimitExceeded"),
        ("int", json!(-2), "MinLimitExceeded"),
        ("int", json!(1.5), "InvalidFormat"),
        ("int", json!(true), "InvalidFormat"),
        ("float", json!("x"), "InvalidFormat"),
        ("flag", json!("perhaps"), "InvalidFormat"),
        ("port", json!(true), "InvalidFormat"),
        ("day", json!("yesterday"), "InvalidDateFormat"),
        ("choice", json!("c"), "InvalidOption"),
        ("list", json!({"a": 1}), "InvalidFormat"),
        ("list", json!("x"), "InvalidFormat"),
        ("list", json!([1, null]), "NotNullable"),
        ("words", json!(["abcd"]), "MaxLengthExceeded"),
        ("map", json!([]), "InvalidFormat"),
        // A text says nothing of keys; to take it and store nothing would lose it silently.
        ("map", json!("100m"), "InvalidFormat"),
        ("map", json!({"a": "perhaps"}), "InvalidFormat"),
        ("dimensions", json!("tall"), "InvalidFormat"),
    ] {
        for method in ["POST", "PUT"] {
            let path = if method == "POST" { "/v3/samples" } else { "/v3/samples/s" };
            let reply = world.call(method, path, json!({"name": "s", field: sent})).await;
            let found = (reply.status, reply.code(), reply.body["fieldName"].as_str());
            assert_eq!(found, (422, code, Some(field)), "{method} {sent}: {}", reply.body);
        }
    }
}

#[tokio::test]
async fn what_an_operation_does_not_take_is_ignored() {
    let world = world();
    let body = json!({"name": "s", "fixed": "first", "text": "abc", "int": 3});
    assert_eq!(world.call("POST", "/v3/samples", body).await.status, 201);
    let body = json!({"name": "t", "fixed": "second", "shown": "x", "text": null, "status": {}});
    let reply = world.call("PUT", "/v3/samples/s", body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let found = ["id", "fixed", "shown", "text", "int"].map(|name| &reply.body[name]);
    assert_eq!(found, [&json!("s"), &json!("first"), &Value::Null, &Value::Null, &json!(3)]);
}

#[tokio::test]
async fn a_refusal_repeats_no_more_than_the_beginning_of_a_long_text() {
    let world = world();
    let body = json!({"name": "s", "choice": "é".repeat(500_000)});
    let reply = world.call("POST", "/v3/samples", body).await;
    assert_eq!(reply.code(), "InvalidOption");
    assert!(reply.bytes.len() < 1_000, "{} bytes", reply.bytes.len());
}

#[tokio::test]
async fn a_form_sends_texts_that_are_read_by_the_type_of_their_field() {
    let world = world();
    let form = |body: &'static str| {
        let request = http::Request::builder().method("POST").uri("/v3/samples");
        let request = request.header("content-type", "application/x-www-form-urlencoded; x=y");
        world.send(request, body)
    };
    let reply = form("name=s&text=a+b&list=1&list=2&flag=true&int=4").await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    let found = ["text", "list", "flag", "int"].map(|name| &reply.body[name]);
    assert_eq!(found, [&json!("a b"), &json!([1, 2]), &json!(true), &json!(4)]);
    assert_eq!(form("name=s&int=4&int=5").await.code(), "InvalidFormat");
    // What curl sends where nobody says what it is.
    assert_eq!(form("{\"name\": \"s\", \"int\": 3}").await.body["int"], 3);
    let request = http::Request::builder().method("POST").uri("/v3/samples");
    let request = request.header("content-type", "multipart/form-data; boundary=b");
    let reply = world.send(request, "--b--").await;
    assert_eq!((reply.status, reply.code()), (422, "InvalidBodyContent"));
}
