//! Malformed and hostile input: each gets a clear error, and the server continues.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::http::runtime;
use e2e::journey::{self, MANAGEMENT};
use e2e::socket::Event;
use e2e::{
    Cli, Guarantee, Kubeconfig, ProgramOutput, Server, SharedWorld, Sim, Socket, eventually,
    no_second_try, programs,
};
use http::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testbed::Process;

/// Size of a body above every limit, in bytes.
const HUGE_BYTES: usize = 10 * 1024 * 1024;
const DEPTH: usize = 10_000;
/// The Secret with an agent's key.
const AGENT_NAMESPACE: &str = "cattle-system";
const LOGIN: &str = "/v3-public/localProviders/local?action=login";

struct World {
    server: Server,
    cli: Cli,
    sim: Sim,
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn world() -> Arc<World> {
    WORLD.get(|| {
        let server = Server::start()?;
        let cli = Cli::admin(&server)?;
        let sim = Sim::start(&[])?;
        Ok(World { server, cli, sim })
    })
}

impl World {
    /// A new cluster without an agent, and its registration token.
    fn cluster(&self, name: &str) -> (String, String) {
        let id = journey::create_cluster(&self.server, name).unwrap();
        let token = eventually("the cluster has a registration token", || {
            journey::registration_token(&self.server, &id)
        });
        let secret = token["status"]["token"].as_str().unwrap().to_owned();
        (id, secret)
    }

    /// Connects to the tunnel endpoint with a key of its own; returns status and body.
    fn register(&self, token: &str, key_seed: &str) -> (u16, Value) {
        let key: [u8; 32] = Sha256::digest(key_seed).into();
        let text = format!(
            "GET /v3/connect/register HTTP/1.1\r\nHost: drover\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nX-Drover-Tunnel-Version: 1\r\n\
             X-Drover-Tunnel-Key: {}\r\nX-Drover-Tunnel-Instance: test\r\n\
             X-Drover-Tunnel-Public-Key: {}\r\nX-API-Tunnel-Token: {token}\r\n\r\n",
            hex(&Sha256::digest(key)),
            STANDARD.encode(key),
        );
        let response = self.server.anyone().unwrap().exchange(text.as_bytes()).unwrap();
        let status = response.split(' ').nth(1).unwrap().parse().unwrap();
        let body = response.find('{').map(|at| &response[at..]).unwrap_or_default();
        let end = body.rfind('}').map_or(0, |at| at + 1);
        (status, serde_json::from_str(&body[..end]).unwrap_or_default())
    }

    /// An agent that is started by hand.
    fn agent(&self, sim: &Sim, name: &str, token: &str, checksum: &str) -> Process {
        self.agent_by(&sim.kubeconfig(), name, token, checksum)
    }

