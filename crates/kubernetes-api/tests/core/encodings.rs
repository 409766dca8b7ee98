//! Encodings of requests and responses that few clients use. The texts are those of kube-apiserver
//! 1.36.

use apiserver::UserInfo;
use apiserver::attributes::GROUP_MASTERS;
use http::{Request, Response};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::World;
use super::requests::COLLECTION;

async fn send(world: &World, request: http::request::Builder, body: &str) -> Response<Vec<u8>> {
    let mut request = request.body(body.to_owned()).unwrap();
    request.extensions_mut().insert(UserInfo::new("admin", &[GROUP_MASTERS]));
    let (parts, body) = world.server.handle(request).await.into_parts();
    Response::from_parts(parts, body.collect().await.unwrap().to_bytes().to_vec())
}

async fn yaml(world: &World, request: http::request::Builder, body: &str) -> (u16, Value, String) {
    let response = send(world, request, body).await;
    let warnings = response.headers().get_all("warning").iter();
    let warnings: Vec<&str> = warnings.map(|value| value.to_str().unwrap()).collect();
    let body = serde_json::from_slice(response.body()).unwrap();
    (response.status().as_u16(), body, warnings.join(", "))
}

#[tokio::test]
async fn large_objects_are_compressed_in_every_response() {
    let world = World::start().await;
    let map = |size: usize| json!({"metadata": {"name": format!("a{size}")}, "data": {"key": "x".repeat(size)}});
    let json = "application/json";
    for (size, compressed) in [(200_000, true), (100_000, false)] {
        let create = Request::post(COLLECTION).header("content-type", json);
        let create = create.header("accept-encoding", "gzip");
        let created = send(&world, create, &map(size).to_string()).await;
        assert_eq!(created.status(), 201);
        let path = format!("{COLLECTION}/a{size}");
        let read = send(&world, Request::get(&path).header("accept-encoding", "gzip"), "").await;
        let plain = send(&world, Request::get(&path), "").await;
        assert!(plain.headers().get("content-encoding").is_none());
        for response in [&created, &read] {
            let coding = response.headers().get("content-encoding").map(|value| value.as_bytes());
            assert_eq!(coding, compressed.then_some(&b"gzip"[..]), "{size}");
            assert_eq!(response.headers().contains_key("vary"), compressed);
            assert_eq!(response.body().len() < 10_000, compressed);
        }
        if compressed {
            let mut unpacked = Vec::new();
            let mut decoder = flate2::read::GzDecoder::new(read.body().as_slice());
            std::io::Read::read_to_end(&mut decoder, &mut unpacked).unwrap();
            assert_eq!(&unpacked, plain.body());
        }
    }
}

#[tokio::test]
async fn an_old_watch_path_may_name_one_object() {
    let world = World::start().await;
    for name in ["a", "b"] {
        let create = Request::post(COLLECTION).header("content-type", "application/json");
        let body = json!({"metadata": {"name": name}}).to_string();
        assert_eq!(send(&world, create, &body).await.status(), 201);
    }
    let watch = async |options: &str| {
        let path = COLLECTION.replace("/v1/", "/v1/watch/");
        let path = format!("{path}/a?timeoutSeconds=1{options}");
        send(&world, Request::get(path), "").await
    };
    for options in ["", "&fieldSelector=metadata.name%3Da"] {
        let response = watch(options).await;
        let event: Value = serde_json::from_slice(response.body()).expect("one event");
        assert_eq!(event["object"]["metadata"]["name"], "a");
    }
    let response = watch("&fieldSelector=metadata.name%3Db").await;
    let status: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(status["code"], 400);
    assert_eq!(status["message"], "fieldSelector metadata.name doesn't match requested name");
}

const TWICE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: d\n  name: e\n\
                     data:\n  a: \"1\"\n  a: \"2\"\n  a: \"3\"\n";
const LINES: &str = "yaml: unmarshal errors:\n  line 5: key \"name\" already set in map\n  \
                     line 8: key \"a\" already set in map\n  line 9: key \"a\" already set in map";

#[tokio::test]
async fn duplicate_keys_in_yaml_are_reported_with_their_lines() {
    let world = World::start().await;
    let create = |validation: &str| {
        let path = format!("{COLLECTION}?dryRun=All&fieldValidation={validation}");
        Request::post(path).header("content-type", "application/yaml")
    };
    let (code, body, _) = yaml(&world, create("Strict"), TWICE).await;
    assert_eq!(code, 400);
    let text =
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: ";
    assert_eq!(body["message"], format!("{text}{LINES}"));
    let (code, body, warnings) = yaml(&world, create("Warn"), TWICE).await;
    assert_eq!((code, &body["data"]["a"]), (201, &"3".into()));
    let expected = ["line 5: key \\\"name\\\"", "line 8: key \\\"a\\\"", "line 9: key \\\"a\\\""];
    let expected = expected.map(|key| format!("299 - \"{key} already set in map\"")).join(", ");
    assert_eq!(warnings, expected);
    let (code, body, warnings) = yaml(&world, create("Ignore"), TWICE).await;
    assert_eq!((code, &body["metadata"]["name"], warnings.as_str()), (201, &"e".into(), ""));
    let options = "dryRun=All&fieldManager=x&fieldValidation=Strict";
    let apply = Request::patch(format!("{COLLECTION}/e?{options}"));
    let apply = apply.header("content-type", "application/apply-patch+yaml");
    let (code, body, _) = yaml(&world, apply, TWICE).await;
    assert_eq!(code, 400);
    let text = "error strict decoding YAML: error converting YAML to JSON: ";
    assert_eq!(body["message"], format!("{text}{LINES}"));
}

#[tokio::test]
async fn yaml_that_repeats_itself_a_million_times_is_refused() {
    let world = World::start().await;
    // Each line expands to ten of the one before.
    let tenfold = |level: usize| {
        let before = vec![format!("*l{}", level - 1); 10].join(", ");
        format!("  l{level}: &l{level} [{before}]\n")
    };
    let levels: String = (1..7).map(tenfold).collect();
    let body = format!("metadata:\n  name: many\ndata:\n  l0: &l0 text\n{levels}");
    let create = Request::post(COLLECTION).header("content-type", "application/yaml");
    let (code, refused, _) = yaml(&world, create, &body).await;
    assert_eq!((code, &refused["reason"]), (400, &json!("BadRequest")), "{refused}");
    let message = refused["message"].as_str().unwrap();
    assert!(message.starts_with("the body of the request is not valid YAML: "), "{message}");
    assert!(message.contains("alias"), "{message}");
}
