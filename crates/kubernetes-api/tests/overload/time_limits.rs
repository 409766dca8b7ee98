//! Requests that take too long, with a paused clock.

use http::Method;

use super::world::{MAPS, World};

const NEVER: &str = r#"{"metadata": {"name": "stuck"}, "data": {"seconds": "never"}}"#;

#[tokio::test]
async fn writes_end_after_34_seconds_and_requests_at_their_own_timeout() {
    let world = World::start(None).await;
    let json = [("content-type", "application/json")];
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let response = world.send("admin", Method::POST, MAPS, &json, NEVER).await;
    assert_eq!(begun.elapsed().as_secs(), 34);
    assert_eq!((response.code, response.json()["reason"].as_str()), (504, Some("Timeout")));
    let text =
        "Timeout: request did not complete within requested timeout - context deadline exceeded";
    assert_eq!(response.json()["message"], text);
    assert!(response.headers.contains_key("x-kubernetes-pf-flowschema-uid"));

    // The response of kube-apiserver 1.36.3, byte for byte except for the order of fields.
    let begun = tokio::time::Instant::now();
    let path = format!("{MAPS}?timeout=2s");
    let response = world.send("admin", Method::POST, &path, &json, NEVER).await;
    assert_eq!(begun.elapsed().as_secs(), 2);
    assert_eq!(response.code, 504);
    assert_eq!(response.headers["content-type"], "text/plain; charset=utf-8");
    let expected = serde_json::json!({
        "metadata": {}, "status": "Failure", "reason": "Timeout", "details": {}, "code": 504,
        "message": "Timeout: request did not complete within the allotted timeout",
    });
    assert_eq!(response.json(), expected);
    assert!(response.text.ends_with('\n'));
    assert!(!response.headers.contains_key("x-kubernetes-pf-flowschema-uid"));
    assert!(response.headers.contains_key("audit-id"));

    let response = world.get("admin", &format!("{MAPS}?timeout=soon")).await;
    assert_eq!(response.code, 400);
}