    /// As [`Self::agent`], with a token of the cluster, which is what an agent reports to the
    /// server.
    fn agent_with_access(&self, sim: &Sim, name: &str, token: &str) -> Process {
        let kubectl = sim.kubectl().unwrap();
        kubectl.succeed(&["create", "namespace", AGENT_NAMESPACE]).unwrap();
        kubectl.succeed(&["create", "serviceaccount", "agent", "-n", "default"]).unwrap();
        let role = ["--clusterrole=cluster-admin", "--serviceaccount=default:agent"];
        kubectl.succeed(&["create", "clusterrolebinding", "agent", role[0], role[1]]).unwrap();
        let access = kubectl.succeed(&["create", "token", "agent", "-n", "default"]).unwrap();
        let admin = Kubeconfig::read(&sim.kubeconfig()).unwrap();
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": admin.server, "certificate-authority-data": STANDARD.encode(&admin.ca_pem),
            }}],
            "users": [{"name": "it", "user": {"token": access.trim()}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        });
        let path = self.server.folder().join(format!("{name}.kubeconfig"));
        std::fs::write(&path, text.to_string()).unwrap();
        self.agent_by(&path, name, token, &self.checksum())
    }

    fn agent_by(&self, kubeconfig: &Path, name: &str, token: &str, checksum: &str) -> Process {
        let mut command = std::process::Command::new(programs::drover().unwrap());
        let home = self.server.folder().join(name);
        std::fs::create_dir(&home).unwrap();
        command
            .args(["agent", "cluster", "--server", self.server.url(), "--token", token])
            .args(["--ca-checksum", checksum, "--kubeconfig"])
            .arg(kubeconfig)
            .env("HOME", &home);
        Process::start("drover agent", &command, &home.join("agent.log")).unwrap()
    }

    fn checksum(&self) -> String {
        let pem = self.server.ca_pem().trim_end().to_owned() + "\n";
        hex(&Sha256::digest(pem))
    }

    fn still_works(&self) {
        let response = self.server.anyone().unwrap().get("/readyz").unwrap();
        assert_eq!(response.status, 200, "{}", self.server.log_tail());
        let log = self.server.log();
        assert!(!log.contains("panicked"), "{log}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}

/// Waits until the log of an agent says one of `words`.
fn says(agent: &Process, words: &[&str]) -> String {
    eventually("the agent says what is wrong", || -> Result<String> {
        let text = std::fs::read_to_string(agent.log())?;
        ensure!(words.iter().any(|word| text.contains(word)), "{text}");
        Ok(text)
    })
}

fn assert_refusal(response: &(u16, Value), code: u16, reason: &str) {
    let (status, body) = response;
    assert_eq!((*status, &body["reason"]), (code, &json!(reason)), "{body}");
    let message = body["message"].as_str().unwrap_or_default();
    assert!(message.len() > 10 && !message.ends_with('.'), "{body}");
}

#[test]
fn a_wrong_registration_token_is_refused_and_the_agent_reports_it() {
    no_second_try(Guarantee::Rights);
    let world = world();
    assert_refusal(&world.register("wrong", "one"), 401, "TokenUnknown");
    // Where an agent joined before, the next one uses the stored key.
    let sim = Sim::start(&[]).unwrap();
    let agent = world.agent(&sim, "wrong-token", "wrong", &world.checksum());
    let text = says(&agent, &["token"]);
    assert!(!text.contains("panicked"), "{text}");
    world.still_works();
}

#[test]
fn an_expired_registration_token_is_refused() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let (id, secret) = world.cluster("expired");
    let name = journey::registration_token(&world.server, &id).unwrap();
    let name = name["metadata"]["name"].as_str().unwrap().to_owned();
    let patch = json!({"status": {"expiresAt": "2020-01-01T00:00:00Z"}}).to_string();
    let arguments = [
        "patch",
        "clusterregistrationtokens.management.cattle.io",
        &name,
        "-n",
        &id,
        "--subresource=status",
        "--type=merge",
        "-p",
        &patch,
    ];
    world.server.kubectl().unwrap().succeed(&arguments).unwrap();
    eventually("the token has expired", || -> Result<()> {
        let (status, body) = world.register(&secret, "late");
        ensure!(status == 403 && body["reason"] == "TokenExpired", "{status} {body}");
        Ok(())
    });
    let manifest = world.server.anyone().unwrap().get(&format!("/v3/import/{secret}_{id}.yaml"));
    assert!(manifest.unwrap().status.is_client_error());
    let (state, message) = journey::state(&world.server, &id).unwrap();
    assert_ne!(state, "active", "{message}");
}

#[test]
fn a_used_registration_token_admits_no_other_agent() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let kubeconfig = world.sim.kubeconfig();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let import = ["cluster", "import", "joined", "--kubeconfig", kubeconfig];
    world.cli.succeed(&import).unwrap();
    let id = journey::cluster_id(&world.server, "joined").unwrap();
    let token = journey::registration_token(&world.server, &id).unwrap();
    let secret = token["status"]["token"].as_str().unwrap();
    assert_refusal(&world.register(secret, "thief"), 403, "TokenUsed");
    journey::is_active(&world.server, &id).unwrap();
    world.still_works();
}

