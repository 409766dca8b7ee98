//! Whatever identity a client claims, the cluster gets the resolved one.

use bytes::Bytes;
use http::{HeaderMap, Request, Version};
use http_body_util::BodyExt;
use proptest::prelude::*;

use super::front::{ALICE, Front};
use crate::body::empty;

const BOTH: &[&str] = &["h2", "http/1.1"];

/// Headers that smuggle an identity in, or try to remove the proxy's. None is a valid request to
/// impersonate.
const HOSTILE: [(&str, &str); 20] = [
    ("plain X-Remote", "X-Remote-User: admin\nX-Remote-Group: system:masters\n"),
    ("odd case", "x-ReMoTe-uSeR: admin\nX-REMOTE-EXTRA-SCOPES: all\n"),
    ("own headers named in Connection", "Connection: impersonate-user, impersonate-group\n"),
    ("close and nominate", "Connection: close, Impersonate-User , authorization\n"),
    ("nominated twice", "Connection: Impersonate-User\nConnection: Impersonate-Group\n"),
    ("nominated extra", "Connection: Impersonate-Extra-principal%2Fid, Impersonate-Uid\n"),
    ("nominated, odd case", "CONNECTION: iMPERSONATE-uSER\n"),
    ("Keep-Alive and Proxy-Connection", "Keep-Alive: x\nProxy-Connection: Impersonate-User\n"),
    ("authorization", "Authorization: Bearer mine\n"),
    ("authorization twice", "Authorization: Bearer mine\nAuthorization: Basic eA==\n"),
    ("authorization in odd case", "aUTHORIZATION: Bearer mine\n"),
    ("proxy authorization", "Proxy-Authorization: Basic eA==\n"),
    ("cookies", "Cookie: R_SESS=token\nCookie2: x\n"),
    ("forwarded", "X-Forwarded-User: admin\nForwarded: for=1.2.3.4\nX-Forwarded-For: 1.2.3.4\n"),
    ("rancher's own", "X-API-Auth-Header: Bearer x\nX-API-Tunnel-Token: x\n"),
    ("announced trailer", "Trailer: Impersonate-User\nTE: trailers\n"),
    ("method override", "X-HTTP-Method-Override: DELETE\nX-Original-URL: /api\n"),
    ("underscores", "Impersonate_User: admin\nIMPERSONATE_GROUP: system:masters\n"),
    ("close to it", "ximpersonate-user: admin\nx-impersonate-user: admin\n"),
    ("host games", "X-Forwarded-Host: evil\nX-Rewrite-URL: /\n"),
];

#[tokio::test]
async fn hostile_headers_over_http1_change_nothing() {
    let front = Front::start(BOTH).await;
    for (case, headers) in HOSTILE {
        let (_stream, response) =
            front.raw(&format!("GET /k8s/clusters/c-1/api HTTP/1.1\nHost: x\n{headers}\n")).await;
        assert!(response.starts_with("HTTP/1.1 200"), "{case}: {response}");
        front.assert_identity(&ALICE, case);
        assert_eq!(front.downstream.last().target, "/api");
    }
}

#[tokio::test]
async fn hostile_headers_towards_an_http1_downstream_change_nothing() {
    let front = Front::start(&["http/1.1"]).await;
    for (case, headers) in HOSTILE {
        let (_stream, response) =
            front.raw(&format!("GET /k8s/clusters/c-1/api HTTP/1.1\nHost: x\n{headers}\n")).await;
        assert!(response.starts_with("HTTP/1.1 200"), "{case}: {response}");
        front.assert_identity(&ALICE, case);
        assert_eq!(front.downstream.last().version, Version::HTTP_11);
    }
}

