//! Tokens of service accounts, issued and presented in a world of a few objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures::FutureExt as _;
use jsonwebtoken::{Algorithm, EncodingKey};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use super::authenticator::ServiceAccountTokens;
use super::keys::{SigningKey, TokenError, VerifyKeys};
use super::legacy::{SecretChange, desired_change};
use super::request::TokenRequests;
use super::*;
use crate::attributes::{InvalidCredential, UserInfo};
use crate::authentication::TokenUser;
use crate::authentication::bearer::TOKEN_SIZE_MAX;
use crate::resource::Call;

const ISSUER: &str = "https://kubernetes.default.svc";
const NOW: i64 = 1_800_000_000;

/// Objects by `plural/namespace/name`.
#[derive(Clone, Default)]
struct World(BTreeMap<String, Value>);

impl World {
    fn with(mut self, plural: &str, object: Value) -> Self {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        self.0.insert(format!("{plural}/{}/{}", text("namespace"), text("name")), object);
        self
    }
    fn without(mut self, key: &str) -> Self {
        self.0.remove(key).expect("was there");
        self
    }
}

impl CoreObjects for World {
    fn get<'a>(
        &'a self,
        plural: &'a str,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Option<Value>> {
        let found = self.0.get(&format!("{plural}/{namespace}/{name}")).cloned();
        Box::pin(std::future::ready(found))
    }
}

fn object(namespace: &str, name: &str, uid: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": namespace, "uid": uid}})
}

fn world() -> World {
    let mut pod = object("r1", "p", "pod-uid");
    pod["spec"] = json!({"serviceAccountName": "sa1", "nodeName": "n"});
    World::default()
        .with("serviceaccounts", object("r1", "sa1", "sa-uid"))
        .with("pods", pod)
        .with("secrets", object("r1", "bs", "secret-uid"))
        .with("nodes", object("", "n", "node-uid"))
}

fn key() -> Arc<SigningKey> {
    Arc::new(SigningKey::from_pem(&SigningKey::generate_pem()).unwrap())
}

fn issue(key: &Arc<SigningKey>, name: &str, spec: Value) -> Result<Value, Status> {
    let requests =
        TokenRequests::new(ISSUER, vec![ISSUER.to_owned()], key.clone(), Arc::new(world()));
    let call = Call {
        user: UserInfo::default(),
        verb: "create",
        namespace: "r1".to_owned(),
        name: name.to_owned(),
        body: json!({ "spec": spec }),
        dry_run: false,
        manager: String::new(),
        force: false,
        applied: false,
    };
    requests.issue(&call, NOW).now_or_never().expect("nothing to wait for")
}

use api_meta::status::Status;

struct Server {
    pem: String,
    key: Arc<SigningKey>,
}

impl Server {
    fn new() -> Self {
        let pem = SigningKey::generate_pem();
        let key = Arc::new(SigningKey::from_pem(&pem).unwrap());
        Self { pem, key }
    }
    fn token(&self, spec: Value) -> String {
        let response = issue(&self.key, "sa1", spec).unwrap();
        response["status"]["token"].as_str().unwrap().to_owned()
    }
    fn authenticate(
        &self,
        world: World,
        token: &str,
        audience: &str,
        now: i64,
    ) -> Result<Option<TokenUser>, InvalidCredential> {
        let keys = VerifyKeys::from_pems([self.pem.as_str()]).unwrap();
        let tokens = ServiceAccountTokens::new(ISSUER, keys, Arc::new(world));
        let audiences = [audience.to_owned()];
        tokens.identify(token, &audiences, now).now_or_never().expect("nothing to wait for")
    }
    fn holds(&self, world: World, token: &str) -> bool {
        matches!(self.authenticate(world, token, ISSUER, NOW + 1), Ok(Some(_)))
    }
}

#[test]
fn a_token_authenticates_the_account_it_was_issued_to() {
    let server = Server::new();
    let response = issue(&server.key, "sa1", json!({})).unwrap();
    assert_eq!(response["kind"], "TokenRequest");
    assert_eq!(response["metadata"]["uid"], "sa-uid");
    assert_eq!(
        response["spec"],
        json!({"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": null})
    );
    assert_eq!(response["status"]["expirationTimestamp"], "2027-01-15T09:00:00Z");
    let token = response["status"]["token"].as_str().unwrap();
    let found = server.authenticate(world(), token, ISSUER, NOW).unwrap().unwrap();
    assert_eq!(found.user.name, "system:serviceaccount:r1:sa1");
    assert_eq!(found.user.uid, "sa-uid");
    assert_eq!(found.user.groups, ["system:serviceaccounts", "system:serviceaccounts:r1"]);
    let id = &found.user.extra["authentication.kubernetes.io/credential-id"][0];
    assert!(id.starts_with("JTI=") && id.len() == 40, "{id}");
    assert_eq!(found.audiences, [ISSUER]);
}

