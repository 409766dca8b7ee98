//! Rights of pages of other origins with a browser's login: only reads, whose responses the browser
//! hides from them.
//!
//! One table has the expected result for every way to name the sending page. It applies to every
//! family of paths, every method, WebSockets and extended CONNECT. Requests with a token in a
//! header always pass: only the sender knows it.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use e2e::http::{Body, Connection, Protocol, runtime};
use e2e::journey;
use e2e::server::{ADMIN_PASSWORD, Options};
use e2e::{Cli, Client, Guarantee, Server, SharedWorld, Sim, no_second_try};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

/// The name by which users reach the server, besides its own address.
const KNOWN: &str = "https://drover.example";
/// A host that only a trusted proxy may name.
const FORWARDED: &str = "https://forwarded.example";

struct World {
    server: Server,
    /// `R_SESS=…`, and the value its pages repeat.
    cookie: String,
    csrf: String,
    token: String,
    cluster: String,
    _sim: Sim,
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn world() -> Arc<World> {
    WORLD.get(|| {
        let sim = Sim::start(&["--nodes", "1"])?;
        let flags = ["--trusted-proxies", "127.0.0.9"].map(str::to_owned).to_vec();
        let server = Server::start_with(Options { flags, ..Options::default() })?;
        let cli = Cli::admin(&server)?;
        let kubeconfig = sim.kubeconfig();
        let kubeconfig = kubeconfig.to_str().context("the path is no text")?;
        cli.succeed(&["cluster", "import", "attacked", "--kubeconfig", kubeconfig])?;
        let cluster = journey::cluster_id(&server, "attacked")?;
        // Not earlier, since the agent could not reach it.
        let known = json!({"value": KNOWN});
        server.admin()?.put("/v3/settings/server-url", &known)?.success()?;
        let (cookie, csrf) = login(&server);
        let token = server.login("admin", ADMIN_PASSWORD)?;
        Ok(World { server, cookie, csrf, token, cluster, _sim: sim })
    })
}

/// Logs in like a page: returns the login cookie, and the CSRF value.
fn login(server: &Server) -> (String, String) {
    let body = json!({"username": "admin", "password": ADMIN_PASSWORD, "responseType": "cookie"});
    let path = "/v3-public/localProviders/local?action=login";
    let answer = server.anyone().unwrap().post(path, &body).unwrap();
    let cookies: Vec<_> =
        answer.headers.get_all("set-cookie").iter().map(|c| c.to_str().unwrap()).collect();
    let pair = |name: &str| {
        let found = cookies.iter().find(|cookie| cookie.starts_with(&format!("{name}=")));
        let found = found.unwrap_or_else(|| panic!("no {name} in {cookies:?} {}", answer.text()));
        assert!(found.contains("; SameSite=Lax") && found.contains("; Secure"), "{found}");
        found.split(';').next().unwrap().to_owned()
    };
    let csrf = pair("__Host-CSRF").split_once('=').unwrap().1.to_owned();
    (pair("R_SESS"), csrf)
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Read,
    Write,
    Stream,
}

const ACTS: [(Act, &str); 8] = [
    (Act::Read, "GET"),
    (Act::Read, "HEAD"),
    (Act::Write, "POST"),
    (Act::Write, "PUT"),
    (Act::Write, "PATCH"),
    (Act::Write, "DELETE"),
    (Act::Stream, "WebSocket"),
    (Act::Stream, "CONNECT"),
];

/// How the sending page is named, and whether it may write and open streams with the login cookie.
/// Reads pass always.
type Row = (&'static [(&'static str, &'static str)], bool, bool);

/// `OWN` is a placeholder of the address that the request is sent to.
const TABLE: [Row; 16] = [
    (&[], false, false),
    (&[("origin", "OWN")], true, true),
    (&[("origin", "OWN"), ("sec-fetch-site", "same-origin")], true, true),
    (&[("origin", KNOWN)], true, true),
    (&[("sec-fetch-site", "same-origin")], true, false),
    (&[("sec-fetch-site", "none")], true, false),
    (&[("sec-fetch-site", "same-site")], false, false),
    (&[("sec-fetch-site", "cross-site")], false, false),
    (&[("origin", "OWN"), ("sec-fetch-site", "cross-site")], false, false),
    (&[("origin", "https://evil.example")], false, false),
    (&[("origin", "https://wiki.drover.example")], false, false),
    (&[("origin", "https://drover.example:8443")], false, false),
    (&[("origin", "http://drover.example")], false, false),
    (&[("origin", "null")], false, false),
    // Headers that any client can write do not name the page.
    (&[("origin", FORWARDED), ("x-forwarded-host", "forwarded.example")], false, false),
    (&[("origin", "OWN"), ("origin", "https://evil.example")], false, false),
];

impl World {
    /// One path of each family, with `watch` where there are watches.
    fn families(&self) -> Vec<String> {
        let cluster =
            format!("/k8s/clusters/{}/api/v1/namespaces/default/configmaps", self.cluster);
        [
            "/api/v1/namespaces/default/configmaps",
            "/apis/management.cattle.io/v3/settings",
            "/k8s/clusters/local/api/v1/namespaces/default/configmaps",
            &cluster,
            "/v3/preferences",
            "/v3/subscribe",
            "/v1/anything",
            "/v3/connect-not",
            "/openapi/v3",
            "/metrics",
            "/no/such/path",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    fn request(
        &self,
        act: &str,
        path: &str,
        named: &[(&str, &str)],
        by: Credential,
    ) -> Request<Body> {
        let method = match act {
            "WebSocket" => Method::GET,
            other => other.parse().unwrap(),
        };
        // A request that passes must change nothing.
        let query =
            if act == "WebSocket" || act == "CONNECT" { "watch=true" } else { "dryRun=All" };
        let mut request = Request::builder().method(method).uri(format!("{path}?{query}"));
        for (name, value) in named {
            let own = self.server.url();
            request = request.header(*name, if *value == "OWN" { own } else { *value });
        }
        request = match by {
            Credential::Cookie => {
                request.header("cookie", &self.cookie).header("x-api-csrf", &self.csrf)
            }
            Credential::Bearer => request.header("authorization", format!("Bearer {}", self.token)),
        };
        match act {
            "WebSocket" => {
                request = request
                    .header("connection", "Upgrade")
                    .header("upgrade", "websocket")
                    .header("sec-websocket-version", "13")
                    .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
            }
            "CONNECT" => {
                request = request
                    .extension(hyper::ext::Protocol::from_static("websocket"))
                    .header("sec-websocket-version", "13");
            }
            _ => {}
        }
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
        let body = match act {
            "POST" | "PUT" | "PATCH" => object.to_string(),
            _ => String::new(),
        };
        request.body(Full::new(Bytes::from(body)).boxed_unsync()).unwrap()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Credential {
    Cookie,
    Bearer,
}

/// Sends it on a connection of its own; returns whether it was refused as one of a foreign page.
fn is_refused(client: &Client, act: &str, request: Request<Body>) -> (bool, StatusCode, String) {
    let protocol = if act == "CONNECT" { Protocol::Http2 } else { Protocol::Http1 };
    let client = client.anonymous().over(protocol);
    let (status, text) = runtime().block_on(async {
        let mut connection: Connection = client.connect().await.unwrap();
        let response = connection.response(request).await.unwrap();
        let status = response.status();
        // A stream does not end, so only its head is read.
        let body = if status == StatusCode::FORBIDDEN {
            response.into_body().collect().await.unwrap().to_bytes()
        } else {
            Bytes::new()
        };
        (status, String::from_utf8_lossy(&body).into_owned())
    });
    let refused = text.contains("login of this server") || text.contains("name the page");
    (refused, status, text)
}

/// Every family of paths, act, naming of the page and credential.
#[test]
fn pages_of_other_origins_neither_change_nor_stream_anything_with_a_login() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let anyone = world.server.anyone().unwrap();
    let mut wrong = Vec::new();
    for path in world.families() {
        for (act, spelled) in ACTS {
            for (named, write, stream) in TABLE {
                let passes = match act {
                    Act::Read => true,
                    Act::Write => write,
                    Act::Stream => stream,
                };
                for (by, passes) in [(Credential::Cookie, passes), (Credential::Bearer, true)] {
                    let request = world.request(spelled, &path, named, by);
                    let (refused, status, text) = is_refused(&anyone, spelled, request);
                    // A request that passes is authenticated.
                    let known = refused || status != StatusCode::UNAUTHORIZED;
                    if refused == passes || !known {
                        wrong.push(format!("{spelled} {path} {named:?} {by:?}: {status} {text}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The same operations, checked by their effects.
#[test]
fn a_foreign_page_makes_no_administrator_and_reads_no_secrets() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let anyone = world.server.anyone().unwrap();
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "taken-over"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let local = format!("/k8s/clusters/local{bindings}");
    let inside = format!("/k8s/clusters/{}{bindings}", world.cluster);
    for path in [bindings, &local, &inside] {
        // Without a content type, so that browsers send no preflight request.
        let request = Request::post(path).header("cookie", &world.cookie);
        let request = request.header("origin", "https://wiki.drover.example");
        let body = Full::new(Bytes::from(binding.to_string())).boxed_unsync();
        let (refused, status, text) = is_refused(&anyone, "POST", request.body(body).unwrap());
        assert!(refused, "{path}: {status} {text}");
        let admin = world.server.admin().unwrap();
        assert_eq!(admin.get(&format!("{path}/taken-over")).unwrap().status, 404, "{path}");
    }
    for path in ["/api/v1/secrets", "/k8s/clusters/local/api/v1/secrets"] {
        let named = [("origin", "https://wiki.drover.example")];
        let request = world.request("WebSocket", path, &named, Credential::Cookie);
        let (refused, status, text) = is_refused(&anyone, "WebSocket", request);
        assert!(refused, "{path}: {status} {text}");
        // Drover's own page gets the response.
        let request = world.request("WebSocket", path, &[("origin", "OWN")], Credential::Cookie);
        let (_, status, text) = is_refused(&anyone, "WebSocket", request);
        assert_eq!(status, StatusCode::SWITCHING_PROTOCOLS, "{path}: {text}");
    }
}

#[test]
fn a_tossed_cookie_makes_no_user() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let anyone = world.server.anyone().unwrap();
    let post = |cookies: String, query: &str, csrf: &str| {
        let request = Request::post(format!("/v3/users{query}"))
            .header("cookie", format!("{}; {cookies}", world.cookie))
            .header("origin", world.server.url())
            .header("content-type", "application/json")
            .header("x-api-csrf", csrf);
        let body = json!({"username": "backdoor", "password": "a-long-password"}).to_string();
        let answer =
            anyone.send(request.body(Full::new(Bytes::from(body)).boxed_unsync()).unwrap());
        answer.unwrap()
    };
    for (cookies, query, header) in [
        ("CSRF=evil", "?CSRF=evil", ""),
        ("CSRF=evil", "", "evil"),
        ("CSRF=evil; CSRF=evil", "?CSRF=evil", "evil"),
    ] {
        let answer = post(cookies.to_owned(), query, header);
        assert_eq!(answer.json()["code"], "InvalidCSRFToken", "{cookies}: {}", answer.text());
    }
    let users = world.server.admin().unwrap().get("/v3/users").unwrap().success().unwrap();
    let names = users["data"].as_array().unwrap();
    assert!(!names.iter().any(|user| user["username"] == "backdoor"), "{users}");
    // A cookie that another page has set does not lock the user out.
    let answer = post("CSRF=evil".to_owned(), "", &world.csrf);
    let made: Value = answer.success().unwrap();
    world
        .server
        .admin()
        .unwrap()
        .delete(&format!("/v3/users/{}", made["id"].as_str().unwrap()))
        .unwrap();
}

#[test]
fn nobody_is_logged_in_as_somebody_else_by_a_foreign_page() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let anyone = world.server.anyone().unwrap();
    let body = json!({"username": "admin", "password": ADMIN_PASSWORD, "responseType": "cookie"});
    for (origin, is_own) in [
        ("https://evil.example", false),
        ("null", false),
        (world.server.url(), true),
        (KNOWN, true),
    ] {
        // With or without the cookie of an earlier login, which makes no difference.
        for cookie in ["", world.cookie.as_str()] {
            let request = Request::post("/v3-public/localProviders/local?action=login")
                .header("origin", origin)
                .header("cookie", cookie);
            let body = Full::new(Bytes::from(body.to_string())).boxed_unsync();
            let answer = anyone.send(request.body(body).unwrap()).unwrap();
            let cookies = answer.headers.get("set-cookie").is_some();
            assert_eq!((answer.status == 403, cookies), (!is_own, is_own), "{}", answer.text());
        }
    }
}

#[test]
fn a_proxy_that_is_trusted_names_the_host_that_pages_come_from() {
    no_second_try(Guarantee::Rights);
    let flags = ["--trusted-proxies", "127.0.0.0/8"].map(str::to_owned).to_vec();
    let server = Server::start_with(Options { flags, ..Options::default() }).unwrap();
    let (cookie, csrf) = login(&server);
    let send = |origin: &str, headers: &[(&str, &str)]| {
        let mut request = Request::post("/v3/preferences?dryRun=All")
            .header("cookie", &cookie)
            .header("x-api-csrf", &csrf)
            .header("origin", origin)
            .header("sec-fetch-site", "same-origin");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from("{}")).boxed_unsync()).unwrap();
        server.anyone().unwrap().send(request).unwrap()
    };
    let by_https = [("x-forwarded-host", "forwarded.example"), ("x-forwarded-proto", "https")];
    let answer = send(FORWARDED, &by_https);
    assert_ne!(answer.status, 403, "{}", answer.text());
    let text = answer.headers.get("strict-transport-security").unwrap().to_str().unwrap();
    assert!(text.starts_with("max-age="), "{text}");
    let by_http = [("x-forwarded-host", "forwarded.example"), ("x-forwarded-proto", "http")];
    let answer = send(FORWARDED, &by_http);
    assert_eq!(answer.status, 403, "{}", answer.text());
    assert!(answer.headers.get("strict-transport-security").is_none());
    assert_eq!(
        send("http://forwarded.example", &by_http).status,
        send(FORWARDED, &by_https).status
    );
    assert_eq!(send("https://evil.example", &by_https).status, 403);
}

#[test]
fn no_browser_guesses_the_type_of_a_response() {
    let world = world();
    let admin = world.server.admin().unwrap();
    for path in world.families().into_iter().chain(["/".to_owned(), "/ping".to_owned()]) {
        if path == "/v3/subscribe" {
            continue;
        }
        let answer = admin.get(&path).unwrap();
        assert_eq!(answer.headers.get("x-content-type-options").unwrap(), "nosniff", "{path}");
        assert!(answer.headers.get("strict-transport-security").is_none(), "{path}");
    }
}