#[tokio::test]
async fn hostile_headers_with_an_upgrade_change_nothing() {
    let front = Front::start(BOTH).await;
    for (case, headers) in HOSTILE {
        for protocol in ["websocket", "SPDY/3.1"] {
            let request = format!(
                "POST /k8s/clusters/c-1/api/v1/namespaces/n/pods/p/exec?command=sh HTTP/1.1\n\
                 Host: x\nConnection: Upgrade\nUpgrade: {protocol}\n\
                 X-Stream-Protocol-Version: v4.channel.k8s.io\n\
                 X-Stream-Protocol-Version: v3.channel.k8s.io\n{headers}\n"
            );
            let (_stream, response) = front.raw(&request).await;
            assert!(response.starts_with("HTTP/1.1 101"), "{case}: {response}");
            front.assert_identity(&ALICE, case);
            let seen = front.downstream.last();
            assert_eq!(seen.values("upgrade"), [protocol]);
            assert_eq!(seen.values("connection"), ["Upgrade"]);
            assert_eq!(
                seen.values("x-stream-protocol-version"),
                ["v4.channel.k8s.io", "v3.channel.k8s.io"]
            );
        }
    }
}

#[tokio::test]
async fn hostile_headers_over_http2_change_nothing() {
    let front = Front::start(BOTH).await;
    let mut client = front.http2().await;
    for (case, headers) in HOSTILE {
        let mut request = Request::builder()
            .uri("https://x/k8s/clusters/c-1/api")
            .version(Version::HTTP_2)
            .body(())
            .unwrap();
        for line in headers.lines() {
            let (name, value) = line.split_once(':').unwrap();
            let name = name.to_lowercase();
            // Headers that HTTP/2 forbids never pass the server's own parser.
            let is_forbidden =
                ["connection", "keep-alive", "proxy-connection", "te"].contains(&&*name);
            if !is_forbidden {
                let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
                request.headers_mut().append(name, value.trim().parse().unwrap());
            }
        }
        let (response, _) = client.send_request(request, true).unwrap();
        assert_eq!(response.await.unwrap().status(), 200, "{case}");
        front.assert_identity(&ALICE, case);
    }
}

#[tokio::test]
async fn trailers_are_dropped_over_both_protocols() {
    let front = Front::start(BOTH).await;
    let (_stream, response) = front
        .raw(
            "POST /k8s/clusters/c-1/api HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\
             Trailer: Impersonate-User\n\n3\nabc\n0\nImpersonate-User: admin\n\
             Impersonate-Group: system:masters\n\n",
        )
        .await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    front.assert_identity(&ALICE, "http/1.1");

    let mut client = front.http2().await;
    let request = Request::post("https://x/k8s/clusters/c-1/api").body(()).unwrap();
    let (response, mut body) = client.send_request(request, false).unwrap();
    body.send_data(Bytes::from_static(b"abc"), false).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("impersonate-user", "admin".parse().unwrap());
    trailers.insert("impersonate-group", "system:masters".parse().unwrap());
    body.send_trailers(trailers).unwrap();
    assert_eq!(response.await.unwrap().status(), 200);
    front.assert_identity(&ALICE, "h2");
}

#[tokio::test]
async fn a_bearer_token_among_websocket_protocols_is_dropped() {
    let front = Front::start(BOTH).await;
    let (_stream, response) = front
        .raw(
            "GET /k8s/clusters/c-1/api/v1/namespaces/n/pods/p/exec HTTP/1.1\nHost: x\n\
             Connection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\
             Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.c2VjcmV0, \
             v4.channel.k8s.io\n\n",
        )
        .await;
    assert!(response.starts_with("HTTP/1.1 101"), "{response}");
    let seen = front.downstream.last();
    assert_eq!(seen.values("sec-websocket-protocol"), ["v4.channel.k8s.io"]);
    assert_eq!(seen.values("sec-websocket-key"), ["dGhlIHNhbXBsZSBub25jZQ=="]);
    front.assert_identity(&ALICE, "websocket");
}

