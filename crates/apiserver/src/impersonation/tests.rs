//! Impersonation headers, with an authorizer that records its requests.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;

use super::*;

/// Allows everything except the name `refused`, and records the requests.
struct Recorder {
    refused: &'static str,
    authorized: Arc<Mutex<Vec<String>>>,
}

impl Authorizer for Recorder {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        let a = attributes;
        let sub =
            if a.subresource.is_empty() { String::new() } else { format!("/{}", a.subresource) };
        let text = format!("{} {}:{}{sub} {}/{}", a.verb, a.group, a.resource, a.namespace, a.name);
        self.authorized.lock().push(text);
        if a.name == self.refused {
            Decision::NoOpinion { reason: String::new() }
        } else {
            Decision::Allow { reason: String::new() }
        }
    }
}

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name: HeaderName = name.to_lowercase().parse().unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

/// Header lines as a client sends them.
type Lines = &'static [(&'static str, &'static str)];

struct ImpersonationOutcome {
    result: Result<Effective, Status>,
    authorized: Vec<String>,
    left: HeaderMap,
}

fn run(lines: &[(&str, &str)], refused: &'static str) -> ImpersonationOutcome {
    let mut headers = headers(lines);
    let recorder = Recorder { refused, authorized: Arc::default() };
    let user = UserInfo::new("system:serviceaccount:r1:sa1", &["system:authenticated"]);
    let result = impersonate(&mut headers, user, &recorder);
    ImpersonationOutcome { result, authorized: recorder.authorized.lock().clone(), left: headers }
}

#[test]
fn without_headers_nothing_changes() {
    let outcome = run(&[("Accept", "*/*"), ("Connection", "keep-alive")], "");
    let effective = outcome.result.unwrap();
    assert_eq!(effective.user.name, "system:serviceaccount:r1:sa1");
    assert_eq!(effective.original, None);
    assert!(outcome.authorized.is_empty());
    assert_eq!(outcome.left.len(), 2);
}

/// Identities recorded from kube-apiserver 1.36.
#[test]
fn the_identity_is_completed_as_in_kubernetes() {
    const SA: &str = "system:serviceaccount:r1:sa1";
    let cases: &[(Lines, &[&str])] = &[
        (&[("Impersonate-User", "jane")], &["system:authenticated"]),
        (
            &[
                ("Impersonate-User", "jane"),
                ("Impersonate-Group", "g1"),
                ("Impersonate-Group", "g2"),
            ],
            &["g1", "g2", "system:authenticated"],
        ),
        (
            &[("Impersonate-User", SA)],
            &["system:serviceaccounts", "system:serviceaccounts:r1", "system:authenticated"],
        ),
        (&[("Impersonate-User", SA), ("Impersonate-Group", "gg")], &["gg", "system:authenticated"]),
        (&[("Impersonate-User", "system:anonymous")], &["system:unauthenticated"]),
        (
            &[("Impersonate-User", "jane"), ("Impersonate-Group", "system:authenticated")],
            &["system:authenticated"],
        ),
        (
            &[("Impersonate-User", "jane"), ("Impersonate-Group", "system:unauthenticated")],
            &["system:unauthenticated"],
        ),
    ];
    for (lines, groups) in cases {
        let effective = run(lines, "").result.unwrap();
        assert_eq!(effective.user.name, lines[0].1);
        assert_eq!(effective.user.groups, *groups, "{lines:?}");
        assert_eq!(effective.original.unwrap().user.name, SA);
    }
}

#[test]
fn every_part_of_the_identity_is_authorized() {
    let outcome = run(
        &[
            ("Impersonate-User", "jane"),
            ("Impersonate-Group", "g1"),
            ("impersonate-GROUP", "g2"),
            ("Impersonate-Uid", "u1"),
            ("Impersonate-Extra-Scopes", "a"),
            ("Impersonate-Extra-Scopes", "b"),
            ("Impersonate-Extra-Acme.com%2Fproj", "x"),
            ("Connection", "Impersonate-User, Upgrade, impersonate-extra-scopes"),
        ],
        "",
    );
    let user = outcome.result.unwrap().user;
    assert_eq!(user.uid, "u1");
    assert_eq!(user.extra["acme.com/proj"], ["x"]);
    assert_eq!(user.extra["scopes"], ["a", "b"]);
    assert_eq!(
        outcome.authorized,
        [
            "impersonate :users /jane",
            "impersonate :groups /g1",
            "impersonate :groups /g2",
            "impersonate authentication.k8s.io:userextras/acme.com/proj /x",
            "impersonate authentication.k8s.io:userextras/scopes /a",
            "impersonate authentication.k8s.io:userextras/scopes /b",
            "impersonate authentication.k8s.io:uids /u1",
        ]
    );
    assert_eq!(outcome.left, headers(&[("Connection", "Upgrade")]));
    let outcome = run(&[("Impersonate-User", "system:serviceaccount:r1:default")], "");
    assert_eq!(outcome.authorized, ["impersonate :serviceaccounts r1/default"]);
    for user in ["system:serviceaccount:r1", "system:serviceaccount:a:b:c", "system:node:n1"] {
        assert_eq!(
            run(&[("Impersonate-User", user)], "").authorized,
            [format!("impersonate :users /{user}")]
        );
    }
}

