//! Input that no client of good will sends: each gets the documented error, and never a 500.
//!
//! Against a real API server in process, so that what passes the view is validated below it as
//! well.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use identity::TokenKey;
use identity::browser::CsrfToken;

use super::in_process::Cluster;
use super::world::Reply;
use crate::Caller;
use crate::types::urls::encode;
use crate::view::BODY_SIZE_MAX;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const FORM: &str = "application/x-www-form-urlencoded";
/// Levels of nesting that no reader follows to the end.
const DEEP: usize = 10_000;
const MEGABYTE: usize = 1_000_000;

struct World {
    cluster: Cluster,
    depot: String,
    widget: String,
}

impl World {
    async fn start() -> Self {
        let cluster = Cluster::start().await;
        let depot = cluster.depot("north").await;
        let widget = cluster.widget(&depot, "One").await;
        Self { cluster, depot, widget }
    }

    async fn send(&self, method: &str, path: &str, content_type: &str, body: Bytes) -> Reply {
        let request = Request::builder().method(method).uri(path).header("host", "h");
        let request = request.header("content-type", content_type).body(body).unwrap();
        self.cluster.send("admin", request).await
    }

    async fn call(&self, method: &str, path: &str) -> Reply {
        self.send(method, path, JSON, Bytes::new()).await
    }

    /// Nothing that was sent has changed or broken anything.
    async fn is_unharmed(&self) {
        let path = format!("/v3/depots/{}/widgets", self.depot);
        assert_eq!(self.call("GET", &path).await.ids(), [self.widget.as_str()]);
    }
}

#[track_caller]
fn refused(reply: &Reply, status: u16, code: &str, what: &str) {
    // A path may come back, a body never does.
    let length_max = 4_000 + if what.starts_with('/') { what.len() } else { 0 };
    let what: String = what.chars().take(120).collect();
    assert_eq!((reply.status, reply.code()), (status, code), "{what}: {}", reply.body);
    assert_eq!(reply.body["type"], "error", "{what}");
    assert_eq!(reply.body["status"], status, "{what}");
    let message = reply.body["message"].as_str().unwrap_or_default();
    assert!((1..length_max).contains(&message.len()), "{what}: {} bytes", message.len());
}

#[tokio::test]
async fn what_is_no_type_is_not_found() {
    let world = World::start().await;
    let long = "x".repeat(60_000);
    let deep = "/x".repeat(DEEP);
    for path in [
        "/v3/nothings",
        "/v3/nothings/x/y/z",
        "/v3/..",
        "/v3/%2e%2e/widgets",
        "/v3/widgets%00",
        "/v3/widgets%2Fx",
        "/v3/%ff%fe",
        "/v3/schemas/nothing",
        "/v3/schemas/%00",
        "/v3/depots/schemas/nothing",
        "/v3/depots/x/y/z",
        "/v3/apis/example.io",
        &format!("/v3/{long}"),
        &format!("/v3{deep}"),
        &format!("/v3/depots/x{deep}"),
    ] {
        for method in ["GET", "PUT", "DELETE", "POST"] {
            let reply = world.call(method, path).await;
            let is_schema = path.contains("schemas/");
            match method {
                "GET" => refused(&reply, 404, "NotFound", path),
                _ if is_schema => refused(&reply, 405, "MethodNotAllow", path),
                // Below a resource, what is no type could be a link, and these are read only.
                _ if reply.status == 405 => refused(&reply, 405, "MethodNotAllow", path),
                _ => refused(&reply, 404, "NotFound", path),
            }
        }
    }
    world.is_unharmed().await;
}

#[tokio::test]
async fn what_is_no_id_is_not_found_by_any_method() {
    let world = World::start().await;
    let depot = &world.depot;
    let mut ids: Vec<String> = (0..=0x7f_u8).map(|byte| format!("%{byte:02X}")).collect();
    let parts = ["%FF", "%C3%A9", "%E2%80%A8", "%F0%9F%90%84", "..", "%2e%2e", "A_B", "x%zz"];
    ids.extend(parts.map(str::to_owned));
    ids.push("x".repeat(60_000));
    let mut paths = Vec::new();
    for id in &ids {
        paths.push(format!("/v3/depots/a{id}b"));
        paths.push(format!("/v3/widgets/{depot}:a{id}b"));
        paths.push(format!("/v3/widgets/{depot}{id}:b"));
    }
    for id in [":", "::", "a:", ":b", "a:b:c", "%3A", ".:.", "..:..", "a%2Fb", "a%252Fb"] {
        paths.push(format!("/v3/depots/{id}"));
        paths.push(format!("/v3/widgets/{id}"));
    }
    // As long as a path can be: the one of the object would be longer.
    let (prefix, length_max) = ("/v3/depots/", usize::from(u16::MAX) - 1);
    paths.push(format!("{prefix}{}", "x".repeat(length_max - prefix.len())));
    for path in paths {
        for method in ["GET", "PUT", "DELETE"] {
            refused(&world.call(method, &path).await, 404, "NotFound", &path);
        }
    }
    let reply = world.call("POST", "/v3/widgets/a%2Fb?action=paint").await;
    refused(&reply, 404, "NotFound", "an action");
    world.is_unharmed().await;
}