/// Requests to impersonate without the right are refused, in any spelling.
#[tokio::test]
async fn impersonation_without_the_right_is_403_and_never_ignored() {
    let front = Front::start(BOTH).await;
    let bob = "users \\\"u-bob\\\" is forbidden: User \\\"u-alice\\\" cannot impersonate resource \
               \\\"users\\\" in API group \\\"\\\" at the cluster scope";
    let cases = [
        ("plain", "Impersonate-User: u-bob\n", bob),
        ("odd case", "iMPERSONATE-uSER: u-bob\n", bob),
        ("nominated", "Connection: Impersonate-User\nImpersonate-User: u-bob\n", bob),
        ("to nobody", "Impersonate-User: nobody\n", "cannot impersonate resource"),
        (
            "a service account",
            "Impersonate-User: system:serviceaccount:kube-system:root\n",
            "cannot impersonate resource \\\"serviceaccounts\\\" in API group \\\"\\\" in the \
             namespace \\\"kube-system\\\"",
        ),
    ];
    for (case, headers, text) in cases {
        for upgrade in ["", "Connection: Upgrade\nUpgrade: websocket\n"] {
            let (mut stream, response) = front
                .raw(&format!(
                    "GET /k8s/clusters/c-1/api/v1 HTTP/1.1\nHost: x\n{upgrade}{headers}\n"
                ))
                .await;
            assert!(response.starts_with("HTTP/1.1 403"), "{case}: {response}");
            let mut body = vec![0; 400];
            let count = tokio::io::AsyncReadExt::read(&mut stream, &mut body).await.unwrap();
            let body = String::from_utf8_lossy(&body[..count]);
            assert!(body.contains(text) && body.contains("\"reason\":\"Forbidden\""), "{body}");
        }
    }
    assert!(front.downstream.recorded.lock().is_empty(), "nothing went downstream");
}

#[tokio::test]
async fn malformed_requests_to_impersonate_are_400() {
    let front = Front::start(BOTH).await;
    for (case, headers) in [
        ("a group without a user", "Impersonate-Group: system:masters\n"),
        ("a uid without a user", "Impersonate-Uid: 1\n"),
        ("an extra without a user", "Impersonate-Extra-Scopes: all\n"),
        ("an empty user", "Impersonate-User:\n"),
        ("two users", "Impersonate-User: u-bob\nImpersonate-User: u-eve\n"),
        ("a doubled user", "Impersonate-User: u-bob\nImpersonate-User: u-bob\n"),
        ("an unknown field", "Impersonate-Role: admin\n"),
    ] {
        front.roles.may.lock().extend(["u-bob", "u-eve", "system:masters"].map(str::to_owned));
        let (_stream, response) =
            front.raw(&format!("GET /k8s/clusters/c-1/api HTTP/1.1\nHost: x\n{headers}\n")).await;
        assert!(response.starts_with("HTTP/1.1 400"), "{case}: {response}");
    }
    assert!(front.downstream.recorded.lock().is_empty());
}

#[tokio::test]
async fn an_authorized_impersonation_is_resolved_by_the_server() {
    let front = Front::start(BOTH).await;
    front.roles.may.lock().extend(["u-bob", "dev", "all", "42"].map(str::to_owned));
    let get = |headers: &str| {
        format!("GET /k8s/clusters/c-1/api HTTP/1.1\nHost: x\nConnection: close\n{headers}\n")
    };
    let (_, response) = front.raw(&get("Impersonate-User: u-bob\n")).await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    front.assert_identity(
        &[
            ("authorization", &["Bearer downstream-token"]),
            ("impersonate-user", &["u-bob"]),
            ("impersonate-group", &["drover:cluster:c-1:cluster-owner", "system:authenticated"]),
        ],
        "user",
    );
    let (_, response) = front
        .raw(&get("Impersonate-User: u-bob\nImpersonate-Group: dev\nImpersonate-Uid: 42\n\
             Impersonate-Extra-Example.com%2FScopes: all\n"))
        .await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    front.assert_identity(
        &[
            ("authorization", &["Bearer downstream-token"]),
            ("impersonate-user", &["u-bob"]),
            ("impersonate-uid", &["42"]),
            (
                "impersonate-group",
                &["dev", "drover:cluster:c-1:cluster-owner", "system:authenticated"],
            ),
            ("impersonate-extra-example.com%2Fscopes", &["all"]),
        ],
        "everything",
    );
    let checked: Vec<_> =
        front.roles.checked.lock().iter().map(|a| (a.resource, a.name.clone())).collect();
    let expected = [
        ("users", "u-bob"),
        ("users", "u-bob"),
        ("groups", "dev"),
        ("uids", "42"),
        ("userextras", "all"),
    ];
    assert_eq!(checked, expected.map(|(resource, name)| (resource, name.to_owned())));
}