/// Texts recorded from kube-apiserver 1.36.
#[test]
fn a_refusal_names_the_part() {
    let me = "User \"system:serviceaccount:r1:sa1\" cannot impersonate resource";
    let cases: &[(Lines, &'static str, String)] = &[
        (
            &[("Impersonate-User", "bob")],
            "bob",
            format!(
                "users \"bob\" is forbidden: {me} \"users\" in API group \"\" at the cluster scope"
            ),
        ),
        (
            &[("Impersonate-User", "jane"), ("Impersonate-Group", "g")],
            "g",
            format!(
                "groups \"g\" is forbidden: {me} \"groups\" in API group \"\" at the cluster scope"
            ),
        ),
        (
            &[("Impersonate-User", "jane"), ("Impersonate-Uid", "g")],
            "g",
            format!(
                "uids.authentication.k8s.io \"g\" is forbidden: {me} \"uids\" in API group \
                 \"authentication.k8s.io\" at the cluster scope"
            ),
        ),
        (
            &[("Impersonate-User", "jane"), ("Impersonate-Extra-Foo", "g")],
            "g",
            format!(
                "userextras.authentication.k8s.io \"g\" is forbidden: {me} \"userextras/foo\" in \
                 API group \"authentication.k8s.io\" at the cluster scope"
            ),
        ),
        (
            &[("Impersonate-User", "system:serviceaccount:r1:default")],
            "default",
            format!(
                "serviceaccounts \"default\" is forbidden: {me} \"serviceaccounts\" in API group \
                 \"\" in the namespace \"r1\""
            ),
        ),
    ];
    for (lines, refused, expected) in cases {
        let outcome = run(lines, refused);
        let status = outcome.result.unwrap_err();
        assert_eq!(status.message, *expected);
        assert_eq!(status.code, 403);
        assert!(outcome.left.is_empty(), "removed even when rejected");
    }
}

/// The first two texts recorded from kube-apiserver 1.36.
#[test]
fn an_identity_without_a_user_is_refused_and_never_ignored() {
    let cases: &[(Lines, &str)] = &[
        (
            &[("Impersonate-Group", "g1")],
            "Name:\"\", UID:\"\", Groups:[]string{\"g1\"}, Extra:map[string][]string(nil)",
        ),
        (
            &[("Impersonate-Uid", "x")],
            "Name:\"\", UID:\"x\", Groups:[]string(nil), Extra:map[string][]string(nil)",
        ),
        (
            &[("Impersonate-Extra-Foo", "a"), ("Impersonate-User", "")],
            "Name:\"\", UID:\"\", Groups:[]string(nil), Extra:map[string][]string{\"foo\":\
             []string{\"a\"}}",
        ),
        (
            &[("Impersonate-User", "")],
            "Name:\"\", UID:\"\", Groups:[]string(nil), Extra:map[string][]string(nil)",
        ),
    ];
    for (lines, identity) in cases {
        let status = run(lines, "").result.unwrap_err();
        assert_eq!(
            status.message,
            format!("requested &user.DefaultInfo{{{identity}}} without impersonating a user name")
        );
        assert_eq!(status.code, 400);
    }
    let doubled = [("Impersonate-User", "jane"), ("impersonate-user", "root")];
    let outcome = run(&doubled, "");
    assert_eq!(outcome.result.unwrap_err().code, 400);
    assert!(outcome.authorized.is_empty() && outcome.left.is_empty());
    let mut headers = HeaderMap::new();
    headers.insert("impersonate-user", HeaderValue::from_bytes(b"j\xff").unwrap());
    let recorder = Recorder { refused: "", authorized: Arc::default() };
    assert_eq!(impersonate(&mut headers, UserInfo::default(), &recorder).unwrap_err().code, 400);
    assert!(headers.is_empty());
}
