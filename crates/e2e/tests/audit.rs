//! The audit log of the server: every attempt at the entry point leaves one event, with address,
//! program and user, and without any secret. Refused requests can neither fill the log nor displace
//! other events.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use e2e::http::{Body, empty, runtime};
use e2e::journey;
use e2e::server::{ADMIN_PASSWORD, Options};
use e2e::{Cli, Client, Guarantee, Server, Sim, eventually, no_second_try};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const EVENTS: &str = "/v3/auditevents";
const LOGIN: &str = "/v3-public/localProviders/local?action=login";
/// The address of the attacks.
const ATTACKER: &str = "127.0.0.66";
const WRONG_PASSWORD: &str = "guessed-by-an-attacker";
/// A password that a user typed into the wrong field.
const PASSWORD_AS_NAME: &str = "typed-into-the-wrong-field";
const BAD_KEY: &str = "bcdfghjklmnpqrstvwxz2456789bcdfghjklmnpqrstvwxz2456789";

fn files(server: &Server) -> Vec<PathBuf> {
    let folder = server.data_dir().join("audit");
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn text(server: &Server) -> String {
    files(server).iter().map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

fn events(server: &Server) -> Vec<Value> {
    let text = text(server);
    // The last line may be incomplete.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kind(event: &Value) -> &str {
    event["annotations"]["drover.io/event"].as_str().unwrap_or("api")
}

/// Sends one request, by a program of this name.
fn send(client: &Client, program: &str, method: Method, path: &str, body: &Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(path).header("user-agent", program);
    let request = request.header("content-type", "application/json");
    let body: Body = Full::new(Bytes::from(body)).boxed_unsync();
    let answer = client.send(request.body(body).unwrap()).unwrap();
    json!({"status": answer.status.as_u16(), "body": answer.json()})
}

/// The events of one program, once there is one.
fn of_program(server: &Server, program: &str) -> Vec<Value> {
    eventually("the event", || -> Result<Vec<Value>> {
        let found: Vec<Value> =
            events(server).into_iter().filter(|event| event["userAgent"] == program).collect();
        ensure!(!found.is_empty(), "{program} left no trace");
        Ok(found)
    })
}

fn stop(server: &mut Server) {
    let process = nix::unistd::Pid::from_raw(server.process_id().unwrap().cast_signed());
    nix::sys::signal::kill(process, nix::sys::signal::SIGTERM).unwrap();
    eventually("the server ends", || -> Result<()> {
        ensure!(!server.is_running(), "it runs");
        Ok(())
    });
}

/// The expected event of one request: kind, code, user, cluster.
struct Expected<'a> {
    event: &'a str,
    code: u16,
    user: &'a str,
    cluster: &'a str,
}

#[track_caller]
fn check(server: &Server, program: &str, expected: &Expected<'_>) -> Value {
    let found = of_program(server, program);
    assert_eq!(found.len(), 1, "{program}: {found:#?}");
    let event = found[0].clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    assert_eq!(kind(&event), expected.event, "{event:#}");
    assert_eq!(event["responseStatus"]["code"], expected.code, "{event:#}");
    assert_eq!(event["sourceIPs"], json!([ATTACKER]), "{event:#}");
    assert_eq!(text(&event["user"]["username"]), expected.user, "{event:#}");
    assert_eq!(text(&event["annotations"]["drover.io/cluster"]), expected.cluster, "{event:#}");
    assert_eq!(event["level"], "Metadata", "{event:#}");
    event
}

#[test]
#[expect(clippy::too_many_lines, reason = "the attempts of one attacker, in their order")]
fn an_attack_leaves_a_trace_with_its_address_and_program_and_no_secret() {
    no_second_try(Guarantee::Secrecy);
    let sim = Sim::start(&["--nodes", "1"]).unwrap();
    let server = Server::start().unwrap();
    let cli = Cli::admin(&server).unwrap();
    let kubeconfig = sim.kubeconfig();
    cli.succeed(&["cluster", "import", "watched", "--kubeconfig", kubeconfig.to_str().unwrap()])
        .unwrap();
    let cluster = journey::cluster_id(&server, "watched").unwrap();
    let admin_token = server.login("admin", ADMIN_PASSWORD).unwrap();
    let anyone = server.anyone().unwrap().from(ATTACKER.parse().unwrap());
    let admin = anyone.bearer(&admin_token);
    let me = admin.get("/v3/users?me=true").unwrap().success().unwrap();
    let me = me["data"][0]["id"].as_str().unwrap().to_owned();
    let below = format!("/k8s/clusters/{cluster}");
    let none = Value::Null;
    let expect = |event, code, user, cluster| Expected { event, code, user, cluster };
    let mut secrets = vec![
        ADMIN_PASSWORD.to_owned(),
        WRONG_PASSWORD.to_owned(),
        PASSWORD_AS_NAME.to_owned(),
        BAD_KEY.to_owned(),
        admin_token.clone(),
    ];

    // Logins.
    let wrong = json!({"username": "admin", "password": WRONG_PASSWORD});
    send(&anyone, "login-wrong", Method::POST, LOGIN, &wrong);
    let event = check(&server, "login-wrong", &expect("login-refused", 401, "", ""));
    assert_eq!(event["annotations"]["drover.io/login-name"], "admin");
    let unknown = json!({"username": PASSWORD_AS_NAME, "password": WRONG_PASSWORD});
    send(&anyone, "login-unknown", Method::POST, LOGIN, &unknown);
    let event = check(&server, "login-unknown", &expect("login-refused", 401, "", ""));
    assert_eq!(event["annotations"]["drover.io/login-name"], none);
    let right = json!({"username": "admin", "password": ADMIN_PASSWORD, "responseType": "json"});
    let login = send(&anyone, "login-right", Method::POST, LOGIN, &right);
    let event = check(&server, "login-right", &expect("login", 201, &me, ""));
    assert_eq!(event["annotations"]["drover.io/token"], login["body"]["id"]);
    let second = login["body"]["token"].as_str().unwrap().to_owned();
    secrets.push(second.clone());

    // Invalid credentials, at each entry point.
    let (name, _) = second.split_once(':').unwrap();
    let bad = anyone.bearer(&format!("{name}:{BAD_KEY}"));
    for (program, client, path, cluster) in [
        ("bad-view", &bad, "/v3/clusters", ""),
        ("bad-api", &bad, "/api/v1/namespaces", ""),
        ("bad-proxy", &bad, &*format!("{below}/api/v1/pods"), &*cluster),
        ("no-view", &anyone, "/v3/clusters", ""),
        ("no-proxy", &anyone, &*format!("{below}/api/v1/pods"), &*cluster),
    ] {
        send(client, program, Method::GET, path, &none);
        let event = check(&server, program, &expect("credential-refused", 401, "", cluster));
        if program.starts_with("bad") {
            assert_eq!(event["annotations"]["drover.io/token"], name, "{event:#}");
        }
    }
    let key = json!({"token": second.clone()});
    let path = format!("/v3/tokens/{second}?token={second}");
    send(&admin, "key-in-path", Method::PUT, &path, &key);
    let event = &of_program(&server, "key-in-path")[0];
    assert!(event["requestURI"].as_str().unwrap().contains("[redacted]"), "{event:#}");

    // A page of another origin that uses a login.
    let forged = Request::post("/v3/users")
        .header("user-agent", "forged")
        .header("cookie", format!("R_SESS={second}"))
        .header("origin", "https://evil.example");
    let answer = anyone.send(forged.body(empty()).unwrap()).unwrap();
    assert_eq!(answer.status, 403, "{}", answer.text());
    check(&server, "forged", &expect("cross-site-refused", 403, "", ""));

    // Tokens.
    let made = json!({"description": "stolen"});
    let made = send(&admin, "token-maker", Method::POST, "/v3/tokens", &made);
    let event = check(&server, "token-maker", &expect("token-created", 201, &me, ""));
    let made_id = made["body"]["id"].as_str().unwrap();
    assert_eq!(event["annotations"]["drover.io/token"], made_id);
    secrets.push(made["body"]["token"].as_str().unwrap().to_owned());
    let path = format!("/v3/clusters/{cluster}?action=generateKubeconfig");
    let kubeconfig = send(&admin, "kubeconfig-maker", Method::POST, &path, &json!({}));
    assert_eq!(kubeconfig["status"], 200, "{kubeconfig}");
    eventually("the token of the kubeconfig", || -> Result<()> {
        let found = of_program(&server, "kubeconfig-maker");
        let made = found.iter().filter(|event| kind(event) == "token-created").count();
        ensure!(made == 1, "{found:#?}");
        Ok(())
    });
    let path = format!("/v3/tokens/{made_id}");
    send(&admin, "token-ender", Method::DELETE, &path, &none);
    check(&server, "token-ender", &expect("token-deleted", 204, &me, ""));
    let logout = "/v3/tokens?action=logout";
    send(&anyone.bearer(&second), "leaver", Method::POST, logout, &none);
    check(&server, "leaver", &expect("logout", 200, &me, ""));
    let change = json!({"currentPassword": WRONG_PASSWORD, "newPassword": WRONG_PASSWORD});
    let path = "/v3/users?action=changepassword";
    send(&admin, "changer", Method::POST, path, &change);
    check(&server, "changer", &expect("password-refused", 422, &me, ""));

    // Through the proxy.
    let path = format!("{below}/api/v1/namespaces/default/configmaps?limit=1&token={BAD_KEY}");
    send(&admin, "proxied", Method::GET, &path, &none);
    let event = check(&server, "proxied", &expect("proxied", 200, &me, &cluster));
    assert_eq!(event["verb"], "list");
    let reference = json!({"resource": "configmaps", "namespace": "default", "apiVersion": "v1"});
    assert_eq!(event["objectRef"], reference);
    runtime().block_on(async {
        let mut connection = admin.connect().await.unwrap();
        let path = format!("{below}/api/v1/namespaces?watch=true");
        let watch = Request::get(path).header("user-agent", "watcher").body(empty()).unwrap();
        let mut watch = connection.response(watch).await.unwrap().into_body();
        watch.frame().await.unwrap().unwrap();
    });
    let stages = eventually("both ends of the watch", || -> Result<Vec<Value>> {
        let found = of_program(&server, "watcher");
        ensure!(found.len() == 2, "{found:#?}");
        Ok(found.iter().map(|event| event["stage"].clone()).collect())
    });
    assert_eq!(stages, ["ResponseStarted", "ResponseComplete"]);

    // Through the view: requests that become requests of the management API, and others.
    let preference = json!({"name": "watched-by-nobody"});
    send(&admin, "creator", Method::POST, "/v3/clusters", &preference);
    let found = eventually("the event of the creation", || -> Result<Vec<Value>> {
        let found = of_program(&server, "creator");
        ensure!(found.iter().any(|event| event["verb"] == "create"), "{found:#?}");
        Ok(found)
    });
    let creates: Vec<_> = found.iter().filter(|event| event["verb"] == "create").collect();
    assert_eq!(creates.len(), 1, "{found:#?}");
    assert_eq!(creates[0]["objectRef"]["resource"], "clusters");
    assert_eq!(creates[0]["sourceIPs"], json!([ATTACKER]));
    assert_eq!(creates[0]["user"]["username"], *me);
    assert!(found.iter().all(|event| kind(event) == "api"), "{found:#?}");
    send(&admin, "reader", Method::GET, "/v3/clusters", &none);
    let found = of_program(&server, "reader");
    assert_eq!(found.len(), 1, "{found:#?}");

    // Agents: the real one, and one with an invalid token.
    let connected = events(&server);
    let agent = connected.iter().find(|event| kind(event) == "agent-registered").unwrap();
    assert_eq!(agent["annotations"]["drover.io/cluster"], *cluster);
    assert_eq!(agent["user"]["username"], format!("system:drover:agent:{cluster}"));
    assert_eq!(agent["sourceIPs"], json!(["127.0.0.1"]));
    let key: [u8; 32] = Sha256::digest("a stranger's key").into();
    let id: String = Sha256::digest(key).iter().map(|byte| format!("{byte:02x}")).collect();
    let hello = Request::get("/v3/connect/register")
        .header("user-agent", "false-agent")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("x-drover-tunnel-version", "1")
        .header("x-drover-tunnel-key", &id)
        .header("x-drover-tunnel-instance", "test")
        .header("x-drover-tunnel-public-key", STANDARD.encode(key))
        .header("x-api-tunnel-token", BAD_KEY);
    let answer = anyone.send(hello.body(empty()).unwrap()).unwrap();
    assert_eq!(answer.status, 401, "{}", answer.text());
    let event = check(&server, "false-agent", &expect("agent-refused", 401, "", ""));
    assert_eq!(event["annotations"]["drover.io/agent-key"], id);
    let registration = journey::registration_token(&server, &cluster).unwrap();
    let registration = registration["status"]["token"].as_str().unwrap().to_owned();
    let path = format!("/v3/import/{registration}_{cluster}.yaml");
    send(&anyone, "importer", Method::GET, &path, &none);
    let event = &of_program(&server, "importer")[0];
    assert_eq!(event["requestURI"], format!("/v3/import/[redacted]_{cluster}.yaml"));
    secrets.push(registration);

    // The log contains no credentials.
    let (log, own) = (text(&server), server.log());
    for secret in &secrets {
        let key = secret.split_once(':').map_or(secret.as_str(), |(_, key)| key);
        assert!(!log.contains(key), "the audit log has a secret");
        assert!(!own.contains(key), "the server's log has a secret");
    }
    assert!(own.contains("a login was refused") && own.contains(ATTACKER), "{own}");
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(server.data_dir().join("audit")), 0o700);
    assert!(files(&server).into_iter().all(|file| mode(file) == 0o600));
}