#[test]
fn a_guessed_import_url_returns_no_manifest() {
    no_second_try(Guarantee::Secrecy);
    let world = world();
    let (id, secret) = world.cluster("guessed");
    let (_, other) = world.cluster("other");
    let anyone = world.server.anyone().unwrap();
    let good = anyone.get(&format!("/v3/import/{secret}_{id}.yaml")).unwrap();
    assert_eq!(good.status, 200);
    for path in [
        format!("/v3/import/{}_{id}.yaml", "b".repeat(54)),
        format!("/v3/import/{other}_{id}.yaml"),
        format!("/v3/import/{secret}_{id}"),
        "/v3/import/..%2f..%2fetc%2fpasswd_local.yaml".to_owned(),
        "/v3/import/%22%0ainjected:%20true_local.yaml".to_owned(),
        "/v3/import/".to_owned(),
    ] {
        let response = anyone.get(&path).unwrap();
        assert!(response.status.is_client_error(), "{path}: {}", response.status);
        assert!(!response.text().contains("kind: Deployment"), "{path}: {}", response.text());
    }
}

#[test]
fn an_agent_with_the_wrong_checksum_trusts_nobody_and_says_so() {
    no_second_try(Guarantee::Secrecy);
    let world = world();
    let (id, secret) = world.cluster("mistrusted");
    let agent = world.agent(&world.sim, "wrong-checksum", &secret, &"0".repeat(64));
    let text = says(&agent, &["checksum"]);
    assert!(text.contains(&world.checksum()) || text.contains(&"0".repeat(64)), "{text}");
    assert!(!text.contains(&secret), "the token is in the log: {text}");
    let token = journey::registration_token(&world.server, &id).unwrap();
    assert!(token["status"]["usedAt"].is_null(), "{token}");
}

#[test]
fn an_agent_whose_key_was_replaced_carries_nothing_any_more() {
    no_second_try(Guarantee::Revocation);
    let world = world();
    let (id, first) = world.cluster("replaced");
    let admin = world.server.admin().unwrap();
    let old_sim = Sim::start(&[]).unwrap();
    let _old = world.agent_with_access(&old_sim, "replaced-old", &first);
    let version = format!("/k8s/clusters/{id}/version");
    eventually("the first agent carries requests", || admin.get(&version)?.success());
    let namespaces = format!("/k8s/clusters/{id}/api/v1/namespaces");
    eventually("roles are there", || admin.get(&namespaces)?.success());
    let origin = [("origin", world.server.url())];
    let mut open =
        Socket::open(&admin, &format!("{namespaces}?watch=true"), &origin).unwrap().unwrap();
    runtime().block_on(open.next()).unwrap();

    let body = json!({
        "apiVersion": "management.cattle.io/v3", "kind": "ClusterRegistrationToken",
        "metadata": {"name": "second", "namespace": id}, "spec": {"clusterName": id},
    });
    let tokens = format!("{MANAGEMENT}/namespaces/{id}/clusterregistrationtokens");
    admin.post(&tokens, &body).unwrap().success().unwrap();
    let second = eventually("the second token", || -> Result<String> {
        let token = admin.get(&format!("{tokens}/second"))?.success()?;
        Ok(token["status"]["token"].as_str().context("no token yet")?.to_owned())
    });
    let registered = || -> Result<String> {
        let cluster = journey::cluster(&world.server, &id)?;
        let name = cluster["status"]["agentIdentity"]["tokenName"].as_str();
        Ok(name.context("no identity")?.to_owned())
    };
    let new_sim = Sim::start(&[]).unwrap();
    let mut new = world.agent_with_access(&new_sim, "replaced-new", &second);
    eventually("the second agent is registered", || -> Result<()> {
        ensure!(registered()? == "second");
        Ok(())
    });
    let since = Instant::now();
    while let Ok(Event::Frame(_)) = runtime().block_on(open.next()) {}
    assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
    eventually("the second agent carries requests", || admin.get(&version)?.success());

    // The first would continue if it could: without the second there is no agent.
    new.end();
    eventually("nobody carries requests", || -> Result<()> {
        let response = admin.get(&version)?;
        ensure!(response.status.is_server_error(), "{}", response.text());
        Ok(())
    });
    for _ in 0..20 {
        let response = admin.get(&version).unwrap();
        assert!(response.status.is_server_error(), "{}: {}", response.status, response.text());
    }
}

