//! The sessions of all agents: which are up, which one to use, and the way in through them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::ClusterId;
use crate::address::Address;
use crate::admission::{Registrar, SessionInfo};
use crate::limits::SESSIONS_PER_CLUSTER_MAX;
use crate::session::Session;
use crate::stream::Stream;
use crate::wire::Wire;

/// Why nothing could be opened through an agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// No session now. Do not poll: watch [`Sessions::watch_connected`].
    #[error("the cluster's agent is not connected")]
    NotConnected,
    /// The session ended while we waited. Another may be up already.
    #[error("the connection to the cluster's agent was lost")]
    Lost,
    /// All streams are taken. Retry with backoff.
    #[error("too many streams are open to the cluster's agent")]
    Saturated,
    /// The agent does not allow this address. Retrying will not help.
    #[error("the cluster's agent does not allow connections to \"{address}\"")]
    Denied { address: String },
    /// The agent could not reach the address. Retrying at once will not help.
    #[error("the cluster's agent could not reach \"{address}\": {detail}")]
    Refused { address: String, detail: String },
    #[error("the cluster's agent did not answer within {} s", after.as_secs())]
    TimedOut { after: Duration },
    /// The agent's API answered with another status than 200.
    #[error("the cluster's agent answered {0}")]
    AgentAnswer(StatusCode),
    #[error("the cluster's agent answered more than is allowed")]
    TooLarge,
    #[error("the cluster's agent answered something that cannot be read")]
    Malformed,
}

/// Whether an agent is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connected {
    /// Sessions that take new streams.
    pub sessions: usize,
}

impl Connected {
    pub fn is_connected(self) -> bool {
        self.sessions > 0
    }
}

/// One session as the doctor sees it.
#[derive(Clone, Debug)]
pub struct SessionHealth {
    pub info: SessionInfo,
    pub open_streams: usize,
    /// Zero until measured.
    pub round_trip: Duration,
    /// Since the last byte from the agent.
    pub silence: Duration,
    /// Takes no new streams.
    pub is_retired: bool,
}

#[derive(Default)]
struct Cluster {
    /// Oldest first.
    sessions: Vec<Arc<Session>>,
    state: watch::Sender<Connected>,
}

impl Cluster {
    fn publish(&self) {
        let sessions = self.sessions.iter().filter(|session| !session.is_retired()).count();
        self.state.send_if_modified(|state| {
            let next = Connected { sessions };
            std::mem::replace(state, next) != next
        });
    }

    /// Best first: the newest that is heard well, then the least silent one.
    fn ranked(&self) -> Vec<Arc<Session>> {
        let usable = self.sessions.iter().rev().filter(|session| !session.is_retired());
        let mut ranked: Vec<_> = usable.cloned().collect();
        ranked.sort_by_key(|session| match session.is_suspect() {
            false => Duration::ZERO,
            true => session.silence(),
        });
        ranked
    }
}

/// All sessions, by cluster. Keys are what the [`Registrar`] admitted, never what an agent claims,
/// so one cluster's agent cannot take another's streams.
#[derive(Default)]
pub struct Sessions {
    clusters: Mutex<HashMap<ClusterId, Cluster>>,
    ids: AtomicU64,
}

