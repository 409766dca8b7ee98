//! Logs of pods: simulated ones of simulated containers, and real ones of agents.

mod agent;
mod simulated;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use api_meta::status::Status;
use apiserver::Registry;
use apiserver::Resource;
use apiserver::attributes::Revocation;
use apiserver::body::respond::{self, Body};
use apiserver::registry::{ReadVersion, Subscription};
use apiserver::request::Query;
use apiserver::stored::Stored;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Response, StatusCode};
use jiff::{SignedDuration, Timestamp};

use self::agent::AgentLog;
use super::container::Container;

/// One line, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub at: Timestamp,
    pub text: String,
}

/// The source of a container's log lines.
pub enum Log {
    Simulated {
        container: Box<Container>,
        /// Time of the newest line that was read.
        read_to: Timestamp,
    },
    Agent(AgentLog),
}

impl Log {
    /// The log of a container; `pods` is the folder with the files of pods that run as real
    /// processes.
    pub fn of(container: &Container, pods: &Path) -> Self {
        match AgentLog::find(pods, &container.pod_uid) {
            Some(log) => Self::Agent(log),
            None => Self::Simulated {
                container: Box::new(container.clone()),
                read_to: Timestamp::now(),
            },
        }
    }

    /// Reads all lines until now.
    async fn read(&mut self) -> std::io::Result<Vec<LogLine>> {
        match self {
            Self::Simulated { container, read_to } => {
                *read_to = Timestamp::now();
                Ok(simulated::lines(container, *read_to))
            }
            Self::Agent(log) => log.read().await,
        }
    }

    /// The next line after those that were read; `None` when no more can come. Cancel-safe.
    pub async fn next_line(&mut self) -> Option<LogLine> {
        match self {
            Self::Simulated { container, read_to } => {
                let line = simulated::next_line(container, *read_to)?;
                let pause = line.at.duration_since(Timestamp::now());
                tokio::time::sleep(pause.try_into().unwrap_or_default()).await;
                *read_to = line.at;
                Some(line)
            }
            Self::Agent(log) => log.next_line().await,
        }
    }
}

/// Parameters of a request for logs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    pub follow: bool,
    pub previous: bool,
    timestamps: bool,
    tail: Option<usize>,
    since: Option<Timestamp>,
    limit_bytes: Option<usize>,
}

impl LogOptions {
    /// # Errors
    /// 400: a parameter is invalid; the message names it.
    pub fn parse(query: &Query, now: Timestamp) -> Result<Self, Status> {
        let since_seconds = number(query, "sinceSeconds", 1)?;
        let since = match (since_seconds, query.text("sinceTime")) {
            (None, "") => None,
            (None, text) => Some(text.parse::<Timestamp>().map_err(|_| {
                let words = format!("sinceTime: \"{text}\" must be a time of RFC 3339");
                Status::bad_request(words)
            })?),
            (Some(seconds), "") => {
                let ago = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
                Some(now.checked_sub(ago).unwrap_or(Timestamp::MIN))
            }
            (Some(_), _) => {
                let words = "at most one of sinceTime and sinceSeconds may be specified";
                return Err(Status::bad_request(words));
            }
        };
        Ok(Self {
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            tail: number(query, "tailLines", 0)?,
            since,
            limit_bytes: number(query, "limitBytes", 1)?,
        })
    }

    /// Selects the requested lines.
    fn select(&self, mut lines: Vec<LogLine>) -> Vec<LogLine> {
        if let Some(since) = self.since {
            lines.retain(|line| line.at >= since);
        }
        if let Some(tail) = self.tail {
            lines.drain(..lines.len().saturating_sub(tail));
        }
        lines
    }

    fn format(&self, line: &LogLine) -> String {
        match self.timestamps {
            true => format!("{} {}\n", line.at.strftime("%Y-%m-%dT%H:%M:%S%.9fZ"), line.text),
            false => format!("{}\n", line.text),
        }
    }
}

fn number(query: &Query, name: &str, min: usize) -> Result<Option<usize>, Status> {
    let text = query.text(name);
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse::<usize>().ok().filter(|number| *number >= min);
    number.map(Some).ok_or_else(|| {
        Status::bad_request(format!("{name}: \"{text}\" must be a number, {min} or more"))
    })
}