#[test]
fn a_flood_of_refused_credentials_neither_fills_the_log_nor_hides_a_login() {
    no_second_try(Guarantee::Durability);
    const REQUESTS: usize = 500;
    let mut server = Server::start().unwrap();
    let flood = |path: &'static str, token: &'static str| {
        let client = server.anyone().unwrap().from(ATTACKER.parse().unwrap()).bearer(token);
        runtime().block_on(async move {
            let mut connection = client.connect().await.unwrap();
            for _ in 0..REQUESTS {
                connection.send(Request::get(path).body(empty()).unwrap()).await.unwrap();
            }
        });
    };
    flood("/v3/clusters", "token-abcde:flood");
    flood("/api/v1/namespaces", "no-token-of-ours");
    let anyone = server.anyone().unwrap().from(ATTACKER.parse().unwrap());
    let wrong = json!({"username": "admin", "password": WRONG_PASSWORD});
    send(&anyone, "in-the-shade", Method::POST, LOGIN, &wrong);
    assert_eq!(kind(&of_program(&server, "in-the-shade")[0]), "login-refused");
    stop(&mut server);
    let events = events(&server);
    let of_attacker = events
        .iter()
        .filter(|event| event["sourceIPs"] == json!([ATTACKER]) && kind(event) != "suppressed");
    let written = of_attacker.count();
    // A minute may end in between.
    assert!((30..=2 * 31).contains(&written), "{written} of {} were written", 2 * REQUESTS);
    let suppressed: Vec<_> = events.iter().filter(|event| kind(event) == "suppressed").collect();
    let count = |event: &&Value| -> usize {
        event["annotations"]["drover.io/suppressed"].as_str().unwrap().parse().unwrap()
    };
    let counted: usize = suppressed.iter().map(count).sum();
    assert_eq!(counted + written, 2 * REQUESTS + 1, "{suppressed:#?}");
    assert_eq!(suppressed[0]["sourceIPs"], json!([ATTACKER]));
}

