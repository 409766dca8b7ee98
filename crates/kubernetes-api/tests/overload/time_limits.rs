//! Requests that take too long, by a clock that runs as fast as nothing happens.

use http::Method;

use super::world::{MAPS, World};

const NEVER: &str = r#"{"metadata": {"name": "stuck"}, "data": {"seconds": "never"}}"#;

#[tokio::test]
async fn writes_end_after_34_seconds_and_requests_when_they_ask_to() {
    let world = World::start(None).await;
    let json = [("content-type", "application/json")];
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let answer = world.send("admin", Method::POST, MAPS, &json, NEVER).await;
    assert_eq!(begun.elapsed().as_secs(), 34);
    assert_eq!((answer.code, answer.json()["reason"].as_str()), (504, Some("Timeout")));
    let text =
        "Timeout: request did not complete within requested timeout - context deadline exceeded";
    assert_eq!(answer.json()["message"], text);
    assert!(answer.headers.contains_key("x-kubernetes-pf-flowschema-uid"));

    // What kube-apiserver 1.36.3 answers, byte for byte but for the order of fields.
    let begun = tokio::time::Instant::now();
    let path = format!("{MAPS}?timeout=2s");
    let answer = world.send("admin", Method::POST, &path, &json, NEVER).await;
    assert_eq!(begun.elapsed().as_secs(), 2);
    assert_eq!(answer.code, 504);
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    let expected = serde_json::json!({
        "metadata": {}, "status": "Failure", "reason": "Timeout", "details": {}, "code": 504,
        "message": "Timeout: request did not complete within the allotted timeout",
    });
    assert_eq!(answer.json(), expected);
    assert!(answer.text.ends_with('\n'));
    assert!(!answer.headers.contains_key("x-kubernetes-pf-flowschema-uid"));
    assert!(answer.headers.contains_key("audit-id"));

    let answer = world.get("admin", &format!("{MAPS}?timeout=soon")).await;
    assert_eq!(answer.code, 400);
}
