//! What is refused before a user is written, and who a user says they are.

use rest_view::{ApiVersion, Caller, Registry, Urls};
use serde_json::json;

use super::*;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

fn validated(input: Value, stored: Option<Value>) -> Result<(), ApiError> {
    let (caller, urls) = (Caller::user("u-1"), Urls::new("https://drover.example"));
    let registry = Registry::new([ApiVersion::new("g", "v3", "/v3")], []);
    let now = "2024-01-01T00:00:00Z".parse().unwrap();
    let presentation = Presentation {
        caller: &caller,
        urls: &urls,
        registry: &registry,
        now,
        action_links: false,
    };
    validate(&presentation, &object(input), stored.as_ref())
}

#[test]
fn a_login_name_needs_a_password() {
    let error = validated(json!({"username": "ann"}), None).unwrap_err();
    assert_eq!((error.status, error.code.as_str()), (422, "MissingRequired"));
    assert!(validated(json!({"username": "ann", "password": "long enough"}), None).is_ok());
    assert!(validated(json!({"name": "Somebody from a directory"}), None).is_ok());
}

#[test]
fn nobody_locks_themselves_out() {
    let me = json!({"metadata": {"name": "u-1"}});
    let other = json!({"metadata": {"name": "u-2"}});
    let error = validated(json!({"enabled": false}), Some(me)).unwrap_err();
    assert_eq!((error.status, error.code.as_str()), (422, "InvalidAction"));
    assert!(validated(json!({"enabled": false}), Some(other)).is_ok());
}

#[test]
fn users_of_the_server_itself_are_distinguished() {
    assert!(is_system(&json!({"principalIds": ["local://x", "system://local"]})));
    assert!(!is_system(&json!({"principalIds": ["local://x"]})));
    assert!(!is_system(&json!({})));
}