/// One request for each number, over one connection.
fn read_settings(client: &Client, numbers: std::ops::Range<u32>, program: &str) {
    runtime().block_on(async {
        let mut connection = client.connect().await.unwrap();
        for number in numbers {
            let request = Request::get(format!("/v3/settings/{number}"));
            let request = request.header("user-agent", program).body(empty()).unwrap();
            connection.send(request).await.unwrap();
        }
    });
}

#[test]
fn an_attacker_with_a_login_cannot_fill_the_disk_with_events() {
    no_second_try(Guarantee::Durability);
    let flags = ["--audit-log-maxsize", "1", "--audit-log-maxbackup", "1"].map(str::to_owned);
    let options = Options { flags: flags.to_vec(), ..Options::default() };
    let server = Server::start_with(options).unwrap();
    let admin = server.admin().unwrap();
    read_settings(&admin, 0..2000, &"x".repeat(900));
    eventually("the log was rotated twice", || -> Result<()> {
        let text = text(&server);
        let mut last = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let is_last = |event: Value| {
            event["requestURI"].as_str().is_some_and(|uri| uri.ends_with("/settings/1999"))
        };
        ensure!(last.any(is_last), "the last event is not there");
        Ok(())
    });
    let files = files(&server);
    assert_eq!(files.len(), 2, "{files:?}");
    for file in files {
        assert!(std::fs::metadata(&file).unwrap().len() <= 1024 * 1024, "{}", file.display());
    }
}