/// A kubeconfig for an address without a listener.
fn unreachable(world: &World) -> PathBuf {
    let path = world.server.folder().join("unreachable.kubeconfig");
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "it", "user": {"token": "none"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    });
    std::fs::write(&path, text.to_string()).unwrap();
    path
}

fn clear(outcome: &ProgramOutput, words: &[&str]) {
    assert!(!outcome.success, "{outcome:?}");
    assert!((1..=9).contains(&outcome.code), "not a documented exit code: {outcome:?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "no '{word}' in: {}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "", "errors belong on stderr");
}

#[test]
fn a_kubeconfig_that_reaches_nothing_imports_nothing() {
    let world = world();
    let file = unreachable(&world);
    let file = file.to_str().unwrap();
    let outcome = world.cli.run(&["cluster", "import", "dead", "--kubeconfig", file]).unwrap();
    clear(&outcome, &["127.0.0.1:1"]);
    assert!(journey::cluster_id(&world.server, "dead").is_err(), "a cluster was left behind");

    let arguments = ["cluster", "import", "dead", "--kubeconfig", "/nowhere/kubeconfig"];
    clear(&world.cli.run(&arguments).unwrap(), &["/nowhere/kubeconfig"]);
    let garbage = world.server.folder().join("garbage.kubeconfig");
    std::fs::write(&garbage, "{{{ not a kubeconfig").unwrap();
    let arguments = ["cluster", "import", "dead", "--kubeconfig", garbage.to_str().unwrap()];
    clear(&world.cli.run(&arguments).unwrap(), &["garbage.kubeconfig"]);
}

#[test]
fn a_name_is_given_once() {
    let world = world();
    world.cluster("taken");
    let kubeconfig = world.sim.kubeconfig();
    let arguments = ["cluster", "import", "taken", "--kubeconfig", kubeconfig.to_str().unwrap()];
    let outcome = world.cli.run(&arguments).unwrap();
    clear(&outcome, &["taken"]);
    assert_eq!(outcome.code, 6, "{outcome:?}");
    journey::cluster_id(&world.server, "taken").expect("still exactly one");
}

#[test]
fn names_that_cannot_be_are_refused_with_the_rule() {
    let world = world();
    let kubeconfig = world.sim.kubeconfig();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let long = "x".repeat(300);
    for name in ["", "bell\u{7}", "two\nlines", &long] {
        let arguments = ["cluster", "import", "--kubeconfig", kubeconfig, "--", name];
        clear(&world.cli.run(&arguments).unwrap(), &["name"]);
    }
    let admin = world.server.admin().unwrap();
    for name in ["Not_A_Name", "a/b", "..", "-", &long] {
        let body = json!({
            "apiVersion": "management.cattle.io/v3", "kind": "Cluster",
            "metadata": {"name": name}, "spec": {},
        });
        let response = admin.post(&format!("{MANAGEMENT}/clusters"), &body).unwrap();
        assert_eq!(response.status, 422, "{name}: {}", response.text());
        assert_eq!(response.json()["reason"], "Invalid", "{}", response.text());
        assert!(response.text().contains("metadata.name"), "{}", response.text());
    }
    let response = admin.post("/v3/clusters", &json!({"name": "bell\u{7}"})).unwrap();
    assert_eq!(response.status, 422, "{}", response.text());
    world.still_works();
}

/// Where bodies are read: method, path, and whether a login is shown.
const BODIES: [(&str, bool); 4] = [
    ("/api/v1/namespaces/default/configmaps", true),
    ("/apis/management.cattle.io/v3/clusters", true),
    ("/v3/clusters", true),
    (LOGIN, false),
];

