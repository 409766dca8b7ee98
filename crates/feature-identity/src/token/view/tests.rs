//! What of a token is shown, and to whom.

use identity::{Secret, TokenKey, hash_key};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rest_view::{ApiVersion, RestView, Urls};

use super::*;
use crate::token::issue::object;

fn issued() -> Issued {
    let request = TokenRequest {
        user_id: "u-1".to_owned(),
        kind: KIND_API,
        description: "ci".to_owned(),
        ttl_millis: 3_600_000,
        cluster: None,
        project: None,
        derived: true,
        auth_provider: "local".to_owned(),
    };
    let key = Secret::new("the-key");
    let mut token = object(&request, hash_key(&key), "abcde", None, TokenOrigin::default());
    token.metadata.creation_timestamp = Some(Time("2024-01-01T00:00:00Z".parse().unwrap()));
    Issued { token, key: TokenKey { name: "token-abcde".to_owned(), key } }
}

/// The type as the view shows it, over a store that is never called.
fn present(stored: &Value, caller: &Caller, now: &str) -> Value {
    struct UnusedStore;
    impl Store for UnusedStore {}
    let mut descriptor = Descriptor::with_store("token", "tokens", Arc::new(UnusedStore));
    descriptor = descriptor.root(fields()).formatter(format);
    let version = ApiVersion::new("management.cattle.io", "v3", "/v3");
    let view = RestView::new([version], [descriptor]);
    let urls = Urls::new("https://drover.example");
    view.present("token", stored, caller, &urls, now.parse().unwrap()).unwrap()
}

#[test]
fn a_listed_token_shows_neither_key_nor_hash() {
    let issued = issued();
    let shown = present(&without_hash(&issued.token), &Caller::user("u-1"), "2024-01-01T00:30:00Z");
    insta::assert_json_snapshot!(shown);
    assert!(!shown.to_string().contains("the-key"));
    assert!(!shown.to_string().contains(&issued.token.token));
}

#[test]
fn a_token_past_its_time_is_expired_and_a_derived_one_never_current() {
    let mut stored = without_hash(&issued().token);
    let caller = Caller { token_id: Some("token-abcde".to_owned()), ..Caller::user("u-1") };
    let shown = present(&stored, &caller, "2024-01-01T01:00:00Z");
    assert_eq!((&shown["expired"], &shown["current"]), (&json!(true), &json!(false)));
    stored["isDerived"] = false.into();
    let shown = present(&stored, &caller, "2024-01-01T00:59:59Z");
    assert_eq!((&shown["expired"], &shown["current"]), (&json!(false), &json!(true)));
}

#[test]
fn the_answer_to_a_login_has_the_key_as_it_is_presented() {
    let issued = issued();
    let fields = issued_fields(&issued, "2024-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(fields["token"], "token-abcde:the-key");
    assert!(!Value::from(fields.clone()).to_string().contains(&issued.token.token));
    insta::assert_json_snapshot!(fields);
}