/// The response with a container's log.
///
/// # Errors
/// There is no log: the container has not started, or had no previous run.
pub async fn respond(
    options: LogOptions,
    container: &Container,
    pods: &Path,
    alive: Alive,
    revocation: Revocation,
) -> Result<Response<Body>, Status> {
    let unreadable = |error: std::io::Error| {
        Status::internal(format!("cannot read the log of pod {}: {error}", container.pod))
    };
    if options.previous {
        let lines = AgentLog::previous(pods, &container.pod_uid).await.map_err(unreadable)?;
        let lines = lines.ok_or_else(|| no_previous(container))?;
        return Ok(plain(respond::full(text_of(&options, lines))));
    }
    let mut log = Log::of(container, pods);
    if container.started_at.is_none() && matches!(log, Log::Simulated { .. }) {
        let words = format!(
            "container \"{}\" in pod \"{}\" is waiting to start: ContainerCreating",
            container.name, container.pod
        );
        return Err(Status::bad_request(words));
    }
    let written = text_of(&options, log.read().await.map_err(unreadable)?);
    if !options.follow {
        return Ok(plain(respond::full(written)));
    }
    Ok(plain(respond::stream(follow(options, log, written, alive, revocation))))
}

fn no_previous(container: &Container) -> Status {
    Status::bad_request(format!(
        "previous terminated container \"{}\" in pod \"{}\" not found",
        container.name, container.pod
    ))
}

fn plain(body: Body) -> Response<Body> {
    let mut response = respond::text(StatusCode::OK, Bytes::new());
    *response.body_mut() = body;
    response
}

fn text_of(options: &LogOptions, lines: Vec<LogLine>) -> Bytes {
    let lines = options.select(lines);
    let mut bytes = Bytes::from(lines.iter().map(|line| options.format(line)).collect::<String>());
    bytes.truncate(options.limit_bytes.unwrap_or(usize::MAX));
    bytes
}

/// The lines so far and all later ones, until the pod ends or the right to read it is revoked.
fn follow(
    options: LogOptions,
    log: Log,
    written: Bytes,
    mut alive: Alive,
    revocation: Revocation,
) -> impl futures::Stream<Item = Bytes> {
    let left = options.limit_bytes.map_or(usize::MAX, |limit| limit - written.len());
    let coming = stream::unfold((options, log, left), |(options, mut log, left)| async move {
        if left == 0 {
            return None;
        }
        let mut line = Bytes::from(options.format(&log.next_line().await?));
        line.truncate(left);
        let left = left - line.len();
        Some((line, (options, log, left)))
    });
    let ended = async move {
        tokio::select! {
            () = alive.wait_until_ended() => {}
            () = revocation.revoked() => {}
        }
    };
    let first = stream::iter((!written.is_empty()).then_some(written));
    first.chain(coming.take_until(Box::pin(ended)))
}

/// Whether a pod still runs.
pub struct Alive {
    registry: Arc<Registry>,
    pods: Arc<Resource>,
    pod: Arc<Stored>,
    changes: Subscription,
}

impl Alive {
    /// Follows `pod` through the changes of all pods.
    pub fn new(registry: &Arc<Registry>, pods: &Arc<Resource>, pod: &Arc<Stored>) -> Self {
        Self {
            changes: registry.subscribe(pods),
            registry: registry.clone(),
            pods: pods.clone(),
            pod: pod.clone(),
        }
    }

    /// Waits until the pod has been deleted, or is finished. Cancel-safe.
    pub async fn wait_until_ended(&mut self) {
        while self.is_running().await && self.changes.next().await.is_some() {}
    }

    async fn is_running(&self) -> bool {
        let pod = &self.pod;
        let found = self.registry.get_at(&self.pods, &pod.namespace, &pod.name, ReadVersion::Any);
        let is_finished = |pod: &Stored| crate::simulation::pods::is_finished(&self.pods, pod);
        found.await.is_ok_and(|found| found.uid == pod.uid && !is_finished(&found))
    }
}
