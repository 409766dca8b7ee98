//! `/healthz`, `/livez` and `/readyz`, as a whole and by single checks.
//!
//! Checks have the names of kube-apiserver for the same things, in its order. A failure is
//! described briefly, since anonymous users may read it.

use std::time::Duration;

use futures::future::join_all;
use http::{Response, StatusCode};

use crate::body::respond::{self, Body};
use crate::registry::Registry;
use crate::request::Query;
use crate::tasks::WatchedTasks;

/// Longest wait for the storage, like kube-apiserver.
const STORAGE_WAIT_MAX: Duration = Duration::from_secs(2);

const PING: &str = "ping";
const STORAGE: &str = "etcd";
const STORAGE_READINESS: &str = "etcd-readiness";
const CACHES: &str = "informer-sync";
/// Fails until the server is marked ready. kube-apiserver opens its port only then, and has no such
/// check.
const STARTUP: &str = "startup";
const SHUTDOWN: &str = "shutdown";

/// The phase of a server, as far as clients must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Readiness {
    /// `/readyz` fails: caches and controllers are not ready.
    Starting,
    /// It accepts requests.
    Ready,
    /// It still responds, and will stop soon: `/readyz` fails, so that clients go to another
    /// server.
    Ending,
}

impl Readiness {
    /// The inverse of `as u8`; numbers above 2 are `Ending`.
    pub fn from_number(number: u8) -> Self {
        [Self::Starting, Self::Ready, Self::Ending][usize::from(number.min(2))]
    }
}

/// Tasks that must keep running, and the name of the check that fails when they have ended.
pub struct TaskCheck {
    /// Also the last part of the path of the single check.
    pub name: &'static str,
    pub tasks: WatchedTasks,
}

/// What the checks examine.
pub(crate) struct Health<'a> {
    pub readiness: Readiness,
    pub registry: &'a Registry,
    pub tasks: &'a [TaskCheck],
}

/// The result of one check.
struct CheckResult {
    name: &'static str,
    /// The request excludes it.
    is_excluded: bool,
    /// The failure; `None` when the check passed or is excluded.
    problem: Option<&'static str>,
}

impl Health<'_> {
    /// The response at a path below the three endpoints; `None` for other paths. `query` may
    /// request every check (`verbose`) or leave some out (`exclude`).
    pub async fn respond(&self, path: &str, query: &Query) -> Option<Response<Body>> {
        let (endpoint, single) = match path.strip_prefix('/')?.split_once('/') {
            Some((endpoint, single)) => (endpoint, Some(single)),
            None => (&path[1..], None),
        };
        let names = self.names(endpoint)?;
        let Some(single) = single else {
            let checks = names.into_iter().map(async |name| {
                let is_excluded = query.all("exclude").any(|excluded| excluded == name);
                let problem = if is_excluded { None } else { self.problem(name).await };
                CheckResult { name, is_excluded, problem }
            });
            return Some(respond_all(endpoint, &join_all(checks).await, query));
        };
        let Some(name) = names.into_iter().find(|name| *name == single) else {
            return Some(respond::not_found());
        };
        Some(match self.problem(name).await {
            None => respond::text(StatusCode::OK, "ok"),
            Some(problem) => failure_response(format!("{problem}\n")),
        })
    }

    /// The checks of an endpoint, in order.
    fn names(&self, endpoint: &str) -> Option<Vec<&'static str>> {
        let (first, last): (&[&str], &[&str]) = match endpoint {
            "healthz" | "livez" => (&[PING, STORAGE], &[]),
            "readyz" => (&[PING, STORAGE, STORAGE_READINESS, CACHES], &[STARTUP, SHUTDOWN]),
            _ => return None,
        };
        let tasks = self.tasks.iter().map(|check| check.name);
        Some(first.iter().copied().chain(tasks).chain(last.iter().copied()).collect())
    }

    async fn problem(&self, name: &str) -> Option<&'static str> {
        let unless = |holds: bool, problem| (!holds).then_some(problem);
        match name {
            PING => None,
            STORAGE | STORAGE_READINESS => {
                let revision = self.registry.storage().revision();
                let revision = tokio::time::timeout(STORAGE_WAIT_MAX, revision).await;
                unless(matches!(revision, Ok(Ok(_))), "the storage does not respond")
            }
            CACHES => {
                let fresh = tokio::time::timeout(STORAGE_WAIT_MAX, self.registry.fresh()).await;
                unless(matches!(fresh, Ok(Ok(_))), "the caches are behind the storage")
            }
            STARTUP => {
                unless(self.readiness != Readiness::Starting, "the server is still starting")
            }
            SHUTDOWN => unless(self.readiness != Readiness::Ending, "the server is shutting down"),
            name => {
                let tasks = self.tasks.iter().find(|check| check.name == name);
                let are_running = tasks.is_none_or(|check| check.tasks.are_running());
                unless(are_running, "it has ended; restart the server")
            }
        }
    }
}

fn respond_all(endpoint: &str, checks: &[CheckResult], query: &Query) -> Response<Body> {
    let mut lines = String::new();
    for CheckResult { name, is_excluded, problem } in checks {
        lines += &match problem {
            _ if *is_excluded => format!("[+]{name} excluded: ok\n"),
            None => format!("[+]{name} ok\n"),
            Some(problem) => format!("[-]{name} failed: {problem}\n"),
        };
    }
    let is_known = |excluded: &&str| checks.iter().any(|check| check.name == *excluded);
    let unknown = query.all("exclude").filter(|excluded| !is_known(excluded));
    let unknown: Vec<String> = unknown.map(|name| format!("{name:?}")).collect();
    if !unknown.is_empty() {
        let names = unknown.join(",");
        lines += &format!("warn: some health checks cannot be excluded: no matches for {names}\n");
    }
    if checks.iter().any(|check| check.problem.is_some()) {
        return failure_response(format!("{lines}{endpoint} check failed\n"));
    }
    if query.get("verbose").is_none() {
        return respond::text(StatusCode::OK, "ok");
    }
    respond::text(StatusCode::OK, format!("{lines}{endpoint} check passed\n"))
}

fn failure_response(text: String) -> Response<Body> {
    respond::text(StatusCode::INTERNAL_SERVER_ERROR, text)
}

#[cfg(test)]
mod tests;