impl Sessions {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A number for the next session, told to the agent for its log.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Takes over a wire whose handshake is through, and drives it to its end.
    pub(crate) async fn run<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        id: u64,
        info: SessionInfo,
        wire: Wire<S>,
        registrar: &dyn Registrar,
    ) {
        let cluster = info.cluster.clone();
        let (session, driver) = match Session::begin(id, info, wire).await {
            Ok(begun) => begun,
            Err(error) => {
                tracing::warn!(%cluster, %error, "an agent connected but did not begin HTTP/2");
                return;
            }
        };
        self.add(&session);
        let _leave = Leave { sessions: self, session: &session };
        registrar.connected(&session.info);
        let cause = driver.run(registrar).await;
        drop(_leave);
        registrar.disconnected(&session.info, &cause);
    }

    fn add(&self, session: &Arc<Session>) {
        let mut clusters = self.clusters.lock();
        let cluster = clusters.entry(session.info.cluster.clone()).or_default();
        for older in &cluster.sessions {
            let is_same_agent =
                older.info.key == session.info.key && older.info.instance == session.info.instance;
            if is_same_agent {
                older.retire();
            }
        }
        while cluster.sessions.len() >= SESSIONS_PER_CLUSTER_MAX {
            // Prefer to lose one that takes no new streams anyway.
            let retired = cluster.sessions.iter().position(|session| session.is_retired());
            cluster.sessions.remove(retired.unwrap_or(0)).cut();
        }
        cluster.sessions.push(session.clone());
        cluster.publish();
    }

    fn remove(&self, gone: &Arc<Session>) {
        let mut clusters = self.clusters.lock();
        if let Some(cluster) = clusters.get_mut(&gone.info.cluster) {
            cluster.sessions.retain(|session| session.id != gone.id);
            cluster.publish();
        }
    }

    fn ranked(&self, cluster: &str) -> Vec<Arc<Session>> {
        self.clusters.lock().get(cluster).map(Cluster::ranked).unwrap_or_default()
    }

    /// Opens a byte stream to `address` inside a downstream cluster, through its agent.
    ///
    /// The newest healthy session is used. Older sessions finish their streams and take no new
    /// ones, so an agent that reconnects cuts nothing.
    ///
    /// - `address`: host and port as the *agent* resolves them; our own DNS is not asked.
    /// - `open_timeout`: wait for the agent's answer, 1 s to 60 s. The open stream has no deadline;
    ///   the agent closes it after [`crate::limits::STREAM_IDLE_MAX`] without traffic in both
    ///   directions.
    ///
    /// Cancel-safe: dropping the future frees the stream slot and tells the agent.
    ///
    /// # Errors
    /// See [`DialError`] for the next move in each case.
    pub async fn dial(
        &self,
        cluster: &str,
        address: &Address,
        open_timeout: Duration,
    ) -> Result<Stream, DialError> {
        self.try_each(
            cluster,
            open_timeout,
            |session| async move { session.connect(address).await },
        )
        .await
    }

    /// Asks the agent's API with `GET`. The answer is small and read whole.
    ///
    /// # Errors
    /// As [`Self::dial`]; [`DialError::AgentAnswer`] for another status than 200.
    pub async fn get(
        &self,
        cluster: &str,
        path: &str,
        timeout: Duration,
    ) -> Result<Bytes, DialError> {
        let answer =
            self.try_each(cluster, timeout, |session| async move { session.get(path).await });
        match answer.await? {
            (StatusCode::OK, body) => Ok(body),
            (status, _) => Err(DialError::AgentAnswer(status)),
        }
    }

    /// Runs `attempt` on the best session; on the next one if the first turns out to be gone or
    /// full.
    async fn try_each<T, F>(
        &self,
        cluster: &str,
        timeout: Duration,
        attempt: impl Fn(Arc<Session>) -> F,
    ) -> Result<T, DialError>
    where
        F: Future<Output = Result<T, DialError>>,
    {
        let attempts = async {
            let mut last = DialError::NotConnected;
            for session in self.ranked(cluster) {
                match attempt(session).await {
                    Err(
                        error @ (DialError::NotConnected | DialError::Lost | DialError::Saturated),
                    ) => last = error,
                    other => return other,
                }
            }
            Err(last)
        };
        match tokio::time::timeout(timeout, attempts).await {
            Ok(outcome) => outcome,
            Err(_) => Err(DialError::TimedOut { after: timeout }),
        }
    }

    /// Follows whether the cluster's agent is there. Also for clusters that never connected yet.
    ///
    /// Changes are seen at the latest after [`crate::limits::PEER_SILENCE_MAX`]; quick changes may
    /// be seen as one.
    pub fn watch_connected(&self, cluster: &str) -> watch::Receiver<Connected> {
        let mut clusters = self.clusters.lock();
        clusters.entry(cluster.into()).or_default().state.subscribe()
    }

    pub fn is_connected(&self, cluster: &str) -> bool {
        !self.ranked(cluster).is_empty()
    }

    /// All sessions of a cluster, oldest first.
    pub fn health(&self, cluster: &str) -> Vec<SessionHealth> {
        let clusters = self.clusters.lock();
        let sessions = clusters.get(cluster).map(|cluster| cluster.sessions.as_slice());
        sessions
            .unwrap_or_default()
            .iter()
            .map(|session| SessionHealth {
                info: session.info.clone(),
                open_streams: session.open_streams(),
                round_trip: session.round_trip(),
                silence: session.silence(),
                is_retired: session.is_retired(),
            })
            .collect()
    }

    /// Ends all sessions of a cluster and all their streams at once, and forgets the cluster.
    /// Whoever watches it sees it disconnected and then the end of the watch. To keep an agent out,
    /// its key must be gone from the [`Registrar`] before.
    pub fn cut(&self, cluster: &str) {
        let removed = self.clusters.lock().remove(cluster);
        if let Some(removed) = removed {
            removed.sessions.iter().for_each(|session| session.cut());
            removed.state.send_replace(Connected::default());
        }
    }

    /// Ends the sessions that an agent key opened, such as after the key was replaced.
    pub fn cut_key(&self, cluster: &str, key: &crate::KeyId) {
        let clusters = self.clusters.lock();
        let sessions = clusters.get(cluster).map(|cluster| cluster.sessions.as_slice());
        for session in sessions.unwrap_or_default() {
            if session.info.key == *key {
                session.retire();
                session.cut();
            }
        }
    }

    /// Ends everything, for shutdown. Agents reconnect at once.
    pub fn cut_all(&self) {
        for cluster in self.clusters.lock().values() {
            cluster.sessions.iter().for_each(|session| session.cut());
        }
    }
}

/// Takes a session out of the registry, also when its task is aborted.
struct Leave<'a> {
    sessions: &'a Sessions,
    session: &'a Arc<Session>,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.session.retire();
        self.sessions.remove(self.session);
    }
}