#[test]
fn a_token_is_valid_in_its_time_for_its_audience_and_unmodified() {
    let server = Server::new();
    let token = server.token(json!({"expirationSeconds": 600, "audiences": ["a", "b"]}));
    let invalid = |result: Result<Option<TokenUser>, InvalidCredential>| result.is_err();
    let authenticate = |audience, now| server.authenticate(world(), &token, audience, now);
    assert_eq!(authenticate("b", NOW).unwrap().unwrap().audiences, ["b"]);
    assert!(authenticate("b", NOW + 599).is_ok());
    assert!(invalid(authenticate("b", NOW + 600)));
    assert!(authenticate("b", NOW - 60).is_ok(), "clocks differ a little");
    assert!(invalid(authenticate("b", NOW - 61)));
    assert!(invalid(authenticate("c", NOW)));
    assert!(invalid(authenticate(ISSUER, NOW)));

    let good = server.token(json!({}));
    let parts: Vec<&str> = good.split('.').collect();
    let mut claims: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
    claims["sub"] = json!("system:serviceaccount:kube-system:root");
    let forged = URL_SAFE_NO_PAD.encode(claims.to_string());
    assert!(invalid(server.authenticate(
        world(),
        &format!("{}.{forged}.{}", parts[0], parts[2]),
        ISSUER,
        NOW
    )));
    assert!(invalid(server.authenticate(
        world(),
        &format!("{}.{}.", parts[0], parts[1]),
        ISSUER,
        NOW
    )));
    let other = Server::new();
    assert!(invalid(other.authenticate(world(), &good, ISSUER, NOW)), "another server's key");
}

#[test]
fn tokens_of_other_issuers_are_left_to_other_authenticators() {
    let server = Server::new();
    let good = server.token(json!({}));
    let parts: Vec<&str> = good.split('.').collect();
    let unsigned = URL_SAFE_NO_PAD.encode(json!({"alg": "none"}).to_string());
    let symmetric = URL_SAFE_NO_PAD.encode(json!({"alg": "HS256"}).to_string());
    let foreign = server.key.sign(&json!({"iss": "https://elsewhere"}));
    for token in [
        "token-abcde:secret".to_owned(),
        "a.b.c".to_owned(),
        String::new(),
        format!("{good}.x"),
        format!("{unsigned}.{}.", parts[1]),
        format!("{symmetric}.{}.{}", parts[1], parts[2]),
        foreign,
    ] {
        assert_eq!(server.authenticate(world(), &token, ISSUER, NOW).unwrap(), None, "{token}");
    }
}

#[test]
fn a_token_is_invalid_without_the_objects_it_is_bound_to() {
    let server = Server::new();
    let bound = |kind: &str, name: &str| {
        server.token(json!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name}}))
    };
    let plain = server.token(json!({}));
    let cases = [
        (plain.clone(), "serviceaccounts/r1/sa1"),
        (bound("Pod", "p"), "pods/r1/p"),
        (bound("Secret", "bs"), "secrets/r1/bs"),
        (bound("Node", "n"), "nodes//n"),
    ];
    for (token, key) in &cases {
        assert!(server.holds(world(), token), "{key}");
        assert!(!server.holds(world().without(key), token), "{key} deleted");
        let (plural, rest) = key.split_once('/').unwrap();
        let (namespace, name) = rest.split_once('/').unwrap();
        let again = world().with(plural, object(namespace, name, "other"));
        assert!(!server.holds(again, token), "{key} made anew");
        let mut going = world().0[*key].clone();
        going["metadata"]["deletionTimestamp"] = json!("2027-01-15T09:00:00Z");
        assert!(!server.holds(world().with(plural, going), token), "{key} going");
    }
    assert!(server.holds(world().without("nodes//n"), &cases[1].0), "the pod's node is hearsay");
    let pod = server.authenticate(world(), &cases[1].0, ISSUER, NOW).unwrap().unwrap().user;
    assert_eq!(pod.extra["authentication.kubernetes.io/pod-name"], ["p"]);
    assert_eq!(pod.extra["authentication.kubernetes.io/pod-uid"], ["pod-uid"]);
    assert_eq!(pod.extra["authentication.kubernetes.io/node-name"], ["n"]);
}