#[test]
fn a_body_of_ten_megabytes_is_refused_as_too_large() {
    let world = world();
    let filling = "x".repeat(HUGE_BYTES);
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "huge", "username": "admin",
        "metadata": {"name": "huge"}, "data": {"filling": filling}, "password": "x",
    })
    .to_string();
    for (path, login) in BODIES {
        let client = if login { world.server.admin() } else { world.server.anyone() };
        for protocol in e2e::Protocol::BOTH {
            let client = client.as_ref().unwrap().over(protocol);
            let response = client.call(Method::POST, path, body.clone()).unwrap();
            assert_eq!(response.status, 413, "{path} {protocol:?}: {}", response.text());
            assert!(!response.body.is_empty() && response.body.len() < 4096, "{path}");
        }
    }
    world.still_works();
}

#[test]
fn json_ten_thousand_deep_is_refused_as_malformed() {
    let world = world();
    let deep = format!("{}1{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    let objects = format!("{}1{}", "{\"a\":".repeat(DEPTH), "}".repeat(DEPTH));
    let inside = format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"deep\"}},\
         \"data\":{deep},\"name\":{deep},\"username\":{deep},\"password\":\"x\"}}"
    );
    for (path, login) in BODIES {
        let client = if login { world.server.admin() } else { world.server.anyone() };
        let client = client.unwrap();
        for body in [&deep, &objects, &inside] {
            let response = client.call(Method::POST, path, body.clone()).unwrap();
            let status = response.status.as_u16();
            assert!([400, 422].contains(&status), "{path}: {status} {}", response.text());
            assert!(response.body.len() < 4096, "{path}: the body comes back");
        }
    }
    world.still_works();
}

#[test]
fn bodies_that_are_no_json_are_refused_as_malformed() {
    let world = world();
    let bodies: [&[u8]; 6] = [b"{", b"null", b"[]", b"\"text\"", b"\xff\xfe\x00", b"{\"a\":1}{"];
    for (path, login) in BODIES {
        let client = if login { world.server.admin() } else { world.server.anyone() };
        let client = client.unwrap();
        for body in bodies {
            let response = client.call(Method::POST, path, body.to_vec()).unwrap();
            let code = response.status.as_u16();
            assert!((400..500).contains(&code), "{path} {body:?}: {code} {}", response.text());
            assert!(response.json().is_object(), "{path} {body:?}: {}", response.text());
        }
    }
    world.still_works();
}

#[test]
fn paths_that_lead_nowhere_are_answered_plainly() {
    let world = world();
    let admin = world.server.admin().unwrap();
    let (id, _) = world.cluster("unconnected");
    let waiting = admin.get(&format!("/k8s/clusters/{id}/api/v1/nodes")).unwrap();
    assert_eq!(waiting.status, 503, "{}", waiting.text());
    assert!(waiting.text().contains("connected"), "{}", waiting.text());
    for path in [
        "/k8s/clusters/c-none/api/v1/nodes",
        "/k8s/clusters/",
        "/k8s/clusters/../../api/v1/secrets",
        "/k8s/clusters/%2e%2e/api/v1/secrets",
        "/v3/nonsense",
        "/v3/clusters/c-none",
        "/apis/none.example.com/v1/things",
        "/nonsense",
    ] {
        let response = admin.get(path).unwrap();
        assert!(
            response.status.is_client_error(),
            "{path}: {} {}",
            response.status,
            response.text()
        );
    }
    let endless = format!("/v3/clusters/{}", "a".repeat(70_000));
    if let Ok(response) = admin.get(&endless) {
        assert!(response.status.is_client_error(), "{}", response.status);
    }
    world.still_works();
}

#[test]
fn wrong_passwords_are_refused_alike_for_known_and_unknown_users() {
    no_second_try(Guarantee::Secrecy);
    let world = world();
    let anyone = world.server.anyone().unwrap();
    let attempt = |user: &str| {
        let body = json!({"username": user, "password": "wrong-password"});
        anyone.post(LOGIN, &body).unwrap()
    };
    let (known, unknown) = (attempt("admin"), attempt("no-such-user"));
    assert_eq!(known.status, 401, "{}", known.text());
    assert_eq!((known.status, known.text()), (unknown.status, unknown.text()));
    assert!(!world.server.log().contains("wrong-password"));
}