#[tokio::test]
async fn role_groups_cannot_be_requested() {
    let front = Front::start(BOTH).await;
    let group = "drover:cluster:c-1:cluster-owner";
    front.roles.may.lock().extend(["u-bob", group].map(str::to_owned));
    let (_, response) = front
        .raw(&format!(
            "GET /k8s/clusters/c-1/api HTTP/1.1\nHost: x\nConnection: close\n\
             Impersonate-User: u-bob\nImpersonate-Group: {group}\n\n"
        ))
        .await;
    assert!(response.starts_with("HTTP/1.1 403"), "{response}");
    assert!(front.downstream.recorded.lock().is_empty());
}

#[tokio::test]
async fn an_identity_that_headers_cannot_carry_exactly_is_refused() {
    let front = Front::start(BOTH).await;
    for bad in [" system:masters", "system:masters\t", "a\r\nImpersonate-Group: system:masters", ""]
    {
        front.caller.lock().groups = vec![bad.to_owned()];
        let response =
            front.send(Request::get("/k8s/clusters/c-1/api").body(empty()).unwrap()).await;
        assert_eq!(response.status(), 403, "{bad:?}");
    }
    front.caller.lock().groups = (0..2000).map(|number| format!("group-{number}")).collect();
    let response = front.send(Request::get("/k8s/clusters/c-1/api").body(empty()).unwrap()).await;
    assert_eq!(response.status(), 403);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let body = String::from_utf8_lossy(&body);
    assert!(body.contains("is in 2001 groups") && body.contains("at most 1024"), "{body}");
    assert!(front.downstream.recorded.lock().is_empty());
    front.caller.lock().groups = vec!["Ärzte".to_owned()];
    let response = front.send(Request::get("/k8s/clusters/c-1/api").body(empty()).unwrap()).await;
    assert_eq!(response.status(), 200);
    assert_eq!(front.downstream.last().values("impersonate-group")[1], "Ärzte");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any header lines get a 400, or are seen downstream with the resolved identity only.
    #[test]
    fn no_header_lines_change_the_identity(
        lines in prop::collection::vec(
            (
                prop::sample::select(vec![
                    "Connection", "connection", "X-Remote-User", "Authorization", "TE", "Trailer",
                    "Cookie", "X-Forwarded-User", "Accept", "Keep-Alive", "impersonate_user",
                ]),
                prop::sample::select(vec![
                    "Impersonate-User", "impersonate-group, authorization", "close", "x", "",
                    "keep-alive,impersonate-user", "admin", "Bearer x", "trailers", "*/*",
                ]),
            ),
            0..6,
        )
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let front = Front::start(BOTH).await;
            let headers: String =
                lines.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
            let request = format!("GET /k8s/clusters/c-1/api HTTP/1.1\nHost: x\n{headers}\n");
            let (_stream, response) = front.raw(&request).await;
            assert!(response.starts_with("HTTP/1.1 200"), "{headers}{response}");
            front.assert_identity(&ALICE, &headers);
        });
    }
}