#[test]
fn a_disabled_audit_log_is_not_written() {
    let flags = vec!["--audit-log-path".to_owned(), "none".to_owned()];
    let server = Server::start_with(Options { flags, ..Options::default() }).unwrap();
    server.login("admin", ADMIN_PASSWORD).unwrap();
    assert!(!server.data_dir().join("audit").exists());
}

/// Imports both clusters; returns their ids.
fn import(server: &Server, admin: &Cli, sims: &[Sim; 2]) -> [String; 2] {
    [("own", &sims[0]), ("other", &sims[1])].map(|(name, sim)| {
        let kubeconfig = sim.kubeconfig();
        let kubeconfig = kubeconfig.to_str().unwrap();
        admin.succeed(&["cluster", "import", name, "--kubeconfig", kubeconfig]).unwrap();
        journey::cluster_id(server, name).unwrap()
    })
}

/// A client of a new user who has the role in the first cluster.
fn user_with_role(server: &Server, admin: &Cli, user: &str, role: &str) -> Client {
    journey::user_with_role(server, admin, user, Some((role, "own"))).unwrap();
    let token = server.login(user, &format!("password-of-{user}")).unwrap();
    server.anyone().unwrap().bearer(&token)
}

/// The status and the newest events. `query`: filters.
fn read(client: &Client, query: &str) -> (u16, Vec<Value>) {
    let answer = client.get(&format!("{EVENTS}?{query}&limit=1000")).unwrap();
    let data = answer.json()["data"].as_array().cloned().unwrap_or_default();
    (answer.status.as_u16(), data)
}

