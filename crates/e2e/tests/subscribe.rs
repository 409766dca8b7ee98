//! The change feed of a real server, for scripts and pages: its frames, and when it ends.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

#[path = "subscribe/inside.rs"]
mod inside;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use e2e::journey::{self, MANAGEMENT};
use e2e::server::ADMIN_PASSWORD;
use e2e::socket::{Event, Refusal};
use e2e::{Cli, Client, Guarantee, Server, SharedWorld, Socket, eventually, no_second_try};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// Time within which a forbidden frame would have arrived.
const LOOK_AROUND: Duration = Duration::from_secs(1);
/// Longest validity of a revoked role or token.
const REVOCATION_MAX: Duration = Duration::from_secs(1);

struct World {
    server: Server,
    cli: Cli,
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn world() -> Arc<World> {
    WORLD.get(|| {
        let server = Server::start()?;
        let cli = Cli::admin(&server)?;
        Ok(World { server, cli })
    })
}

impl World {
    fn admin(&self) -> Client {
        self.server.admin().unwrap()
    }

    /// A new user without any role: client with their login token, and their id.
    fn new_user(&self, name: &str) -> (Client, String) {
        journey::user_with_role(&self.server, &self.cli, name, None).unwrap();
        let token = self.server.login(name, &format!("password-of-{name}")).unwrap();
        let client = self.server.anyone().unwrap().bearer(&token);
        let tokens = client.get("/v3/tokens").unwrap().success().unwrap();
        let id = tokens["data"][0]["userId"].as_str();
        (client, id.unwrap_or_else(|| panic!("whose are {tokens}?")).to_owned())
    }
}

fn open(client: &Client, path: &str) -> Socket {
    let opened = Socket::open(client, path, &[]).unwrap();
    opened.unwrap_or_else(|refusal| panic!("refused: {refusal:?}"))
}

fn refused(client: &Client, path: &str, headers: &[(&str, &str)]) -> Refusal {
    match Socket::open(client, path, headers).unwrap() {
        Ok(_) => panic!("{path} was opened with {headers:?}"),
        Err(refusal) => refusal,
    }
}

/// The data of the next frame of this name about this object.
fn about(socket: &mut Socket, name: &str, id: &str) -> Value {
    let found = |event: &Event| match event {
        Event::Frame(frame) if frame["name"] == name && frame["data"]["id"] == id => {
            Some(frame["data"].clone())
        }
        _ => None,
    };
    socket.until(found).unwrap_or_else(|error| panic!("no {name} of {id}: {error:#}"))
}

fn closed(socket: &mut Socket) -> (u16, String) {
    let found = |event: &Event| match event {
        Event::Closed(code, reason) => Some((*code, reason.clone())),
        Event::Frame(_) => None,
    };
    socket.until(found).unwrap()
}

/// One collection, and each of its objects is of a type of its own. Takes them out of `seen`.
fn providers_were_seen(admin: &Client, seen: &mut BTreeMap<String, BTreeMap<String, Value>>) {
    let listed = admin.get("/v3/authconfigs").unwrap().success().unwrap();
    for provider in listed["data"].as_array().unwrap() {
        let of_type = seen.remove(provider["type"].as_str().unwrap()).unwrap_or_default();
        assert_eq!(of_type.values().collect::<Vec<_>>(), [provider]);
    }
}

/// The kinds that a new installation with one cluster has objects of, with their collections.
const LISTED: [(&str, &str); 15] = [
    ("cluster", "clusters"),
    ("clusterRegistrationToken", "clusterRegistrationTokens"),
    ("clusterRoleTemplateBinding", "clusterRoleTemplateBindings"),
    ("dynamicSchema", "dynamicSchemas"),
    ("globalRole", "globalRoles"),
    ("globalRoleBinding", "globalRoleBindings"),
    ("kontainerDriver", "kontainerDrivers"),
    ("node", "nodes"),
    ("podSecurityAdmissionConfigurationTemplate", "podSecurityAdmissionConfigurationTemplates"),
    ("podSecurityPolicyTemplate", "podSecurityPolicyTemplates"),
    ("project", "projects"),
    ("roleTemplate", "roleTemplates"),
    ("setting", "settings"),
    ("token", "tokens"),
    ("user", "users"),
];

/// The objects of `kind` that the feed sent, `seen`, are those that the collection lists.
fn is_as_listed(admin: &Client, kind: &str, plural: &str, seen: BTreeMap<String, Value>) {
    let list = admin.get(&format!("/v3/{}", plural.to_lowercase())).unwrap().success().unwrap();
    let listed: BTreeMap<&str, &Value> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| (object["id"].as_str().unwrap(), object))
        .collect();
    let seen_ids: Vec<&str> = seen.keys().map(String::as_str).collect();
    assert_eq!(seen_ids, listed.keys().copied().collect::<Vec<_>>(), "{kind}");
    // Settings and role templates do not change, so there must be no difference.
    if matches!(kind, "setting" | "roleTemplate") {
        for (id, object) in seen {
            assert_eq!(&object, listed[id.as_str()], "{kind} {id}");
            let got = admin.get(&format!("/v3/{plural}/{id}")).unwrap().success().unwrap();
            assert_eq!(object, got, "{kind} {id}");
        }
    }
}

