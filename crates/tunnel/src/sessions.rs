//! The sessions of all agents: which are open, which one to use, and how to dial through them.

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

/// Why a stream or request through an agent failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// No session is open. Do not poll: watch [`Sessions::watch_connected`].
    #[error("the cluster's agent is not connected")]
    NotConnected,
    /// The session ended during the request. Another may be open already: retry once.
    #[error("the connection to the cluster's agent was lost")]
    Lost,
    /// All streams are in use. Retry with backoff.
    #[error("too many streams are open to the cluster's agent")]
    Saturated,
    /// The agent does not allow this address. Retrying will not help.
    #[error("the cluster's agent does not allow connections to \"{address}\"")]
    Denied { address: String },
    /// The agent could not reach the address. Retrying at once will not help.
    #[error("the cluster's agent could not reach \"{address}\": {detail}")]
    Refused { address: String, detail: String },
    #[error("the cluster's agent did not respond within {} s", after.as_secs())]
    TimedOut { after: Duration },
    /// The agent's API responded with another status than 200.
    #[error("the cluster's agent responded {0}")]
    AgentStatus(StatusCode),
    #[error("the response of the cluster's agent is larger than allowed")]
    TooLarge,
    #[error("the response of the cluster's agent cannot be decoded")]
    Malformed,
}

/// Whether the agent of a cluster is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connected {
    /// Sessions that accept new streams.
    pub sessions: usize,
}

impl Connected {
    /// Whether a new stream can be opened.
    pub fn is_connected(self) -> bool {
        self.sessions > 0
    }
}

/// The health of one session, for diagnostics.
#[derive(Clone, Debug)]
pub struct SessionHealth {
    pub info: SessionInfo,
    /// Byte streams and requests that are open now.
    pub open_streams: usize,
    /// The least recent round trip; zero until measured.
    pub round_trip: Duration,
    /// Time since the last byte from the agent.
    pub silence: Duration,
    /// Whether the session accepts no new streams.
    pub is_retired: bool,
}

#[derive(Default)]
struct ClusterSessions {
    /// Oldest first.
    sessions: Vec<Arc<Session>>,
    state: watch::Sender<Connected>,
}

impl ClusterSessions {
    fn publish(&self) {
        let sessions = self.sessions.iter().filter(|session| !session.is_retired()).count();
        self.state.send_if_modified(|state| {
            let next = Connected { sessions };
            std::mem::replace(state, next) != next
        });
    }

    /// Best first: the newest session that is not suspect, then the least silent one.
    fn by_preference(&self) -> Vec<Arc<Session>> {
        let usable = self.sessions.iter().rev().filter(|session| !session.is_retired());
        let mut ranked: Vec<_> = usable.cloned().collect();
        ranked.sort_by_key(|session| match session.is_suspect() {
            false => Duration::ZERO,
            true => session.silence(),
        });
        ranked
    }
}

/// All sessions, by cluster. The cluster is the one that the [`Registrar`] admitted, never an
/// agent's claim, so one cluster's agent cannot receive another's streams.
#[derive(Default)]
pub struct Sessions {
    clusters: Mutex<HashMap<ClusterId, ClusterSessions>>,
    ids: AtomicU64,
}

impl Sessions {
    /// An empty registry.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A number for the next session, which is also sent to the agent for its log.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Runs a session on a wire whose handshake has succeeded, until the session ends.
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
        registrar.on_connect(&session.info);
        let cause = driver.run(registrar).await;
        drop(_leave);
        registrar.on_disconnect(&session.info, &cause);
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
            // Prefer to end a session that accepts no new streams anyway.
            let retired = cluster.sessions.iter().position(|session| session.is_retired());
            cluster.sessions.remove(retired.unwrap_or(0)).cut();
        }
        cluster.sessions.push(session.clone());
        cluster.publish();
    }

    fn remove(&self, ended: &Arc<Session>) {
        let mut clusters = self.clusters.lock();
        if let Some(cluster) = clusters.get_mut(&ended.info.cluster) {
            cluster.sessions.retain(|session| session.id != ended.id);
            cluster.publish();
        }
    }

    fn by_preference(&self, cluster: &str) -> Vec<Arc<Session>> {
        self.clusters.lock().get(cluster).map(ClusterSessions::by_preference).unwrap_or_default()
    }

    /// Opens a byte stream to `address` inside a downstream cluster, through its agent.
    ///
    /// The newest healthy session is used. Older sessions finish their streams and accept no
    /// new ones, so an agent that reconnects cuts no stream.
    ///
    /// - `address`: host and port, which the *agent* resolves; the server's DNS is not queried.
    /// - `open_timeout`: how long to wait for the agent's response, 1 s to 60 s. The open stream
    ///   has no deadline; the agent closes it after [`crate::limits::STREAM_IDLE_MAX`] without
    ///   traffic in both directions.
    ///
    /// Cancel-safe: dropping the future frees the stream slot and resets the stream.
    ///
    /// # Errors
    /// See [`DialError`] for the next step in each case.
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

    /// Requests `path` of the agent's API ([`crate::agent_api`]) with `GET` and returns the body,
    /// which has at most 1 MiB. `timeout` is for all of it.
    ///
    /// # Errors
    /// Those of [`Self::dial`], and [`DialError::AgentStatus`] for another status than 200.
    pub async fn get(
        &self,
        cluster: &str,
        path: &str,
        timeout: Duration,
    ) -> Result<Bytes, DialError> {
        let response =
            self.try_each(cluster, timeout, |session| async move { session.get(path).await });
        match response.await? {
            (StatusCode::OK, body) => Ok(body),
            (status, _) => Err(DialError::AgentStatus(status)),
        }
    }

    /// Runs `attempt` on the best session, and on the next one if that session has ended or is
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
            for session in self.by_preference(cluster) {
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

    /// Watches whether the cluster's agent is connected. Works for clusters that have never
    /// connected, too.
    ///
    /// A lost agent is reported at the latest after [`crate::limits::PEER_SILENCE_MAX`]; quick
    /// changes may be reported as one.
    pub fn watch_connected(&self, cluster: &str) -> watch::Receiver<Connected> {
        let mut clusters = self.clusters.lock();
        clusters.entry(cluster.into()).or_default().state.subscribe()
    }

    /// Whether the cluster has a session that accepts new streams.
    pub fn is_connected(&self, cluster: &str) -> bool {
        !self.by_preference(cluster).is_empty()
    }

    /// The health of all sessions of a cluster, oldest first.
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

    /// Ends all sessions of a cluster and all their streams at once, and removes the cluster. Its
    /// watchers see it disconnected and then the end of the watch. An agent reconnects unless its
    /// key was removed from the [`Registrar`] before.
    pub fn cut(&self, cluster: &str) {
        let removed = self.clusters.lock().remove(cluster);
        if let Some(removed) = removed {
            removed.sessions.iter().for_each(|session| session.cut());
            removed.state.send_replace(Connected::default());
        }
    }

    /// Ends the sessions that an agent's key opened, for example after the key was replaced.
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

    /// Ends all sessions, for shutdown. Agents reconnect at once.
    pub fn cut_all(&self) {
        for cluster in self.clusters.lock().values() {
            cluster.sessions.iter().for_each(|session| session.cut());
        }
    }
}

/// Removes a session from the registry, also when its task is aborted.
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
