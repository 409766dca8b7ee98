//! Only Drover determines the identity of a request: whatever a client writes into its headers, the
//! cluster receives the identity that Drover resolved, or no request. A recorder in front of a real
//! API server shows the received requests.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::sync::Arc;

use anyhow::{Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::http::{empty, with_trailers};
use e2e::journey::{self, ImportTarget, Imported, MANAGEMENT};
use e2e::recorder::Recorded;
use e2e::{
    Cli, Client, Guarantee, Protocol, Recorder, Server, SharedWorld, eventually, no_second_try,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use serde_json::json;
use testbed::RealCluster;

const MEMBER: &str = "ida";
const TARGET: &str = "system:admin";

struct World {
    imported: Imported,
    recorder: Recorder,
    /// A member of the cluster, without the right to impersonate anybody.
    member: Client,
    member_id: String,
    member_token: String,
    member_cli: Cli,
    admin: Cli,
    server: Server,
    _cluster: RealCluster,
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn world() -> Arc<World> {
    WORLD.get(|| {
        let cluster = RealCluster::start()?;
        let direct = ImportTarget::of(&cluster)?;
        let recorder = Recorder::in_front_of(&direct.downstream)?;
        let server = Server::start()?;
        let admin = Cli::admin(&server)?;
        let target = direct.through(recorder.downstream());
        let imported = journey::import(&server, &admin, "recorded", &target)?;
        let role = Some(("cluster-member", "recorded"));
        let member_cli = journey::user_with_role(&server, &admin, MEMBER, role)?;
        let member_token = server.login(MEMBER, &format!("password-of-{MEMBER}"))?;
        let member = server.anyone()?.bearer(&member_token);
        let users = server.admin()?.get(&format!("{MANAGEMENT}/users"))?.success()?;
        let users = users["items"].as_array().cloned().unwrap_or_default();
        let user = users.iter().find(|user| user["username"] == MEMBER).cloned();
        let member_id = user.unwrap_or_default()["metadata"]["name"].as_str().map(str::to_owned);
        let member_id = member_id.unwrap_or_default();
        let world = World {
            imported,
            recorder,
            member,
            member_id,
            member_token,
            member_cli,
            admin,
            server,
            _cluster: cluster,
        };
        eventually("the role counts", || world.member.get(&world.path("ready"))?.success());
        Ok(world)
    })
}

impl World {
    /// The path of a list that members may read, with `mark` to identify it.
    fn path(&self, mark: &str) -> String {
        format!("/k8s/clusters/{}/api/v1/nodes?limit=500&mark={mark}-", self.imported.id)
    }

    fn review_path(&self, mark: &str) -> String {
        format!(
            "/k8s/clusters/{}/apis/authentication.k8s.io/v1/selfsubjectreviews?mark={mark}-",
            self.imported.id
        )
    }

    /// The headers about the member that the cluster may receive, and no others.
    fn expected(&self) -> Vec<(String, String)> {
        let role = format!("drover:cluster:{}:cluster-member", self.imported.id);
        let principal = format!("local://{}", self.member_id);
        [
            ("impersonate-extra-principalid", principal.as_str()),
            ("impersonate-extra-username", MEMBER),
            ("impersonate-group", &role),
            ("impersonate-group", "system:authenticated"),
            ("impersonate-group", "system:cattle:authenticated"),
            ("impersonate-user", &self.member_id),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    /// A request over HTTP/1.1, head as given: its status and the whole response.
    fn spelled(&self, path: &str, lines: &[&str]) -> (u16, String) {
        let mut text = format!("GET {path} HTTP/1.1\r\nHost: drover\r\n");
        text.push_str(&format!("Authorization: Bearer {}\r\n", self.member_token));
        for line in lines {
            text.push_str(line);
            text.push_str("\r\n");
        }
        if !lines.iter().any(|line| line.starts_with("Connection:")) {
            text.push_str("Connection: close\r\n");
        }
        text.push_str("\r\n");
        let response = self.member.exchange(text.as_bytes()).unwrap();
        (status(&response), response)
    }

    /// Checks that the request arrived once, with exactly the member's identity.
    fn arrived_as_the_member(&self, mark: &str) {
        let seen = self.recorder.only(&format!("mark={mark}-")).unwrap();
        assert_eq!(seen.identity(), self.expected(), "{mark}");
        self.keeps_the_token(&seen);
    }

    fn keeps_the_token(&self, seen: &Recorded) {
        let all = seen.headers.iter().chain(&seen.trailers);
        let leaks: Vec<_> = all.filter(|(_, value)| value.contains(&self.member_token)).collect();
        assert!(leaks.is_empty(), "the user's token reached the cluster in {leaks:?}");
        assert_eq!(seen.values("authorization").count(), 1);
    }

    fn did_not_arrive(&self, mark: &str) {
        let seen = self.recorder.all(&format!("mark={mark}-"));
        assert!(seen.is_empty(), "{seen:#?}");
    }
}

fn status(response: &str) -> u16 {
    let code = response.split(' ').nth(1).and_then(|code| code.parse().ok());
    code.unwrap_or_else(|| panic!("no status in: {response}"))
}

#[test]
fn the_cluster_sees_the_user_and_the_groups_of_this_cluster_only() {
    no_second_try(Guarantee::Rights);
    let world = world();
    // A role in another cluster has no effect here.
    journey::create_cluster(&world.server, "elsewhere").unwrap();
    let grant = ["role", "grant", "cluster-owner", "--cluster", "elsewhere", "--user", MEMBER];
    world.admin.succeed(&grant).unwrap();
    let response = world.member.get(&world.path("baseline")).unwrap();
    assert_eq!(response.status, 200, "{}", response.text());
    world.arrived_as_the_member("baseline");
    let revoke = ["role", "revoke", "cluster-owner", "--cluster", "elsewhere", "--user", MEMBER];
    world.admin.succeed(&revoke).unwrap();

    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let review = world.member.post(&world.review_path("whoami"), &body).unwrap().success().unwrap();
    let user = &review["status"]["userInfo"];
    assert_eq!(user["username"], world.member_id, "{review}");
    let groups = user["groups"].as_array().unwrap();
    assert!(!groups.contains(&json!("system:masters")), "{review}");
}

/// Each group has a header line of its own, and Kubernetes does not limit their number.
#[test]
fn a_request_may_have_a_thousand_groups() {
    let world = world();
    let admin = world.server.admin().unwrap();
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    for protocol in Protocol::BOTH {
        let mut request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
            .header("content-type", "application/json")
            .header("impersonate-user", "somebody");
        for number in 0..1_000 {
            request = request.header("impersonate-group", format!("team-{number}"));
        }
        let request = request.body(e2e::http::body(review.to_string())).unwrap();
        let found = admin.over(protocol).send(request).unwrap().success().unwrap();
        let groups = found["status"]["userInfo"]["groups"].as_array().unwrap().len();
        assert!(groups >= 1_000, "{groups} groups over {protocol:?}");
    }
}

/// Requests for another identity are refused and never arrive.
#[test]
fn requesting_another_identity_without_the_right_is_refused_over_http_1() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let cases: [(&str, &[&str]); 12] = [
        ("plain", &["Impersonate-User: system:admin"]),
        ("groups", &["Impersonate-User: system:admin", "Impersonate-Group: system:masters"]),
        ("group-only", &["Impersonate-Group: system:masters"]),
        ("uid", &["Impersonate-User: system:admin", "Impersonate-Uid: 0"]),
        ("extra", &["Impersonate-User: system:admin", "Impersonate-Extra-Scopes: all"]),
        ("extra-only", &["Impersonate-Extra-Scopes: all"]),
        ("odd-case", &["iMPERSONATE-uSER: system:admin"]),
        ("doubled", &["Impersonate-User: ida", "Impersonate-User: system:admin"]),
        (
            "in-connection",
            &["Impersonate-User: system:admin", "Connection: close, Impersonate-User"],
        ),
        (
            "in-connection-odd",
            &["Impersonate-User: system:admin", "Connection: close,impersonate-USER "],
        ),
        (
            "role-group",
            &["Impersonate-User: ida", "Impersonate-Group: drover:cluster:x:cluster-owner"],
        ),
        ("empty", &["Impersonate-User:"]),
    ];
    for (mark, lines) in cases {
        let (status, response) = world.spelled(&world.path(mark), lines);
        // Requests for several users, or for an empty one, are invalid.
        let malformed = ["doubled", "group-only", "extra-only", "empty"].contains(&mark);
        let expected = if malformed { 400 } else { 403 };
        assert_eq!(status, expected, "{mark}: {response}");
        world.did_not_arrive(mark);
    }
}

#[test]
fn headers_that_other_proxies_trust_or_that_name_drovers_change_nothing() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let cases: [(&str, &[&str]); 8] = [
        ("remote-user", &["X-Remote-User: system:admin", "X-Remote-Group: system:masters"]),
        ("remote-extra", &["X-Remote-Extra-Scopes: all", "X-Remote-Uid: 0"]),
        ("forwarded-user", &["X-Forwarded-User: system:admin"]),
        ("name-user", &["Connection: close, Impersonate-User"]),
        ("name-group", &["Connection: close, Impersonate-Group, Authorization"]),
        ("name-odd", &["Connection: close,impersonate-USER,  IMPERSONATE-group"]),
        ("tunnel", &["X-API-Tunnel-Token: x", "X-API-Tunnel-Params: e30="]),
        ("underscore", &["Impersonate_User: system:admin"]),
    ];
    for (mark, lines) in cases {
        let (status, response) = world.spelled(&world.path(mark), lines);
        assert_eq!(status, 200, "{mark}: {response}");
        world.arrived_as_the_member(mark);
    }
}

#[test]
fn identity_in_trailers_reaches_nobody() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let body = body.to_string();
    let text = format!(
        "POST {} HTTP/1.1\r\nHost: drover\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\
         Trailer: Impersonate-User, Impersonate-Group\r\nConnection: close\r\n\r\n\
         {:x}\r\n{body}\r\n0\r\nImpersonate-User: {TARGET}\r\nImpersonate-Group: system:masters\r\n\r\n",
        world.review_path("trailers-h1"),
        world.member_token,
        body.len(),
    );
    let response = world.member.exchange(text.as_bytes()).unwrap();
    assert_eq!(status(&response), 201, "{response}");
    assert!(response.contains(&world.member_id) && !response.contains("masters"), "{response}");
    world.arrived_as_the_member("trailers-h1");

    let mut trailers = HeaderMap::new();
    trailers.insert("impersonate-user", HeaderValue::from_static(TARGET));
    trailers.insert("impersonate-group", HeaderValue::from_static("system:masters"));
    let request = Request::post(world.review_path("trailers-h2"))
        .header("content-type", "application/json")
        .body(with_trailers(body, trailers))
        .unwrap();
    let response = world.member.over(Protocol::Http2).send(request).unwrap();
    assert_eq!(response.status, 201, "{}", response.text());
    assert!(response.text().contains(&world.member_id), "{}", response.text());
    world.arrived_as_the_member("trailers-h2");
}

#[test]
fn identity_headers_over_http_2_are_checked_too() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let client = world.member.over(Protocol::Http2);
    let send = |mark: &str, headers: &[(&'static str, &str)]| {
        let mut request = Request::get(world.path(mark)).body(empty()).unwrap();
        for (name, value) in headers {
            let name = HeaderName::from_static(name);
            request.headers_mut().append(name, HeaderValue::from_str(value).unwrap());
        }
        client.send(request).unwrap()
    };
    let refused: [(&str, &[(&'static str, &str)]); 4] = [
        ("h2-plain", &[("impersonate-user", TARGET)]),
        ("h2-groups", &[("impersonate-user", TARGET), ("impersonate-group", "system:masters")]),
        ("h2-doubled", &[("impersonate-user", "ida"), ("impersonate-user", TARGET)]),
        ("h2-uid", &[("impersonate-user", TARGET), ("impersonate-uid", "0")]),
    ];
    for (mark, headers) in refused {
        let response = send(mark, headers);
        let expected = if mark == "h2-doubled" { 400 } else { 403 };
        assert_eq!(response.status, expected, "{mark}: {}", response.text());
        world.did_not_arrive(mark);
    }
    let ignored: [(&str, &[(&'static str, &str)]); 2] = [
        ("h2-nothing", &[]),
        ("h2-remote", &[("x-remote-user", TARGET), ("x-remote-group", "system:masters")]),
    ];
    for (mark, headers) in ignored {
        let response = send(mark, headers);
        assert_eq!(response.status, 200, "{mark}: {}", response.text());
        world.arrived_as_the_member(mark);
    }
}

#[test]
fn identity_headers_of_an_upgrade_are_checked_too() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let upgrade = [
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Origin: https://drover",
    ];
    let with = |more: &[&'static str]| {
        let mut lines: Vec<&str> = upgrade.to_vec();
        lines.extend(more);
        lines
    };
    // Watches are also served over WebSockets, which needs no node.
    let path = |mark: &str| format!("{}&watch=true", world.path(mark));

    let cases: [(&str, &[&str], u16); 5] = [
        ("ws-good", &["Connection: Upgrade"], 101),
        (
            "ws-named",
            &["Connection: Upgrade, Impersonate-User", "X-Remote-User: system:admin"],
            101,
        ),
        ("ws-plain", &["Connection: Upgrade", "Impersonate-User: system:admin"], 403),
        (
            "ws-connection",
            &["Connection: Upgrade, Impersonate-User", "Impersonate-User: system:admin"],
            403,
        ),
        ("ws-group", &["Connection: Upgrade", "IMPERSONATE-GROUP: system:masters"], 400),
    ];
    for (mark, more, expected) in cases {
        let (status, response) = world.spelled(&path(mark), &with(more));
        assert_eq!(status, expected, "{mark}: {response}");
        if status == 101 {
            world.arrived_as_the_member(mark);
        } else {
            world.did_not_arrive(mark);
        }
    }

    // A token in the subprotocol, like browsers send it, is not forwarded either.
    let token = STANDARD.encode(&world.member_token).replace('=', "");
    let protocol = format!("Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{token}");
    let mut lines = with(&["Connection: Upgrade"]);
    lines.push(&protocol);
    world.spelled(&path("ws-protocol"), &lines);
    for seen in world.recorder.all("mark=ws-protocol-") {
        let leaks = seen.headers.iter().any(|(_, value)| value.contains(&token));
        assert!(!leaks, "the user's token reached the cluster: {seen:#?}");
    }
}

#[test]
fn kubectl_as_without_the_right_is_forbidden() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let kubectl = world.member_cli.kubectl("recorded").unwrap();
    // Until kubectl has cached discovery, a refusal reads "unknown", with Kubernetes like with
    // Drover.
    kubectl.succeed(&["get", "nodes"]).unwrap();
    for arguments in [
        &["get", "nodes", "--as=system:admin"][..],
        &["get", "nodes", "--as=ida", "--as-group=system:masters"],
        &["get", "nodes", "--as=nobody"],
    ] {
        let refused = kubectl.refuse(arguments).unwrap();
        assert!(refused.contains("orbidden"), "{arguments:?}: {refused}");
        assert!(refused.contains("impersonate"), "{arguments:?}: {refused}");
    }
}

#[test]
fn an_administrator_who_impersonates_gets_the_identity_that_drover_resolves() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let admin = world.server.admin().unwrap();
    let request = Request::get(world.path("as-member"))
        .header("Impersonate-User", &world.member_id)
        .body(empty())
        .unwrap();
    let response = admin.send(request).unwrap();
    assert_eq!(response.status, 200, "{}", response.text());
    // Like a login of the member, without properties of the login.
    let seen = world.recorder.only("mark=as-member-").unwrap();
    let mut expected = world.expected();
    expected.retain(|(name, _)| !name.starts_with("impersonate-extra-"));
    assert_eq!(seen.identity(), expected);

    // Only Drover assigns role groups.
    let group = format!("drover:cluster:{}:cluster-owner", world.imported.id);
    let request = Request::get(world.path("as-owner"))
        .header("Impersonate-User", "nobody")
        .header("Impersonate-Group", group)
        .body(empty())
        .unwrap();
    let response = admin.send(request).unwrap();
    assert_eq!(response.status, 403, "{}", response.text());
    world.did_not_arrive("as-owner");

    let kubectl = world.admin.kubectl("recorded").unwrap();
    let refused = kubectl.refuse(&["get", "nodes", "--as=nobody"]).unwrap();
    assert!(refused.contains("User \"nobody\" cannot list resource \"nodes\""), "{refused}");
}

/// The rights of `--as`: those bound to the user, and none that the user has through a group.
#[test]
fn the_right_to_impersonate_a_user_gives_no_roles_of_groups() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let admin = world.server.admin().unwrap();
    let team = "github_team://7";
    let role = |name: &str, groups: &[&str]| {
        json!({
            "apiVersion": "management.cattle.io/v3", "kind": "RoleTemplate",
            "metadata": {"name": name}, "displayName": name, "context": "cluster",
            "rules": [
                {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"],
                    "resourceNames": [world.member_id]},
                {"apiGroups": [""], "resources": ["groups"], "verbs": ["impersonate"],
                    "resourceNames": groups},
            ],
        })
    };
    let templates = format!("{MANAGEMENT}/roletemplates");
    admin.post(&templates, &role("as-user", &["none"])).unwrap().success().unwrap();
    admin.post(&templates, &role("as-team", &[team])).unwrap().success().unwrap();
    let binding = json!({
        "clusterId": world.imported.id, "roleTemplateId": "cluster-owner", "groupPrincipalId": team,
    });
    admin.post("/v3/clusterRoleTemplateBindings", &binding).unwrap().success().unwrap();
    let new_user = |name: &str| {
        let role = Some((name, "recorded"));
        journey::user_with_role(&world.server, &world.admin, name, role).unwrap();
        let token = world.server.login(name, &format!("password-of-{name}")).unwrap();
        world.server.anyone().unwrap().bearer(&token)
    };
    let (as_user, as_team) = (new_user("as-user"), new_user("as-team"));
    let send = |client: &Client, mark: &str, group: Option<&str>| {
        let mut request =
            Request::get(world.path(mark)).header("Impersonate-User", &world.member_id);
        if let Some(group) = group {
            request = request.header("Impersonate-Group", group);
        }
        client.send(request.body(empty()).unwrap()).unwrap()
    };
    for client in [&as_user, &as_team] {
        eventually("the right to impersonate is there", || -> Result<()> {
            let response = send(client, "until-allowed", None);
            ensure!(response.status == 200, "{}", response.text());
            Ok(())
        });
    }
    let groups = |mark: &str| {
        let seen = world.recorder.only(&format!("mark={mark}-")).unwrap();
        let mut groups: Vec<String> = seen.values("impersonate-group").map(str::to_owned).collect();
        groups.sort();
        groups
    };
    let of_cluster = |role: &str| format!("drover:cluster:{}:{role}", world.imported.id);
    let people = ["system:authenticated", "system:cattle:authenticated"].map(str::to_owned);
    let alone = [&[of_cluster("cluster-member")], &people[..]].concat();
    for client in [&as_user, &as_team] {
        let mark = if std::ptr::eq(client, &as_user) { "user-alone" } else { "team-alone" };
        assert_eq!(send(client, mark, None).status, 200);
        assert_eq!(groups(mark), alone);
    }
    assert_eq!(send(&as_user, "user-with-group", Some(team)).status, 403);
    world.did_not_arrive("user-with-group");
    assert_eq!(send(&as_team, "team-with-group", Some(team)).status, 200);
    let both = [of_cluster("cluster-member"), of_cluster("cluster-owner"), team.to_owned()];
    assert_eq!(groups("team-with-group"), [&both, &people[..]].concat());
}

/// Users without a role cannot see which clusters exist, nor use the rights that clusters grant to
/// all users.
#[test]
fn a_user_without_roles_learns_nothing_of_any_cluster() {
    no_second_try(Guarantee::Secrecy);
    let world = world();
    journey::user_with_role(&world.server, &world.admin, "nobody", None).unwrap();
    let token = world.server.login("nobody", "password-of-nobody").unwrap();
    let nobody = world.server.anyone().unwrap().bearer(&token);
    let admin = world.server.admin().unwrap();
    let (known, unknown) = (world.imported.id.as_str(), "c-zzzzz");
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    });
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let send = |client: &Client, cluster: &str, path: &str| {
        let path = format!("/k8s/clusters/{cluster}{path}");
        let response =
            if path.ends_with(reviews) { client.post(&path, &review) } else { client.get(&path) };
        let response = response.unwrap();
        (response.status.as_u16(), response.text().replace(cluster, "CLUSTER"))
    };
    for path in ["", "/", "/api", "/apis", "/version", "/api/v1/nodes?mark=nobody-", reviews] {
        let of_known = send(&nobody, known, path);
        assert_eq!(of_known, send(&nobody, unknown, path), "{path}");
        assert_eq!(of_known.0, 403, "{path}: {}", of_known.1);
        assert!(of_known.1.contains("you have no role in this cluster"), "{}", of_known.1);
        // Users who may list all clusters get 404 for a mistyped id.
        assert_eq!(send(&admin, unknown, path).0, 404, "{path}");
        // A member of one cluster has no access to others.
        assert_eq!(send(&world.member, unknown, path).0, 403, "{path}");
    }
    world.did_not_arrive("nobody");

    // The management API as a cluster: only discovery, which kubectl needs for its message.
    for path in ["/api", "/apis", "/api/v1", "/version", reviews] {
        let (status, text) = send(&nobody, "local", path);
        assert!((200..300).contains(&status), "{path}: {status} {text}");
    }
    let of_unknown = send(&nobody, unknown, "/api/v1/nodes");
    for path in ["/api/v1/nodes", "/apis/management.cattle.io/v3/settings", "/api/v1/namespaces"] {
        assert_eq!(send(&nobody, "local", path), of_unknown, "{path}");
    }

    let role = ["cluster-member", "--cluster", "recorded", "--user", "nobody"];
    world.admin.succeed(&[&["role", "grant"], &role[..]].concat()).unwrap();
    eventually("a role opens the cluster", || -> Result<()> {
        let (status, text) = send(&nobody, known, "/api/v1/nodes");
        ensure!(status == 200, "{text}");
        Ok(())
    });
    world.admin.succeed(&[&["role", "revoke"], &role[..]].concat()).unwrap();
    assert_eq!(send(&nobody, known, "/api/v1/nodes"), of_unknown);
}

#[test]
fn a_request_without_a_login_never_arrives() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let anyone = world.server.anyone().unwrap();
    let check = |mark: &str, client: &Client| -> Result<()> {
        let response = client.get(&world.path(mark))?;
        ensure!(response.status == 401, "{mark}: {}: {}", response.status, response.text());
        world.did_not_arrive(mark);
        Ok(())
    };
    check("anonymous", &anyone).unwrap();
    check("garbage", &anyone.bearer("garbage")).unwrap();
    let name = world.member_token.split(':').next().unwrap();
    check("wrong-key", &anyone.bearer(&format!("{name}:wrong"))).unwrap();
    check("no-key", &anyone.bearer(name)).unwrap();
}