/// Logs in with an unused name, from the address in `forwarded`; returns the status.
fn guess(server: &Server, name: &str, forwarded: &str) -> u16 {
    let body = json!({"username": name, "password": "wrong-password"}).to_string();
    let request = http::Request::post(LOGIN)
        .header("content-type", "application/json")
        .header("x-forwarded-for", forwarded)
        .body(http_body_util::BodyExt::boxed_unsync(http_body_util::Full::new(body.into())))
        .unwrap();
    server.anyone().unwrap().send(request).unwrap().status.as_u16()
}

/// Failures from one address that cost nothing yet.
const FREE_FAILURES: usize = 100;

#[test]
fn many_names_tried_from_one_address_are_slowed_down_whatever_the_headers_say() {
    no_second_try(Guarantee::Rights);
    let server = Server::start().unwrap();
    let guesses =
        (0..FREE_FAILURES).map(|n| guess(&server, &format!("user-{n}"), &format!("10.0.0.{n}")));
    assert!(guesses.into_iter().all(|status| status == 401));
    assert_eq!(guess(&server, "one-more", "10.1.1.1"), 429);
    // Also with the right password: the response must not reveal that a guess was right.
    let body = json!({"username": "admin", "password": e2e::server::ADMIN_PASSWORD});
    let response = server.anyone().unwrap().post(LOGIN, &body).unwrap();
    assert_eq!(response.status, 429, "{}", response.text());
    assert!(
        response.json()["message"].as_str().unwrap().contains("try again in"),
        "{}",
        response.text()
    );
    // Who is logged in is not concerned.
    server.admin().unwrap().get("/v3/users").unwrap().success().unwrap();
}

#[test]
fn behind_a_trusted_proxy_each_client_is_counted_for_itself() {
    let flags = ["--trusted-proxies", "127.0.0.0/8"].map(str::to_owned).to_vec();
    let server = Server::start_with(e2e::server::Options { flags, ..Default::default() }).unwrap();
    for n in 0..FREE_FAILURES {
        assert_eq!(guess(&server, &format!("user-{n}"), "1.2.3.4, 203.0.113.7"), 401);
    }
    assert_eq!(guess(&server, "one-more", "203.0.113.7"), 429);
    assert_eq!(guess(&server, "another", "203.0.113.8"), 401);
}

#[test]
fn a_login_with_the_wrong_authority_sends_no_password() {
    no_second_try(Guarantee::Secrecy);
    let world = world();
    let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let file = world.server.folder().join("other.pem");
    std::fs::write(&file, other.cert.pem()).unwrap();
    let cli = Cli::new().unwrap();
    let arguments = [
        "login",
        world.server.url(),
        "--username",
        "admin",
        "--password",
        e2e::server::ADMIN_PASSWORD,
        "--ca-file",
        file.to_str().unwrap(),
    ];
    clear(&cli.run(&arguments).unwrap(), &["certificate"]);
}

#[test]
fn secrets_are_in_no_log() {
    no_second_try(Guarantee::Secrecy);
    let world = world();
    let (_, secret) = world.cluster("quiet");
    let token = world.server.login("admin", e2e::server::ADMIN_PASSWORD).unwrap();
    let client = world.server.anyone().unwrap().bearer(&token);
    client.get("/v3/clusters").unwrap().success().unwrap();
    let key = token.split(':').nth(1).unwrap();
    let log = world.server.log();
    for hidden in [e2e::server::ADMIN_PASSWORD, key, &secret] {
        assert!(!log.contains(hidden), "a secret is in the log");
    }
}

/// A connection that says nothing must not keep others from being served.
#[test]
fn silent_connections_do_not_keep_others_waiting() {
    let world = world();
    let address = world.server.url().trim_start_matches("https://").to_owned();
    let held: Vec<_> = (0..200).map(|_| std::net::TcpStream::connect(&address).unwrap()).collect();
    let since = std::time::Instant::now();
    world.still_works();
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    drop(held);
}