/// Bodies that are no object that could be read.
fn unreadable() -> Vec<(&'static str, Bytes)> {
    let nested = |open: &str, close: &str| {
        let text = format!("{}{}", open.repeat(DEEP), close.repeat(DEEP));
        Bytes::from(text)
    };
    let bomb = (0..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, i| {
        format!("{text}a{next}: &a{next} [*a{i}, *a{i}]\n", next = i + 1)
    });
    let mut bodies = vec![
        (JSON, nested("[", "]")),
        (JSON, nested("{\"color\":", "}")),
        (JSON, Bytes::from("[".repeat(DEEP))),
        (YAML, nested("[", "]")),
        (YAML, nested("{a: ", "}")),
        (YAML, Bytes::from("- ".repeat(DEEP))),
        (YAML, bomb.into()),
        (JSON, Bytes::from_static(b"{\"name\": \"\xff\xfe\"}")),
        (YAML, Bytes::from_static(b"name: \xff\xfe")),
        ("multipart/form-data; boundary=x", Bytes::from_static(b"--x--")),
    ];
    for text in
        ["null", "1", "true", "\"x\"", "[]", "[{}]", "{", "{\"a\":}", "{}{}", "{\"a\":1e999}"]
    {
        bodies.push((JSON, Bytes::from_static(text.as_bytes())));
    }
    for text in ["{\"name\": \"\\ud800\"}", "\u{feff}[]", "name=x", "<name>x</name>"] {
        bodies.push((JSON, Bytes::from_static(text.as_bytes())));
    }
    for text in ["- a", "text", "a: b: c", "a: [", "*a", "\"a"] {
        bodies.push((YAML, Bytes::from_static(text.as_bytes())));
    }
    bodies
}

#[tokio::test]
async fn bodies_that_are_no_object_are_refused_as_such() {
    let world = World::start().await;
    let widget = format!("/v3/widgets/{}", world.widget);
    let action = format!("{widget}?action=paint");
    for (content_type, body) in unreadable() {
        let what = String::from_utf8_lossy(&body).into_owned();
        for (method, path) in [
            ("POST", "/v3/widgets"),
            ("PUT", widget.as_str()),
            ("POST", action.as_str()),
            ("POST", "/v3/widgets?action=audit"),
        ] {
            let reply = world.send(method, path, content_type, body.clone()).await;
            refused(&reply, 422, "InvalidBodyContent", &what);
        }
    }
    let large = Bytes::from(vec![b' '; BODY_SIZE_MAX + 1]);
    for content_type in [JSON, YAML, FORM] {
        let reply = world.send("POST", "/v3/widgets", content_type, large.clone()).await;
        refused(&reply, 413, "RequestEntityTooLarge", content_type);
    }
    world.is_unharmed().await;
}

#[tokio::test]
async fn values_of_the_wrong_shape_or_size_name_their_field() {
    let world = World::start().await;
    let widget = format!("/v3/widgets/{}", world.widget);
    let huge = format!("\"{}\"", "x".repeat(MEGABYTE));
    let many = format!("[{}null]", "null,".repeat(100_000));
    let wrong = ["{}", "[]", "[[\"x\"]]", "{\"a\": {\"b\": []}}"];
    let mut cases: Vec<(&str, &str, &str)> = Vec::new();
    for value in wrong {
        cases.extend(
            ["color", "size", "weight", "pin"].map(|field| (field, value, "InvalidFormat")),
        );
    }
    for field in ["labels", "annotations", "dimensions", "parts"] {
        for value in ["1", "true", "\"x\"", "[]", "[{}]"] {
            cases.push((field, value, "InvalidFormat"));
        }
    }
    cases.extend([
        ("tags", "{}", "InvalidFormat"),
        ("tags", &many, "NotNullable"),
        ("tags", "[{}]", "InvalidFormat"),
        ("labels", "{\"a\": {}}", "InvalidFormat"),
        ("parts", "{\"a\": \"many\"}", "InvalidFormat"),
        ("size", &huge, "InvalidOption"),
        ("weight", &huge, "InvalidFormat"),
        ("weight", "1e300", "InvalidFormat"),
        ("weight", "18446744073709551615", "InvalidFormat"),
        ("enabled", &huge, "InvalidFormat"),
        ("dimensions", "{\"depth\": 1}", "InvalidFormat"),
    ]);
    for (field, value, code) in cases {
        let body =
            format!("{{\"name\": \"x\", \"depotId\": \"{}\", \"{field}\": {value}}}", world.depot);
        for (method, path) in [("POST", "/v3/widgets"), ("PUT", widget.as_str())] {
            let reply = world.send(method, path, JSON, body.clone().into()).await;
            refused(&reply, 422, code, &format!("{method} {field} {value}"));
        }
    }
    // The API server validates these: invalid keys and values of labels, invalid names.
    for (field, value) in [
        ("labels", "{\"not a key\": \"x\"}".to_owned()),
        ("labels", format!("{{\"a\": {huge}}}")),
        ("labels", format!("{{{huge}: \"x\"}}")),
        ("annotations", format!("{{\"a\": {huge}}}")),
    ] {
        let body =
            format!("{{\"name\": \"x\", \"depotId\": \"{}\", \"{field}\": {value}}}", world.depot);
        let reply = world.send("POST", "/v3/widgets", JSON, body.into()).await;
        assert_eq!((reply.status, reply.code()), (422, "Invalid"), "{field}");
    }
    for depot in [huge.as_str(), "\"a/b\"", "\"..\"", "\":\"", "\"A b\""] {
        let body = format!("{{\"name\": \"x\", \"depotId\": {depot}}}");
        let reply = world.send("POST", "/v3/widgets", JSON, body.into()).await;
        let what: String = depot.chars().take(40).collect();
        assert!((400..500).contains(&reply.status), "{what}: {} {}", reply.status, reply.code());
    }
    world.is_unharmed().await;
}

