//! Tokens and hashes, without a server; with one: `test-kit`.

use api_management::kind::ObjectRules;
use api_management::token::{KIND_API, KIND_KUBECONFIG, KIND_SESSION};
use api_management::{Token, User};
use identity::credential::TokenSource;
use identity::{Presented, Refused, Secret, TokenKey, generate_key, hash_key};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};

use crate::token::authenticate::validate;
use crate::token::issue::{TokenOrigin, TokenRequest, object};
use crate::token::purge::is_ended;
use crate::user::passwords::secret;

fn request(kind: &'static str) -> TokenRequest {
    TokenRequest {
        user_id: "u-1".to_owned(),
        kind,
        description: String::new(),
        ttl_millis: 1000,
        cluster: None,
        project: None,
        derived: false,
        auth_provider: "local".to_owned(),
    }
}

fn token(key: &Secret) -> Token {
    let mut token =
        object(&request(KIND_SESSION), hash_key(key), "abcde", None, TokenOrigin::default());
    let created = Timestamp::from_millisecond(1_000_000).unwrap();
    token.metadata.creation_timestamp = Some(Time(created));
    token
}

fn presented(key: &Secret) -> Presented {
    let token = TokenKey { name: "token-abcde".to_owned(), key: key.clone() };
    Presented { token, source: TokenSource::Header }
}

#[test]
fn a_token_holds_for_its_key_its_time_and_an_enabled_user() {
    let key = generate_key();
    let (token, user, now) = (token(&key), User::default(), 1_000_500);
    let identity = validate(&presented(&key), &token, Some(&user), now).unwrap();
    assert_eq!((identity.user_id.as_str(), identity.token_id.as_str()), ("u-1", "token-abcde"));
    let wrong = presented(&generate_key());
    assert_eq!(validate(&wrong, &token, Some(&user), now).unwrap_err(), Refused::WrongKey);
    let late = validate(&presented(&key), &token, Some(&user), 1_001_000);
    assert_eq!(late.unwrap_err(), Refused::Expired);
    assert_eq!(validate(&presented(&key), &token, None, now).unwrap_err(), Refused::NoUser);
    let off = User { enabled: Some(false), ..<User as Default>::default() };
    let refused = validate(&presented(&key), &token, Some(&off), now);
    assert_eq!(refused.unwrap_err(), Refused::NoUser);
    let mut disabled = token.clone();
    disabled.enabled = Some(false);
    let refused = validate(&presented(&key), &disabled, Some(&user), now);
    assert_eq!(refused.unwrap_err(), Refused::Disabled);
}

#[test]
fn a_new_user_with_an_old_id_does_not_get_the_tokens_of_the_old_one() {
    let key = generate_key();
    let user = |uid: &str, created: i64| {
        let mut user = <User as Default>::default();
        user.metadata.uid = Some(uid.to_owned());
        let created = Timestamp::from_millisecond(created).unwrap();
        user.metadata.creation_timestamp = Some(Time(created));
        user
    };
    let mut of_old = token(&key);
    of_old.metadata.owner_references = Some(vec![OwnerReference {
        kind: "User".to_owned(),
        name: "u-1".to_owned(),
        uid: "old".to_owned(),
        ..OwnerReference::default()
    }]);
    let validated =
        |token: &Token, user: &User| validate(&presented(&key), token, Some(user), 1_000_500);
    assert!(validated(&of_old, &user("old", 500_000)).is_ok());
    assert_eq!(validated(&of_old, &user("new", 500_000)).unwrap_err(), Refused::NoUser);
    // Without a reference, by age.
    assert!(validated(&token(&key), &user("any", 1_000_000)).is_ok());
    assert_eq!(validated(&token(&key), &user("any", 1_000_400)).unwrap_err(), Refused::NoUser);
}

#[test]
fn a_wrong_key_learns_nothing_about_the_token() {
    let key = generate_key();
    let mut expired = token(&key);
    expired.enabled = Some(false);
    let refused = validate(&presented(&generate_key()), &expired, None, i64::MAX);
    assert_eq!(refused.unwrap_err(), Refused::WrongKey);
}

#[test]
fn what_is_stored_of_a_token_passes_the_kinds_rules_and_has_no_key_in_it() {
    let key = generate_key();
    for kind in [KIND_SESSION, KIND_KUBECONFIG, KIND_API] {
        let token = object(&request(kind), hash_key(&key), "abcde", None, TokenOrigin::default());
        assert!(token.validate(None).is_empty(), "{kind}");
        assert!(!serde_json::to_string(&token).unwrap().contains(key.expose()));
    }
}

#[test]
fn names_of_kubeconfig_tokens_contain_their_user() {
    let name = |kind| {
        let token =
            object(&request(kind), "$2:a:b".to_owned(), "abcde", None, TokenOrigin::default());
        token.metadata.name.unwrap()
    };
    assert_eq!(name(KIND_SESSION), "token-abcde");
    assert_eq!(name(KIND_KUBECONFIG), "kubeconfig-u-1abcde");
}

#[test]
fn tokens_past_their_time_or_without_a_user_go() {
    let key = generate_key();
    assert!(!is_ended(&token(&key), true, 1_000_999));
    assert!(is_ended(&token(&key), true, 1_001_000));
    let mut lasting = token(&key);
    lasting.ttl_millis = 0;
    assert!(!is_ended(&lasting, true, i64::MAX));
    assert!(!is_ended(&lasting, false, 1_000_001));
    assert!(is_ended(&lasting, false, 1_060_000));
}

#[test]
fn a_hash_goes_with_its_user() {
    let mut user = User::default();
    user.metadata.name = Some("u-1".to_owned());
    user.metadata.uid = Some("uid".to_owned());
    let secret = secret(&user, "$argon2id$x".to_owned());
    assert_eq!(secret.metadata.name.as_deref(), Some("u-1"));
    assert_eq!(secret.metadata.owner_references.unwrap()[0].uid, "uid");
}