/// Texts recorded from kube-apiserver 1.36.
#[test]
fn a_cached_token_is_validated_again() {
    struct SharedObjects(Arc<Mutex<World>>);
    impl CoreObjects for SharedObjects {
        fn get<'a>(
            &'a self,
            plural: &'a str,
            namespace: &'a str,
            name: &'a str,
        ) -> BoxFuture<'a, Option<Value>> {
            let found = self.0.lock().get(plural, namespace, name).now_or_never();
            Box::pin(std::future::ready(found.expect("nothing to wait for")))
        }
    }
    let server = Server::new();
    let keys = VerifyKeys::from_pems([server.pem.as_str()]).unwrap();
    let objects = Arc::new(Mutex::new(world()));
    let tokens = ServiceAccountTokens::new(ISSUER, keys, Arc::new(SharedObjects(objects.clone())));
    let token = server.token(json!({}));
    let authenticate = |audience: &str, now: i64| {
        let audiences = [audience.to_owned()];
        tokens.identify(&token, &audiences, now).now_or_never().expect("nothing to wait for")
    };
    assert!(matches!(authenticate(ISSUER, NOW), Ok(Some(_))));
    assert!(matches!(authenticate(ISSUER, NOW + 1), Ok(Some(_))));
    assert!(authenticate("vault", NOW + 1).is_err(), "another audience");
    assert!(authenticate(ISSUER, NOW + 2 * 3600).is_err(), "outdated");
    *objects.lock() = World::default();
    assert!(authenticate(ISSUER, NOW + 1).is_err(), "without its account");
}

#[test]
fn invalid_token_requests_are_rejected_with_the_reason() {
    let bound = |api_version: &str, kind: &str, name: &str| {
        json!({"boundObjectRef": 
        {"apiVersion": api_version, "kind": kind, "name": name}})
    };
    let cases = [
        (
            "sa1",
            json!({"expirationSeconds": 60}),
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid \
             value: 60: may not specify a duration less than 10 minutes",
        ),
        ("nosa", json!({}), 404, "serviceaccounts \"nosa\" not found"),
        ("sa1", bound("v1", "Secret", "nope"), 404, "secrets \"nope\" not found"),
        (
            "sa1",
            bound("v1", "ConfigMap", "x"),
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        (
            "sa1",
            bound("apps/v1", "Pod", "x"),
            400,
            "cannot bind token to object of type apps/v1, Kind=Pod",
        ),
        ("sa1", json!({"audiences": "x"}), 400, "spec.audiences is not a list of strings"),
    ];
    for (name, spec, code, message) in cases {
        let status = issue(&key(), name, spec).unwrap_err();
        assert_eq!((status.code, status.message.as_str()), (code, message));
    }
    let mut other_uid = bound("v1", "Pod", "p");
    other_uid["boundObjectRef"]["uid"] = json!("old");
    assert_eq!(issue(&key(), "sa1", other_uid).unwrap_err().code, 409);
}

#[test]
fn tokens_of_earlier_keys_stay_valid() {
    let (old, new) = (SigningKey::generate_pem(), SigningKey::generate_pem());
    let token = SigningKey::from_pem(&old).unwrap().sign(&json!({"a": 1}));
    let both = VerifyKeys::from_pems([new.as_str(), old.as_str()]).unwrap();
    assert_eq!(both.verify(&token).unwrap(), json!({"a": 1}));
    let only_new = VerifyKeys::from_pems([new.as_str()]).unwrap();
    assert_eq!(only_new.verify(&token), Err(TokenError::BadSignature));
    assert_eq!(VerifyKeys::default().verify(&token), Err(TokenError::BadSignature));

    let public = rcgen::KeyPair::from_pem(&old).unwrap().public_key_pem();
    let of_public = VerifyKeys::from_pems([public.as_str()]).unwrap();
    assert!(of_public.verify(&token).is_ok());
    assert_eq!(of_public.jwks()["keys"][0]["kid"], SigningKey::from_pem(&old).unwrap().id());
    assert!(VerifyKeys::from_pems(["no key"]).is_err());
    let debug = format!("{:?}", SigningKey::from_pem(&old).unwrap());
    assert!(!debug.contains("pair"), "{debug}");
}

#[test]
fn a_token_that_the_own_key_signed_with_another_header_is_unrecognized() {
    let pem = SigningKey::generate_pem();
    let keys = VerifyKeys::from_pems([pem.as_str()]).unwrap();
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).unwrap();
    let private = EncodingKey::from_ec_der(der.secret_pkcs8_der());
    let signed = |header: &str| {
        let text =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode("{\"a\":1}"));
        let signature = jsonwebtoken::crypto::sign(text.as_bytes(), &private, Algorithm::ES256);
        format!("{text}.{}", signature.unwrap())
    };
    for header in [r#"{"alg":"ES256"}"#, r#"{"alg":"ES256","kid":"unknown","typ":"JWT"}"#] {
        assert_eq!(keys.verify(&signed(header)).unwrap(), json!({"a": 1}), "{header}");
    }
    for header in [
        r#"{"alg":"ES256","crit":["exp"]}"#,
        r#"{"alg":"ES256","alg":"ES256"}"#,
        r#"{"alg":"ES384"}"#,
        r#"{"alg":"HS256"}"#,
        r#"{"alg":"none"}"#,
        r#"{"kid":"unknown"}"#,
    ] {
        assert_eq!(keys.verify(&signed(header)), Err(TokenError::Unrecognized), "{header}");
    }
    let long = SigningKey::from_pem(&pem).unwrap().sign(&json!({"a": "a".repeat(TOKEN_SIZE_MAX)}));
    assert_eq!(keys.verify(&long), Err(TokenError::Unrecognized));
}