#[test]
fn the_administrator_sees_every_kind_as_a_get_shows_it() {
    // A server of its own: other tests would change objects meanwhile.
    let server = Server::start().unwrap();
    let world = World { cli: Cli::admin(&server).unwrap(), server };
    let admin = world.admin();
    let id = journey::create_cluster(&world.server, "watched").unwrap();
    eventually("its registration token is there", || {
        journey::registration_token(&world.server, &id).map(drop)
    });
    let mut socket = open(&admin, "/v3/subscribe");
    let mut first: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    // A new object gets a frame, and another one when its state changes.
    let token = format!("{id}:default-token");
    let settled = |event: &Event| match event {
        Event::Frame(frame) => {
            let data = &frame["data"];
            (data["id"] == token.as_str() && data["state"] == "active").then_some(())
        }
        Event::Closed(..) => None,
    };
    socket.until(settled).unwrap();
    let mut socket = open(&admin, "/v3/subscribe");
    for frame in socket.all_within(3 * LOOK_AROUND).unwrap() {
        assert_eq!(frame["name"], "resource.change", "{frame}");
        let data = &frame["data"];
        let text = |field: &str| data[field].as_str().unwrap().to_owned();
        first.entry(text("type")).or_default().insert(text("id"), data.clone());
    }
    for (kind, plural) in LISTED {
        is_as_listed(&admin, kind, plural, first.remove(kind).unwrap_or_default());
    }
    providers_were_seen(&admin, &mut first);
    assert!(first.is_empty(), "kinds that no list has: {:?}", first.keys());

    let path = format!("{MANAGEMENT}/clusters/{id}");
    let mut stored = admin.get(&path).unwrap().success().unwrap();
    stored["spec"]["description"] = "seen".into();
    admin.put(&path, &stored).unwrap().success().unwrap();
    let found = |event: &Event| match event {
        Event::Frame(frame) => {
            let data = &frame["data"];
            (data["id"] == id.as_str() && data["description"] == "seen").then(|| data.clone())
        }
        Event::Closed(..) => None,
    };
    assert_eq!(socket.until(found).unwrap()["type"], "cluster");
    world.cli.succeed(&["cluster", "rm", "watched", "--yes"]).unwrap();
    assert_eq!(about(&mut socket, "resource.remove", &id)["type"], "cluster");
}