fn has_program(events: &[Value], program: &str) -> bool {
    events.iter().any(|event| event["userAgent"] == program)
}

#[test]
fn an_owner_reads_what_happened_to_their_cluster_and_nobody_else_s() {
    no_second_try(Guarantee::Rights);
    let sims = [Sim::start(&["--nodes", "1"]).unwrap(), Sim::start(&["--nodes", "1"]).unwrap()];
    let server = Server::start().unwrap();
    let admin = Cli::admin(&server).unwrap();
    let [own, other] = &import(&server, &admin, &sims);
    let owner = user_with_role(&server, &admin, "owner", "cluster-owner");
    let member = user_with_role(&server, &admin, "member", "cluster-member");
    let administrator = server.admin().unwrap();
    for (id, program) in [(own, "into-own"), (other, "into-other")] {
        let path = format!("/k8s/clusters/{id}/api/v1/namespaces");
        send(&administrator, program, Method::GET, &path, &Value::Null);
        of_program(&server, program);
    }
    let of_own = format!("clusterId={own}");
    eventually("the owner's rights", || -> Result<()> {
        ensure!(read(&owner, &of_own).0 == 200, "refused");
        Ok(())
    });
    let (_, seen) = read(&owner, &of_own);
    assert!(has_program(&seen, "into-own"), "{seen:#?}");
    assert!(seen.iter().all(|event| event["clusterId"] == **own), "{seen:#?}");
    assert!(seen.iter().any(|event| event["event"] == "agent-registered"), "{seen:#?}");
    let of_other = format!("clusterId={other}");
    let nobody = server.anyone().unwrap();
    for (client, query, code) in [
        (&owner, "", 403),
        (&owner, &*of_other, 403),
        (&owner, "clusterId=c-none", 403),
        (&member, &*of_own, 403),
        (&member, "", 403),
        (&nobody, "", 401),
        (&administrator, "limit=x", 400),
    ] {
        assert_eq!(read(client, query), (code, Vec::new()), "{query}");
    }
    assert_eq!(administrator.delete(EVENTS).unwrap().status, 405);

    // A token for one cluster cannot read events of another.
    let bound = json!({"description": "bound", "clusterId": own});
    let bound = administrator.post("/v3/tokens", &bound).unwrap().success().unwrap();
    let bound = nobody.bearer(bound["token"].as_str().unwrap());
    assert_eq!(read(&bound, &of_own).0, 200);
    assert_eq!(read(&bound, &of_other).0, 403);
    assert_eq!(read(&bound, "").0, 403);
}