#[test]
fn the_encoding_of_a_token_and_its_key_set_stay_the_same() {
    let pem = SigningKey::generate_pem();
    let key = SigningKey::from_pem(&pem).unwrap();
    let token = key.sign(&json!({"b": 2, "a": 1}));
    let parts: Vec<&str> = token.split('.').collect();
    let text = |part: &str| String::from_utf8(URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    assert_eq!(text(parts[0]), format!(r#"{{"alg":"ES256","kid":"{}"}}"#, key.id()));
    assert_eq!(text(parts[1]), r#"{"a":1,"b":2}"#);
    assert_eq!(URL_SAFE_NO_PAD.decode(parts[2]).unwrap().len(), 64);

    let jwks = VerifyKeys::from_pems([pem.as_str()]).unwrap().jwks();
    let point = rcgen::KeyPair::from_pem(&pem).unwrap().public_key_raw().to_vec();
    let expected = json!({"keys": [{
        "use": "sig", "kty": "EC", "kid": key.id(), "crv": "P-256", "alg": "ES256",
        "x": URL_SAFE_NO_PAD.encode(&point[1..33]), "y": URL_SAFE_NO_PAD.encode(&point[33..]),
    }]});
    assert_eq!(jwks, expected);
}

fn legacy_secret() -> Value {
    json!({
        "metadata": {
            "name": "lt", "namespace": "r1", "uid": "lt-uid",
            "annotations": {"kubernetes.io/service-account.name": "sa1"},
        },
        "type": "kubernetes.io/service-account-token",
    })
}

#[test]
fn a_secret_for_an_account_gets_a_token_that_is_valid_as_long_as_the_secret() {
    let server = Server::new();
    let account = object("r1", "sa1", "sa-uid");
    let change = desired_change(&legacy_secret(), Some(&account), &server.key, "CA");
    let SecretChange::Update(filled) = change else { panic!("{change:?}") };
    let data = |field: &str| {
        let bytes = STANDARD.decode(filled["data"][field].as_str().unwrap()).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    assert_eq!((data("namespace").as_str(), data("ca.crt").as_str()), ("r1", "CA"));
    assert_eq!(filled["metadata"]["annotations"]["kubernetes.io/service-account.uid"], "sa-uid");
    assert_eq!(desired_change(&filled, Some(&account), &server.key, "CA"), SecretChange::None);
    let renewed = desired_change(&filled, Some(&account), &server.key, "other CA");
    let SecretChange::Update(renewed) = renewed else { panic!("{renewed:?}") };
    assert_eq!(renewed["data"]["token"], filled["data"]["token"]);

    let token = data("token");
    let there = world().with("secrets", filled.clone());
    let found = server.authenticate(there.clone(), &token, ISSUER, NOW).unwrap().unwrap();
    assert_eq!(found.user.name, "system:serviceaccount:r1:sa1");
    assert!(!server.holds(world(), &token), "no secret");
    assert!(!server.holds(there.clone().without("serviceaccounts/r1/sa1"), &token));
    let again = there.clone().with("serviceaccounts", object("r1", "sa1", "new"));
    assert!(!server.holds(again, &token));
    let mut emptied = filled;
    emptied["data"]["token"] = json!("");
    assert!(!server.holds(there.with("secrets", emptied), &token));
}

#[test]
fn a_secret_is_deleted_with_its_account() {
    let key = key();
    let mut secret = legacy_secret();
    assert_eq!(desired_change(&secret, None, &key, "CA"), SecretChange::Delete);
    secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"] = json!("old");
    let account = object("r1", "sa1", "sa-uid");
    assert_eq!(desired_change(&secret, Some(&account), &key, "CA"), SecretChange::Delete);
    secret["type"] = json!("Opaque");
    assert_eq!(desired_change(&secret, None, &key, "CA"), SecretChange::None);
}

#[test]
fn names_of_users_and_accounts_convert() {
    assert_eq!(user_name("a", "b"), "system:serviceaccount:a:b");
    assert_eq!(parse_user_name("system:serviceaccount:a:b"), Some(("a", "b")));
    for other in [
        "system:serviceaccount:a",
        "system:serviceaccount::b",
        "system:serviceaccount:a:",
        "system:serviceaccount:a:b:c",
        "a:b",
    ] {
        assert_eq!(parse_user_name(other), None, "{other}");
    }
}
