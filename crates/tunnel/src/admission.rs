//! Admission of agents: the interface to the feature that stores tokens and keys, and the rule that
//! it applies.

use std::net::SocketAddr;
use std::time::SystemTime;

use futures::future::BoxFuture;

use crate::ClusterId;
use crate::agent_api::ApiCredential;
use crate::hello::Hello;
use crate::key::{KeyId, PublicKey};
use crate::refusal::Refusal;

/// The decision on a valid hello. The agent is admitted once it has proven `key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The cluster of the agent.
    pub cluster: ClusterId,
    /// The key that the agent must prove.
    pub key: ExpectedKey,
}

/// The key that an admitted agent must prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedKey {
    /// A key that was registered before.
    Registered(PublicKey),
    /// The token is valid; this key is registered after the proof.
    First(PublicKey),
}

impl ExpectedKey {
    /// The public half, whether registered or not.
    pub fn public_key(&self) -> &PublicKey {
        match self {
            Self::Registered(key) | Self::First(key) => key,
        }
    }
}

/// A stored registration token.
#[derive(Clone, Debug)]
pub struct TokenRecord {
    pub cluster: ClusterId,
    pub expires_at: SystemTime,
    /// The key that was registered with it, if one was.
    pub used_by: Option<KeyId>,
}

/// A stored key.
#[derive(Clone, Debug)]
pub struct KeyRecord {
    pub cluster: ClusterId,
    pub public_key: PublicKey,
}

/// The rule of registration, for a [`Registrar`] that has read `key` (by [`Hello::key`]) and
/// `token` (by [`Hello::token`]) from its records. Pure.
///
/// A registered key needs no token, and an old token beside it is ignored. A token is valid until a
/// key is registered with it or it expires; the same key may present it again. A key belongs to one
/// cluster. To remove a key record, also replace the token with which it was registered; otherwise
/// the agent registers again until that token expires.
///
/// # Errors
/// The refusal to send to the agent: its reason says whether the key or the token is the cause.
pub fn decide(
    hello: &Hello,
    key: Option<&KeyRecord>,
    token: Option<&TokenRecord>,
    now: SystemTime,
) -> Result<Admission, Refusal> {
    if let Some(key) = key {
        if key.public_key.id() != hello.key {
            return Err(Refusal::key_unknown());
        }
        if token.is_some_and(|token| token.cluster != key.cluster) {
            return Err(Refusal::key_elsewhere());
        }
        let expected = ExpectedKey::Registered(key.public_key.clone());
        return Ok(Admission { cluster: key.cluster.clone(), key: expected });
    }
    let (Some(_), Some(public_key)) = (&hello.token, &hello.public_key) else {
        return Err(Refusal::key_unknown());
    };
    let token = token.ok_or_else(Refusal::token_unknown)?;
    if token.used_by.as_ref().is_some_and(|used_by| *used_by != hello.key) {
        return Err(Refusal::token_used());
    }
    if token.expires_at <= now {
        return Err(Refusal::token_expired());
    }
    let expected = ExpectedKey::First(public_key.clone());
    Ok(Admission { cluster: token.cluster.clone(), key: expected })
}

/// One session of a connected agent. All but `cluster` and `key` are the agent's claims.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    pub cluster: ClusterId,
    pub key: KeyId,
    /// See [`Hello::instance`].
    pub instance: String,
    pub agent_version: String,
    /// The peer of the connection, which may be a load balancer.
    pub remote: Option<SocketAddr>,
    pub connected_at: SystemTime,
}

/// Decides which agents are admitted, and is notified of their sessions. A feature implements it.
///
/// The `on_…` methods are called from the session's own task and must return at once: hand the
/// event to a queue.
pub trait Registrar: Send + Sync + 'static {
    /// Evaluates a hello. Changes nothing: the agent has proven nothing yet.
    ///
    /// # Errors
    /// The refusal to send to the agent, which logs its message.
    fn admit<'a>(&'a self, hello: &'a Hello) -> BoxFuture<'a, Result<Admission, Refusal>>;

    /// Registers the key of an [`ExpectedKey::First`] after the agent has proven it.
    ///
    /// Must check again and store in one atomic step: of two agents that present the same token at
    /// once, one is refused with [`Refusal::token_used`].
    ///
    /// # Errors
    /// The refusal to send to the agent; the key is then not registered.
    fn enrol<'a>(
        &'a self,
        hello: &'a Hello,
        admission: &'a Admission,
    ) -> BoxFuture<'a, Result<(), Refusal>>;

    /// The cluster of the hello's token or key, for audit records only: nothing is proven. By
    /// default `None`.
    fn claimed_cluster(&self, hello: &Hello) -> Option<ClusterId> {
        let _ = hello;
        None
    }

    /// A session has begun.
    fn on_connect(&self, session: &SessionInfo);

    /// A session has ended. Other sessions of the same cluster may be open.
    fn on_disconnect(&self, session: &SessionInfo, cause: &str);

    /// The agent reported how its API server is reached: after each connect, and when the token is
    /// rotated.
    fn on_credential(&self, session: &SessionInfo, credential: ApiCredential);

    /// The agent reported why it has no credential for its API server.
    fn on_credential_problem(&self, session: &SessionInfo, trouble: &str);
}