#[test]
fn a_member_sees_their_cluster_from_the_moment_they_may_until_they_may_not() {
    no_second_try(Guarantee::Revocation);
    let world = world();
    let (ours, theirs) = (
        journey::create_cluster(&world.server, "ours").unwrap(),
        journey::create_cluster(&world.server, "theirs").unwrap(),
    );
    let (member, user) = world.new_user("member");
    let mut socket = open(&member, "/v3/subscribe?resourceTypes=cluster&resourceTypes=project");
    let before = socket.all_within(LOOK_AROUND).unwrap();
    assert!(before.is_empty(), "nothing is theirs yet: {before:?}");

    let binding = json!({
        "clusterId": ours, "roleTemplateId": "cluster-member", "userId": user, "name": "joined",
    });
    let admin = world.admin();
    let made = admin.post("/v3/clusterroletemplatebindings", &binding).unwrap().success().unwrap();
    let data = about(&mut socket, "resource.change", &ours);
    assert_eq!(data["name"], "ours");
    // Like their own GET: without links that only other users have.
    let got = member.get(&format!("/v3/clusters/{ours}")).unwrap().success().unwrap();
    assert_eq!(data["links"], got["links"]);

    let path = format!("{MANAGEMENT}/clusters/{theirs}");
    let mut stored = admin.get(&path).unwrap().success().unwrap();
    stored["spec"]["description"] = "secret".into();
    admin.put(&path, &stored).unwrap().success().unwrap();
    let seen = socket.all_within(LOOK_AROUND).unwrap();
    assert!(!Value::from(seen.clone()).to_string().contains(&theirs), "{seen:?}");

    let binding = format!("/v3/clusterroletemplatebindings/{}", made["id"].as_str().unwrap());
    assert!(admin.delete(&binding).unwrap().status.is_success());
    let since = Instant::now();
    let gone = about(&mut socket, "resource.remove", &ours);
    assert!(since.elapsed() < REVOCATION_MAX + LOOK_AROUND, "{:?}", since.elapsed());
    let allowed = ["baseType", "id", "type"];
    assert!(gone.as_object().unwrap().keys().all(|key| allowed.contains(&key.as_str())), "{gone}");
    for name in ["ours", "theirs"] {
        world.cli.succeed(&["cluster", "rm", name, "--yes"]).unwrap();
    }
}

#[test]
fn users_see_their_own_tokens_and_no_others() {
    no_second_try(Guarantee::Secrecy);
    let world = world();
    let (ann, ann_id) = world.new_user("ann");
    let (bob, _) = world.new_user("bob");
    let mut socket = open(&ann, "/v3/subscribe?resourceTypes=tokens");
    let own = socket.all_within(LOOK_AROUND).unwrap();
    assert!(
        !own.is_empty() && own.iter().all(|f| f["data"]["userId"] == ann_id.as_str()),
        "{own:?}"
    );
    let text = Value::from(own).to_string();
    assert!(!text.contains("sha256") && !text.contains("\"token\":\""), "a key is shown: {text}");

    let make = |client: &Client, description: &str| {
        let body = json!({"type": "token", "description": description});
        client.post("/v3/tokens", &body).unwrap().success().unwrap()
    };
    let other = make(&bob, "of bob");
    let mine = make(&ann, "of ann");
    let mine = mine["id"].as_str().unwrap();
    assert_eq!(about(&mut socket, "resource.change", mine)["description"], "of ann");
    assert!(bob.delete(&format!("/v3/tokens/{}", other["id"].as_str().unwrap())).is_ok());
    assert!(ann.delete(&format!("/v3/tokens/{mine}")).unwrap().status.is_success());
    let gone = about(&mut socket, "resource.remove", mine);
    assert!(!gone.to_string().contains("sha256"), "{gone}");
    let rest = socket.all_within(LOOK_AROUND).unwrap();
    assert!(rest.is_empty(), "{rest:?}");
}

#[test]
fn a_token_that_is_revoked_or_a_user_who_is_disabled_ends_their_sockets() {
    no_second_try(Guarantee::Revocation);
    let world = world();
    let (client, id) = world.new_user("leaver");
    let body = json!({"type": "token", "description": "for a script"});
    let made = client.post("/v3/tokens", &body).unwrap().success().unwrap();
    let script = world.server.anyone().unwrap().bearer(made["token"].as_str().unwrap());
    let mut of_script = open(&script, "/v3/subscribe");
    let mut of_login = open(&client, "/v3/subscribe");
    of_script.all_within(LOOK_AROUND).unwrap();

    let path = format!("/v3/tokens/{}", made["id"].as_str().unwrap());
    assert!(client.delete(&path).unwrap().status.is_success());
    let since = Instant::now();
    let (code, reason) = closed(&mut of_script);
    assert!(since.elapsed() < REVOCATION_MAX, "{:?}", since.elapsed());
    assert!(code == 1008 && reason.contains("log in"), "{code} {reason}");
    assert_eq!(refused(&script, "/v3/subscribe", &[]).0, 401);

    of_login.all_within(LOOK_AROUND).unwrap();
    let disabled = json!({"enabled": false});
    world.admin().put(&format!("/v3/users/{id}"), &disabled).unwrap().success().unwrap();
    let since = Instant::now();
    assert_eq!(closed(&mut of_login).0, 1008);
    assert!(since.elapsed() < REVOCATION_MAX, "{:?}", since.elapsed());
}

