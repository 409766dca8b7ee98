//! Tokens in headers and subprotocols, the order of authenticators, and the removal of credentials.

mod certificates;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Request, request};

use super::*;
use crate::attributes::USER_ANONYMOUS;

/// Header lines as a client sends them.
fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name: HeaderName = name.to_lowercase().parse().unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

fn parts(lines: &[(&str, &str)]) -> request::Parts {
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.headers = headers(lines);
    parts
}

fn static_tokens() -> StaticTokens {
    StaticTokens::parse("# users\n\nt-ann,ann,1,\"ops, dev\"\nt-bob,bob,2\n").unwrap()
}

fn union(anonymous: bool) -> UnionAuthenticator {
    let chain = TokenChain::new(vec![Arc::new(static_tokens())]);
    let bearer = BearerAuthenticator::new(Arc::new(chain), vec!["api".to_owned()]);
    UnionAuthenticator::new(vec![Arc::new(bearer)], anonymous)
}

/// Authenticates header lines: the name of the user, `nobody` or `401`.
fn authenticate_name(union: &UnionAuthenticator, lines: &[(&str, &str)]) -> String {
    let parts = parts(lines);
    let result = union.authenticate(&parts).now_or_never().expect("authentication does not wait");
    match result {
        Ok(Some(user)) => user.name,
        Ok(None) => "nobody".to_owned(),
        Err(InvalidCredential) => "401".to_owned(),
    }
}

#[test]
fn a_bearer_token_is_parsed_strictly() {
    let long = format!("Bearer {}", "x".repeat(bearer::TOKEN_SIZE_MAX + 1));
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[], USER_ANONYMOUS),
        (&[("Authorization", "Bearer t-ann")], "ann"),
        (&[("authorization", "bearer t-ann")], "ann"),
        (&[("AUTHORIZATION", "BEARER   t-ann  ")], "ann"),
        (&[("Authorization", "Bearer\tt-ann")], "ann"),
        (&[("Authorization", "Bearer wrong")], "401"),
        (&[("Authorization", "Bearer t-ann,")], "401"),
        (&[("Authorization", "Bearer t-ann, Bearer t-bob")], "401"),
        (&[("Authorization", "Bearer t-ann t-bob")], "401"),
        (&[("Authorization", "Bearer t-änn")], "401"),
        (&[("Authorization", &long)], "401"),
        (&[("Authorization", "Bearer t-ann"), ("Authorization", "Bearer t-ann")], "401"),
        (&[("Authorization", "Bearer t-ann"), ("authorization", "Basic eA==")], "401"),
        (&[("Authorization", "Basic eA=="), ("Authorization", "Basic eA==")], "401"),
        (&[("Authorization", "Bearer ")], USER_ANONYMOUS),
        (&[("Authorization", "Bearer")], USER_ANONYMOUS),
        (&[("Authorization", "")], USER_ANONYMOUS),
        (&[("Authorization", "Basic dDphbm4=")], USER_ANONYMOUS),
    ];
    let union = union(true);
    for (lines, expected) in cases {
        assert_eq!(authenticate_name(&union, lines), *expected, "{lines:?}");
    }
}

#[test]
fn requests_without_credentials_have_no_identity_where_anonymous_is_off() {
    let union = union(false);
    assert_eq!(authenticate_name(&union, &[]), "nobody");
    assert_eq!(authenticate_name(&union, &[("Authorization", "Bearer wrong")]), "401");
    assert_eq!(authenticate_name(&union, &[("Authorization", "Bearer t-bob")]), "bob");
}

