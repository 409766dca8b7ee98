//! Many watches while rights change: the cost of a change that affects none of them, and how soon
//! watches of users end who lost their role.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::FutureExt;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::json;
use tokio::task::JoinSet;

use super::apiserver::watches;
use super::flood::{Seen, watch};
use super::people::{self, Person};
use super::{Row, Target, processor_time};
use crate::http::{Connection, runtime};
use crate::server::ADMIN_PASSWORD;
use crate::{Client, Protocol, Server};

const WATCHES: usize = 10_000;
/// Half of them have one role, half another.
const PEOPLE: usize = 20;
const PATH: &str = "/api/v1/namespaces/default/configmaps?watch=true";
/// The path that another user reads meanwhile.
const READ: &str = "/v3/users";
/// Changes of a role without users, and the time between two of them: each change reviews a watch
/// at most once.
const CHANGES: u32 = 10;
const BETWEEN: Duration = Duration::from_secs(1);
const CUT_MAX: f64 = 1.0;
/// A watch that is still open after this time has missed the change.
const CUT_TIMEOUT: Duration = Duration::from_secs(30);

/// See the module.
///
/// # Errors
/// The server does not start, a request fails, or the wrong watches end.
pub fn measure() -> Result<Vec<Row>> {
    let server = Server::start()?;
    let process = server.process_id().context("the server has ended")?;
    let admin = server.anyone()?.bearer(&server.login("admin", ADMIN_PASSWORD)?);
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["watch"]});
    for name in ["stays", "ends", "unused"] {
        people::role(&admin, name, &rule)?;
    }
    let mut staying = Group::with_role(&server, &admin, "stays")?;
    let mut ending = Group::with_role(&server, &admin, "ends")?;

    let time = BETWEEN * CHANGES;
    let idle = processor_time_of(process, || watch(&admin, READ, process, time))?;
    let changing = processor_time_of(process, || {
        std::thread::scope(|scope| {
            let changes = scope.spawn(|| runtime().block_on(change_role(&admin)));
            let seen = watch(&admin, READ, process, time);
            changes.join().expect("it does not panic")?;
            seen
        })
    })?;
    ensure!(
        staying.ended_count() + ending.ended_count() == 0,
        "watches ended with a role that nobody has"
    );
    let per_change = (changing.1 - idle.1) / f64::from(CHANGES);

    people::unbind(&admin, "ends")?;
    let took = ending.all_ended()?;
    ensure!(staying.ended_count() == 0, "watches ended that were still allowed");
    let row = |what: &str, value, unit, target| Row::new(what, value, unit, target);
    Ok(vec![
        row(
            &format!("{WATCHES} watches: processor time of one change of a role"),
            per_change * 1e3,
            "ms",
            Target::Context,
        )
        .note(format!(
            "{:.1} µs a watch; none of them concerned",
            per_change * 1e6 / as_float(WATCHES)
        )),
        row(
            &format!("{WATCHES} watches: p99 of a read while roles change"),
            changing.0.samples.percentile(99),
            "ms",
            Target::Context,
        )
        .note(format!("one change a second; none: {:.1} ms", idle.0.samples.percentile(99))),
        row(
            &format!("{WATCHES} watches: a role is taken from half, until the last of them ended"),
            took.as_secs_f64(),
            "s",
            Target::AtMost(CUT_MAX),
        )
        .note("from the response to the deletion of the binding"),
    ])
}

/// The watches of users with one role.
struct Group {
    bodies: Vec<Incoming>,
    /// The watches end with these connections.
    _connections: Vec<Connection>,
}

impl Group {
    fn with_role(server: &Server, admin: &Client, role: &str) -> Result<Self> {
        let names = (0..PEOPLE / 2).map(|number| format!("{role}-{number}"));
        let people: Vec<Person> =
            names.map(|name| people::new(server, admin, &name)).collect::<Result<_>>()?;
        people::bind(admin, role, &people)?;
        let (mut bodies, mut connections) = (Vec::new(), Vec::new());
        for person in &people {
            let client = person.client.over(Protocol::Http2);
            let opened = watches::open(&client, PATH, WATCHES / PEOPLE, &mut connections);
            bodies.extend(runtime().block_on(opened)?);
        }
        Ok(Self { bodies, _connections: connections })
    }

    /// How many have ended so far.
    fn ended_count(&mut self) -> usize {
        let _runtime = runtime().enter();
        let has_ended = |body: &mut Incoming| loop {
            match body.frame().now_or_never() {
                None => return false,
                Some(Some(Ok(_))) => {}
                Some(None | Some(Err(_))) => return true,
            }
        };
        self.bodies.iter_mut().map(has_ended).filter(|ended| *ended).count()
    }

    /// Waits until all have ended.
    fn all_ended(&mut self) -> Result<Duration> {
        let since = Instant::now();
        let bodies = std::mem::take(&mut self.bodies);
        runtime()
            .block_on(async {
                let mut all = JoinSet::new();
                for mut body in bodies {
                    all.spawn(async move { while let Some(Ok(_)) = body.frame().await {} });
                }
                let ended = async { while all.join_next().await.is_some() {} };
                tokio::time::timeout(CUT_TIMEOUT, ended).await
            })
            .context("watches outlive the role")?;
        Ok(since.elapsed())
    }
}

/// Changes the role without users repeatedly.
async fn change_role(admin: &Client) -> Result<()> {
    let mut connection = admin.connect().await?;
    let mut every = tokio::time::interval(BETWEEN);
    for number in 0..CHANGES {
        every.tick().await;
        let patch = json!({"metadata": {"annotations": {"changed": number.to_string()}},
            "rules": [{"apiGroups": [""], "resources": [format!("kind-{number}")], "verbs": ["get"]}]});
        let request =
            http::Request::patch("/apis/rbac.authorization.k8s.io/v1/clusterroles/unused")
                .header("content-type", "application/merge-patch+json")
                .body(crate::http::body(patch.to_string()))?;
        connection.send(request).await?.success()?;
    }
    Ok(())
}

/// The result, and the server's processor time meanwhile, in seconds.
fn processor_time_of(process: u32, run: impl FnOnce() -> Result<Seen>) -> Result<(Seen, f64)> {
    let before = processor_time(process)?;
    let seen = run()?;
    Ok((seen, processor_time(process)? - before))
}

#[expect(clippy::cast_precision_loss, reason = "some ten thousands")]
fn as_float(number: usize) -> f64 {
    number as f64
}