#[tokio::test]
async fn malformed_queries_and_headers_are_ignored() {
    let world = World::start().await;
    let many: String = (0..2_000).map(|i| format!("&color_in={i}&x{i}=y")).collect();
    let long = encode(&"é".repeat(5_000));
    for query in [
        "limit=-5&marker=%00&sort=nothing&order=sideways",
        "limit=99999999999999999999&limit=1",
        "sort=pin&sort=&order=",
        "_method=BREW",
        "_method=",
        "_format=%00&_edit=1&_export=maybe",
        "&&&==&=x&%=%&%zz=%zz&a=b=c",
        "labels.x=1&metadata.name=x&spec=x&__proto__=x&color_=x&_color=x&_=x",
        "pin=x&secret=x&pin_ne=x",
        &format!("x=1{many}&color_in=nothing&color_in="),
        &format!("{long}={long}"),
    ] {
        let reply = world.call("GET", &format!("/v3/widgets?{query}")).await;
        assert_eq!(reply.status, 200, "{query}: {}", reply.body);
        assert_eq!(reply.ids(), [world.widget.as_str()], "{query}");
    }
    let long = HeaderValue::from_bytes(&[b'a'; 60_000]).unwrap();
    let latin = HeaderValue::from_bytes(b"\xff\xfe<x>").unwrap();
    for name in [
        "host",
        "accept",
        "content-type",
        "cookie",
        "user-agent",
        "x-api-host",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-api-url-prefix",
    ] {
        for value in [&long, &latin, &HeaderValue::from_static("")] {
            let mut request = Request::get("/v3/widgets").body(Bytes::new()).unwrap();
            let name = HeaderName::from_static(name);
            request.headers_mut().insert(name.clone(), value.clone());
            let reply = world.cluster.send("admin", request).await;
            assert_eq!(reply.status, 200, "{name} {value:?}");
            let own = reply.body["links"]["self"].as_str().unwrap();
            assert!(!own.contains('<'), "{name}: {own}");
        }
    }
}

#[tokio::test]
async fn a_browser_without_the_token_of_its_page_changes_nothing() {
    let world = World::start().await;
    let widget = format!("/v3/widgets/{}", world.widget);
    for (method, path) in [
        ("POST", "/v3/widgets".to_owned()),
        ("PUT", widget.clone()),
        ("DELETE", widget.clone()),
        ("POST", format!("{widget}?action=remove")),
        ("POST", format!("{widget}?action=paint")),
        ("POST", format!("{widget}?_method=DELETE")),
        ("GET", format!("{widget}?_method=DELETE")),
        ("GET", format!("{widget}?_method=delete&_format=html")),
        ("DELETE", format!("{widget}?_method=GET")),
        ("DELETE", format!("{widget}?CSRF=x")),
        ("PATCH", widget.clone()),
    ] {
        for cookie in [None, Some("CSRF="), Some("CSRF=y"), Some("CSRF=%00"), Some(";;=;CSRF")] {
            let mut request = Request::builder().method(method).uri(&path);
            request = request.header("content-type", FORM);
            if let Some(cookie) = cookie {
                request = request.header("cookie", cookie).header("x-api-csrf", "y");
            }
            let body = Bytes::from_static(b"name=x&depotId=y");
            let key = TokenKey::parse("token-a:key").unwrap();
            let caller = Caller { csrf: Some(CsrfToken::of(&key)), ..Caller::user("admin") };
            let reply = world.cluster.send_as(&caller, request.body(body).unwrap()).await;
            refused(&reply, 422, "InvalidCSRFToken", &format!("{method} {path} {cookie:?}"));
        }
    }
    world.is_unharmed().await;
}