#[test]
fn a_websocket_may_carry_its_token_in_a_subprotocol() {
    let token = |text: &str| {
        format!("base64url.bearer.authorization.k8s.io.{}", URL_SAFE_NO_PAD.encode(text))
    };
    let (ann, bob) = (token("t-ann"), token("t-bob"));
    let with = |protocols: &str| {
        let lines = [
            ("Connection", "keep-alive, Upgrade"),
            ("Upgrade", "WebSocket"),
            ("Sec-WebSocket-Protocol", protocols),
        ];
        authenticate_name(&union(true), &lines)
    };
    assert_eq!(with(&format!("v4.channel.k8s.io, {ann}")), "ann");
    assert_eq!(with(&format!("{ann},v4.channel.k8s.io")), "ann");
    assert_eq!(with(&ann), "401", "no protocol to select");
    assert_eq!(with(&format!("v4, {ann}, {bob}")), "401");
    assert_eq!(with("v4, base64url.bearer.authorization.k8s.io.!"), "401");
    assert_eq!(with(&format!("v4, {}", token("wrong"))), "401");
    assert_eq!(with("v4"), USER_ANONYMOUS);

    let plain = [("Sec-WebSocket-Protocol", ann.as_str())];
    assert_eq!(authenticate_name(&union(true), &plain), USER_ANONYMOUS, "no upgrade");
    let both = [
        ("Authorization", "Bearer t-ann"),
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Protocol", &format!("v4, {ann}")),
    ];
    assert_eq!(authenticate_name(&union(true), &both), "401");
}

#[test]
fn every_identified_user_is_in_the_authenticated_group() {
    let union = union(true);
    let groups = |lines: &[(&str, &str)]| {
        let parts = parts(lines);
        union.authenticate(&parts).now_or_never().unwrap().unwrap().unwrap().groups
    };
    let ann = groups(&[("Authorization", "Bearer t-ann")]);
    assert_eq!(ann, ["ops", "dev", "system:authenticated"]);
    assert_eq!(groups(&[]), ["system:unauthenticated"]);
}

struct Fixed(Result<Option<UserInfo>, InvalidCredential>);

impl Authenticator for Fixed {
    fn authenticate<'a>(
        &'a self,
        _parts: &'a request::Parts,
    ) -> BoxFuture<'a, Result<Option<UserInfo>, InvalidCredential>> {
        Box::pin(std::future::ready(self.0.clone()))
    }
}

#[test]
fn the_first_identity_wins_over_invalid_credentials() {
    let user = |name: &str| Ok(Some(UserInfo::new(name, &[])));
    let cases = [
        (vec![user("a"), user("b")], "a"),
        (vec![Ok(None), user("b")], "b"),
        (vec![Err(InvalidCredential), user("b")], "b"),
        (vec![Err(InvalidCredential), Ok(None)], "401"),
        (vec![Ok(None), Ok(None)], USER_ANONYMOUS),
    ];
    for (results, expected) in cases {
        let members = results
            .into_iter()
            .map(|result| Arc::new(Fixed(result)) as Arc<dyn Authenticator>)
            .collect();
        assert_eq!(authenticate_name(&UnionAuthenticator::new(members, true), &[]), expected);
    }
}

#[test]
fn a_token_file_is_refused_with_the_line_but_not_its_text() {
    let cases = [
        ("secret,ann", "line 1 of the token file has fewer than three fields: token, user, uid"),
        ("\nsecret,,1", "line 2 of the token file has an empty token or user"),
        ("secret,\"ann,1", "line 1 of the token file has an open quote"),
        ("secret,a,1\nsecret,b,2", "line 2 of the token file repeats a token"),
    ];
    for (file, expected) in cases {
        let error = StaticTokens::parse(file).err().unwrap().to_string();
        assert_eq!(error, expected);
        assert!(!error.contains("secret"));
    }
}

#[test]
fn credentials_are_stripped_from_headers() {
    let token = format!("base64url.bearer.authorization.k8s.io.{}", URL_SAFE_NO_PAD.encode("t"));
    let mut headers = headers(&[
        ("Authorization", "Bearer a"),
        ("Proxy-Authorization", "Basic b"),
        ("X-Remote-User", "root"),
        ("X-Remote-Group", "system:masters"),
        ("x-REMOTE-extra-Foo", "bar"),
        ("Connection", "Upgrade, x-remote-user"),
        ("Connection", "X-Remote-Group"),
        ("Sec-WebSocket-Protocol", &format!("{token}, v4")),
        ("Impersonate-User", "jane"),
        ("Accept", "*/*"),
    ]);
    strip_credentials(&mut headers);
    let mut left: Vec<String> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    left.sort();
    assert_eq!(
        left,
        [
            "accept: */*",
            "connection: Upgrade",
            "impersonate-user: jane",
            "sec-websocket-protocol: v4"
        ]
    );
    let mut only_identity = super::tests::headers(&[("Connection", "X-Remote-User")]);
    strip_credentials(&mut only_identity);
    assert!(only_identity.is_empty());
}