#[test]
fn a_page_opens_it_with_the_cookie_and_a_foreign_page_does_not() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let token = world.server.login("admin", ADMIN_PASSWORD).unwrap();
    let anyone = world.server.anyone().unwrap();
    let cookie = format!("R_SESS={token}");
    let path = "/v3/subscribe?resourceTypes=cluster&eventNames=resource.change&sockId=1";
    let page = [("cookie", cookie.as_str()), ("user-agent", "Mozilla/5.0")];
    let own = [page[0], page[1], ("origin", world.server.url())];
    let opened = Socket::open(&anyone, path, &own).unwrap();
    let mut socket = opened.unwrap_or_else(|refusal| panic!("{refusal:?}"));
    assert_eq!(about(&mut socket, "resource.change", "local")["type"], "cluster");

    for origin in ["https://evil.example", "null", "http://localhost", "https://localhost:1"] {
        let (status, body) = refused(&anyone, path, &[page[0], page[1], ("origin", origin)]);
        assert_eq!((status, &body["code"]), (403, &json!("CrossSiteRequest")), "{origin} {body}");
    }
    assert_eq!(refused(&anyone, path, &[]).0, 401);
    let unknown = [("cookie", "R_SESS=token-x:y"), ("origin", world.server.url())];
    assert_eq!(refused(&anyone, path, &unknown).0, 401);
    let plain = world.admin().get("/v3/subscribe").unwrap();
    assert_eq!(plain.status, 400, "{}", plain.text());
    let unknown = refused(&world.admin(), "/v3/subscribe?resourceTypes=unicorn", &[]);
    assert_eq!(unknown.0, 404, "{unknown:?}");
    let pinged = |event: &Event| match event {
        Event::Frame(frame) if frame["name"] == "ping" => Some(frame.clone()),
        _ => None,
    };
    assert_eq!(socket.until(pinged).unwrap(), json!({"name": "ping", "data": {}}));
}

#[test]
fn a_token_of_one_cluster_and_a_path_inside_one_show_that_cluster_only() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let (one, two) = (
        journey::create_cluster(&world.server, "inside-one").unwrap(),
        journey::create_cluster(&world.server, "inside-two").unwrap(),
    );
    for id in [&one, &two] {
        eventually("it has a registration token", || {
            journey::registration_token(&world.server, id).map(drop)
        });
    }
    let admin = world.admin();
    let mut socket = open(&admin, &format!("/v3/clusters/{one}/subscribe"));
    let frames = socket.all_within(LOOK_AROUND).unwrap();
    assert!(!frames.is_empty());
    for frame in &frames {
        assert_eq!(frame["data"]["clusterId"], one.as_str(), "{frame}");
    }

    let body = json!({"type": "token", "clusterId": one});
    let made = admin.post("/v3/tokens", &body).unwrap().success().unwrap();
    let bound = world.server.anyone().unwrap().bearer(made["token"].as_str().unwrap());
    assert_eq!(refused(&bound, "/v3/subscribe", &[]).0, 401);
    assert_eq!(refused(&bound, &format!("/v3/clusters/{two}/subscribe"), &[]).0, 401);
    open(&bound, &format!("/v3/clusters/{one}/subscribe"));
    let nowhere = refused(&admin, "/v3/clusters/c-none/subscribe", &[]);
    assert_eq!(nowhere.0, 404, "{nowhere:?}");
    for name in ["inside-one", "inside-two"] {
        world.cli.succeed(&["cluster", "rm", name, "--yes"]).unwrap();
    }
}

#[test]
fn a_server_that_stops_closes_its_sockets_and_ends() {
    let mut server = Server::start().unwrap();
    let mut socket = open(&server.admin().unwrap(), "/v3/subscribe");
    let id = i32::try_from(server.process_id().unwrap()).unwrap();
    kill(Pid::from_raw(id), Signal::SIGTERM).unwrap();
    let (code, reason) = closed(&mut socket);
    assert!(code == 1001 && reason.contains("connect again"), "{code} {reason}");
    eventually("the server has ended", || {
        anyhow::ensure!(!server.is_running(), "it runs");
        Ok(())
    });
}
