//! Revoked rights end open streams: every kind of stream, for every way of revocation.
//!
//! The table that this prints is the one in `docs/security/revocation.md`.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use e2e::http::runtime;
use e2e::journey::{self, MANAGEMENT};
use e2e::socket::Event;
use e2e::{Cli, Client, Guarantee, Server, SharedWorld, Sim, Socket, eventually, no_second_try};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Longest time between a revocation and the end of its streams.
const CUT_TIME_MAX: Duration = Duration::from_secs(1);
/// Longest wait for an end, so that a failure shows the delay.
const PATIENCE: Duration = Duration::from_secs(10);
/// Lifetime of the token that expires while its streams are open.
const SHORT_LIFE: Duration = Duration::from_secs(4);

struct World {
    server: Server,
    cli: Cli,
    cluster: String,
    _sim: Sim,
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn world() -> Arc<World> {
    WORLD.get(|| {
        let sim = Sim::start(&["--nodes", "1"])?;
        let server = Server::start()?;
        let cli = Cli::admin(&server)?;
        let kubeconfig = sim.kubeconfig();
        let kubeconfig = kubeconfig.to_str().context("the path is no text")?;
        cli.succeed(&["cluster", "import", "left", "--kubeconfig", kubeconfig])?;
        let cluster = journey::cluster_id(&server, "left")?;
        Ok(World { server, cli, cluster, _sim: sim })
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    ManagementWatch,
    ManagementSocket,
    LocalWatch,
    ClusterWatch,
    ClusterSocket,
    Feed,
}

impl Stream {
    const ALL: [Self; 6] = [
        Self::ManagementWatch,
        Self::ManagementSocket,
        Self::LocalWatch,
        Self::ClusterWatch,
        Self::ClusterSocket,
        Self::Feed,
    ];

    /// Objects that only members of the cluster may read.
    fn path(self, cluster: &str) -> String {
        let bindings =
            format!("{MANAGEMENT}/namespaces/{cluster}/clusterroletemplatebindings?watch=true");
        match self {
            Self::ManagementWatch | Self::ManagementSocket => bindings,
            Self::LocalWatch => format!("/k8s/clusters/local{bindings}"),
            Self::ClusterWatch | Self::ClusterSocket => {
                format!("/k8s/clusters/{cluster}/api/v1/namespaces?watch=true")
            }
            Self::Feed => "/v3/subscribe?resourceTypes=cluster".to_owned(),
        }
    }

    fn is_socket(self) -> bool {
        matches!(self, Self::ManagementSocket | Self::ClusterSocket | Self::Feed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    TokenDeleted,
    Logout,
    UserDisabled,
    UserDeleted,
    TokenExpired,
    RoleLost,
    PasswordSet,
    PasswordChanged,
}

impl Ending {
    const ALL: [Self; 8] = [
        Self::TokenDeleted,
        Self::Logout,
        Self::UserDisabled,
        Self::UserDeleted,
        Self::TokenExpired,
        Self::RoleLost,
        Self::PasswordSet,
        Self::PasswordChanged,
    ];

    /// A socket of the feed covers all objects that its user may read; the next frame refreshes
    /// them.
    fn ends(self, stream: Stream) -> bool {
        !(self == Self::RoleLost && stream == Stream::Feed)
    }
}

struct StreamUser {
    id: String,
    name: String,
    password: String,
    /// A user whose credentials open the streams.
    token: String,
    client: Client,
    /// The binding of the role.
    binding: String,
}

impl World {
    fn user(&self, ending: Ending) -> StreamUser {
        let name = format!("{ending:?}").to_lowercase();
        let role = Some(("cluster-owner", self.cluster.as_str()));
        journey::user_with_role(&self.server, &self.cli, &name, role).unwrap();
        // Without a role there, the cluster `local` has no stream that could end.
        let local = ["role", "grant", "cluster-member", "--cluster", "local", "--user", &name];
        self.cli.succeed(&local).unwrap();
        let password = format!("password-of-{name}");
        let login = self.server.login(&name, &password).unwrap();
        let client = self.server.anyone().unwrap().bearer(&login);
        let tokens = client.get("/v3/tokens").unwrap().success().unwrap();
        let id = tokens["data"][0]["userId"].as_str().unwrap().to_owned();
        let token = match ending {
            Ending::TokenExpired => {
                let body = json!({"type": "token", "ttl": SHORT_LIFE.as_millis()});
                let made = client.post("/v3/tokens", &body).unwrap().success().unwrap();
                made["token"].as_str().unwrap().to_owned()
            }
            _ => login,
        };
        let path = format!("{MANAGEMENT}/namespaces/{}/clusterroletemplatebindings", self.cluster);
        let client = self.server.anyone().unwrap().bearer(&token);
        let bindings = eventually("the role is effective", || client.get(&path)?.success());
        let all = bindings["items"].as_array().unwrap();
        let own = all.iter().find(|binding| binding["userName"] == id.as_str()).unwrap();
        let binding = own["metadata"]["name"].as_str().unwrap().to_owned();
        StreamUser { id, name, password, token, client, binding }
    }

    /// Revokes the right; returns the time from which on it is invalid.
    fn end(&self, ending: Ending, user: &StreamUser) -> Instant {
        let admin = self.server.admin().unwrap();
        let good = |answer: anyhow::Result<e2e::HttpResponse>| -> Value {
            answer.unwrap().success().unwrap()
        };
        let user_path = format!("/v3/users/{}", user.id);
        let token = user.token.split(':').next().unwrap();
        match ending {
            Ending::TokenDeleted => good(admin.delete(&format!("{MANAGEMENT}/tokens/{token}"))),
            Ending::Logout => good(user.client.post("/v3/tokens?action=logout", &json!({}))),
            Ending::UserDisabled => good(admin.put(&user_path, &json!({"enabled": false}))),
            Ending::UserDeleted => good(admin.delete(&user_path)),
            Ending::TokenExpired => return expiry(user, token),
            Ending::RoleLost => {
                let path = format!(
                    "{MANAGEMENT}/namespaces/{}/clusterroletemplatebindings/{}",
                    self.cluster, user.binding
                );
                good(admin.delete(&path))
            }
            Ending::PasswordSet => {
                let body = json!({"newPassword": "given by an administrator"});
                good(admin.post(&format!("{user_path}?action=setpassword"), &body))
            }
            Ending::PasswordChanged => {
                let other = self.server.login(&user.name, &user.password).unwrap();
                let other = self.server.anyone().unwrap().bearer(&other);
                let body = json!({
                    "currentPassword": user.password, "newPassword": "chosen by the user",
                });
                let answer = good(other.post("/v3/users?action=changepassword", &body));
                // The login that changed the password remains valid.
                other.get("/v3/tokens").unwrap().success().unwrap();
                answer
            }
        };
        Instant::now()
    }
}

/// The time at which the token expires.
fn expiry(user: &StreamUser, token: &str) -> Instant {
    let token = user.client.get(&format!("/v3/tokens/{token}"));
    let token = token.unwrap().success().unwrap();
    let created = token["createdTS"].as_u64().unwrap();
    let expiry = Duration::from_millis(created) + SHORT_LIFE;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let left = expiry.saturating_sub(now);
    assert!(!left.is_zero(), "the streams were opened too late");
    Instant::now() + left
}

/// Opens a stream and waits for its first data. The task returns the time at which the stream
/// ended.
fn open(client: &Client, stream: Stream, path: &str, origin: &str) -> JoinHandle<Instant> {
    if stream.is_socket() {
        let opened = Socket::open(client, path, &[("origin", origin)]).unwrap();
        let mut socket = opened.unwrap_or_else(|refusal| panic!("{stream:?}: {refusal:?}"));
        runtime().block_on(socket.next()).unwrap();
        return runtime().spawn(async move {
            while let Ok(Event::Frame(_)) = socket.next().await {}
            Instant::now()
        });
    }
    let (connection, mut body) = runtime().block_on(async {
        let mut connection = client.connect().await.unwrap();
        let response = connection.stream(path).await.unwrap();
        assert_eq!(response.status(), 200, "{stream:?}");
        let mut body = response.into_body();
        body.frame().await.unwrap().unwrap();
        (connection, body)
    });
    runtime().spawn(async move {
        while let Some(Ok(_)) = body.frame().await {}
        drop(connection);
        Instant::now()
    })
}

#[test]
fn no_stream_outlives_the_right_that_opened_it() {
    no_second_try(Guarantee::Revocation);
    let world = world();
    let mut wrong = Vec::new();
    let mut table = String::new();
    for ending in Ending::ALL {
        let user = world.user(ending);
        let streams = Stream::ALL.map(|stream| {
            let path = stream.path(&world.cluster);
            (stream, open(&user.client, stream, &path, world.server.url()))
        });
        let ended = world.end(ending, &user);
        table.push_str(&format!("{ending:?}"));
        for (stream, task) in streams {
            if !ending.ends(stream) {
                task.abort();
                table.push_str(" | –");
                continue;
            }
            let left = ended.saturating_duration_since(Instant::now()) + PATIENCE;
            let end = runtime().block_on(async { tokio::time::timeout(left, task).await });
            let Ok(end) = end else {
                wrong.push(format!("{ending:?}: {stream:?} is still open after {PATIENCE:?}"));
                continue;
            };
            let end = end.unwrap();
            let took = end.saturating_duration_since(ended);
            table.push_str(&format!(" | {:.2} s", took.as_secs_f64()));
            if took > CUT_TIME_MAX {
                wrong.push(format!("{ending:?}: {stream:?} ended {took:?} late"));
            }
            // An end before the expiry would have another reason.
            let early = ended.saturating_duration_since(end);
            if ending == Ending::TokenExpired && early > CUT_TIME_MAX {
                wrong.push(format!("{ending:?}: {stream:?} ended {early:?} early"));
            }
        }
        table.push('\n');
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{}\n{table}", wrong.join("\n"));
}

#[test]
fn nobody_watches_for_years_with_a_token_that_was_stolen_for_a_moment() {
    no_second_try(Guarantee::Revocation);
    let world = world();
    // Impersonated watches end with the right of the impersonating user.
    let admin = world.server.admin().unwrap();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "acts-as-admin"},
        "rules": [{"apiGroups": [""], "resources": ["users", "groups"], "verbs": ["impersonate"]}],
    });
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    admin.post(&format!("{rbac}/clusterroles"), &role).unwrap().success().unwrap();
    journey::user_with_role(&world.server, &world.cli, "actor", None).unwrap();
    let login = world.server.login("actor", "password-of-actor").unwrap();
    let actor = world.server.anyone().unwrap().bearer(&login);
    let tokens = actor.get("/v3/tokens").unwrap().success().unwrap();
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "actor-acts"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "acts-as-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
            "name": tokens["data"][0]["userId"]}],
    });
    let bindings = format!("{rbac}/clusterrolebindings");
    admin.post(&bindings, &binding).unwrap().success().unwrap();
    let as_masters = |path: &str| {
        http::Request::get(path)
            .header("impersonate-user", "somebody")
            .header("impersonate-group", "system:masters")
            .body(e2e::http::empty())
            .unwrap()
    };
    eventually("the role is effective", || actor.send(as_masters("/api/v1/secrets"))?.success());
    let (connection, mut body) = runtime().block_on(async {
        let mut connection = actor.connect().await.unwrap();
        let path = "/api/v1/secrets?watch=true&timeoutSeconds=315360000";
        let response = connection.response(as_masters(path)).await.unwrap();
        assert_eq!(response.status(), 200);
        let mut body = response.into_body();
        body.frame().await.unwrap().unwrap();
        (connection, body)
    });
    let watch = runtime().spawn(async move {
        while let Some(Ok(_)) = body.frame().await {}
        drop(connection);
        Instant::now()
    });
    admin.delete(&format!("{bindings}/actor-acts")).unwrap().success().unwrap();
    let since = Instant::now();
    let end = runtime().block_on(async { tokio::time::timeout(PATIENCE, watch).await });
    let took = end.expect("the watch goes on").unwrap().saturating_duration_since(since);
    assert!(took <= CUT_TIME_MAX, "{took:?}");
}