#[test]
fn an_administrator_reads_every_event_once_in_pages_and_by_filters() {
    let flags = ["--audit-log-maxsize", "1"].map(str::to_owned).to_vec();
    let server = Server::start_with(Options { flags, ..Options::default() }).unwrap();
    let admin = server.admin().unwrap();
    read_settings(&admin, 0..1200, &"x".repeat(900));
    let attacker = server.anyone().unwrap().from(ATTACKER.parse().unwrap());
    let wrong = json!({"username": "admin", "password": WRONG_PASSWORD});
    send(&attacker, "guesser", Method::POST, LOGIN, &wrong);
    let guess = of_program(&server, "guesser")[0].clone();
    assert!(files(&server).len() > 1, "the log was not rotated");

    // In pages, over the files, newest first.
    let until = guess["stageTimestamp"].as_str().unwrap();
    let mut page = format!("{EVENTS}?limit=100&until={until}");
    let mut paths = Vec::new();
    loop {
        let answer = admin.get(&page).unwrap().success().unwrap();
        let data = answer["data"].as_array().unwrap();
        assert!(data.len() <= 100);
        paths.extend(data.iter().filter_map(|event| {
            event["requestURI"].as_str()?.rsplit_once("/settings/")?.1.parse::<u32>().ok()
        }));
        match answer["pagination"]["next"].as_str() {
            Some(next) => page = next.strip_prefix(server.url()).unwrap().to_owned(),
            None => break,
        }
    }
    assert_eq!(paths, (0..1200).rev().collect::<Vec<_>>());

    // By each filter: the guess, and only matching events.
    for (filter, fits) in [
        ("event=login-refused", "event=login"),
        ("user=admin&status=401", "user=nobody"),
        ("status=4xx", "status=5xx"),
        ("verb=post", "verb=delete"),
        ("address=127.0.0.66", "address=127.0.0.67"),
        (&*format!("since={until}"), "since=2999-01-01T00:00:00Z"),
        (&*format!("until={until}"), "until=2000-01-01T00:00:00Z"),
    ] {
        assert!(has_program(&read(&admin, filter).1, "guesser"), "{filter}");
        assert!(!has_program(&read(&admin, fits).1, "guesser"), "{fits}");
    }
    // Reads of the log are recorded, with the filters.
    let (_, reads) = read(&admin, "event=audit-read");
    let found = |event: &Value| {
        event["requestURI"].as_str().is_some_and(|uri| uri.contains("address=127.0.0.67"))
    };
    assert!(reads.iter().any(found), "{reads:#?}");
}

#[test]
fn the_command_prints_events_follows_new_ones_and_says_what_an_owner_may_read() {
    let sims = [Sim::start(&["--nodes", "1"]).unwrap(), Sim::start(&["--nodes", "1"]).unwrap()];
    let server = Server::start().unwrap();
    let admin = Cli::admin(&server).unwrap();
    let [own, other] = &import(&server, &admin, &sims);
    let administrator = server.admin().unwrap();
    for id in [own, other] {
        let path = format!("/k8s/clusters/{id}/api/v1/namespaces");
        send(&administrator, &format!("into-{id}"), Method::GET, &path, &Value::Null);
        of_program(&server, &format!("into-{id}"));
    }
    let shown = admin.succeed(&["audit", "--cluster", "other", "--event", "proxied"]).unwrap();
    assert!(shown.contains(other.as_str()) && !shown.contains(own.as_str()), "{shown}");
    let filters = ["audit", "--user", "admin", "--status", "2xx", "--address", "127.0.0.1"];
    let json = [&filters[..], &["--verb", "list", "--since", "1h", "-o", "json"]].concat();
    let events: Value = serde_json::from_str(&admin.succeed(&json).unwrap()).unwrap();
    assert!(has_program(events.as_array().unwrap(), &format!("into-{own}")), "{events:#}");
    let limited = admin.succeed(&["audit", "--limit", "3"]).unwrap();
    assert_eq!(limited.lines().count(), 4, "{limited}");

    let log = server.folder().join("followed.log");
    let follow = ["audit", "--follow", "--event", "login-refused", "-o", "json"];
    let _following = admin.start(&follow, &log).unwrap();
    let nobody = server.anyone().unwrap();
    for program in ["first-guess", "second-guess"] {
        let wrong = json!({"username": "admin", "password": WRONG_PASSWORD});
        send(&nobody, program, Method::POST, LOGIN, &wrong);
        eventually("the event is printed", || -> Result<()> {
            let text = std::fs::read_to_string(&log)?;
            let lines = text.lines().map(serde_json::from_str::<Value>);
            let events = lines.collect::<Result<Vec<_>, _>>()?;
            let count = events.iter().filter(|event| event["userAgent"] == program).count();
            ensure!(count == 1, "{count} of {program}: {text}");
            Ok(())
        });
    }

    let role = Some(("cluster-owner", "own"));
    let owner = journey::user_with_role(&server, &admin, "owner", role).unwrap();
    let refused = owner.run(&["audit"]).unwrap();
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.stderr.contains("--cluster"), "{refused:?}");
    owner.succeed(&["audit", "--cluster", "own"]).unwrap();
}
