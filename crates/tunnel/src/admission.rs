//! Who may connect: the seam to the feature that keeps tokens and keys, and the rule it applies.

use std::net::SocketAddr;
use std::time::SystemTime;

use futures::future::BoxFuture;

use crate::ClusterId;
use crate::agent_api::ApiCredential;
use crate::hello::Hello;
use crate::key::{KeyId, PublicKey};
use crate::refusal::Refusal;

/// The outcome of a good hello. The agent is let in once it has proven `key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    pub cluster: ClusterId,
    pub key: ExpectedKey,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedKey {
    /// A key that was registered before.
    Registered(PublicKey),
    /// The token is good; this key is to be registered after the proof.
    First(PublicKey),
}

impl ExpectedKey {
    pub fn public_key(&self) -> &PublicKey {
        match self {
            Self::Registered(key) | Self::First(key) => key,
        }
    }
}

/// What is known of a registration token.
#[derive(Clone, Debug)]
pub struct TokenRecord {
    pub cluster: ClusterId,
    pub expires_at: SystemTime,
    /// The key that was registered with it.
    pub used_by: Option<KeyId>,
}

/// What is known of a key.
#[derive(Clone, Debug)]
pub struct KeyRecord {
    pub cluster: ClusterId,
    pub public_key: PublicKey,
}

/// The rule of registration, for a [`Registrar`] that has looked up `key` (by [`Hello::key`]) and
/// `token` (by [`Hello::token`]).
///
/// A registered key needs no token, and an old token beside it is harmless. A token is good until a
/// key is registered with it or it expires; the same key may show it again. A key belongs to one
/// cluster. Who removes a key record must also replace the token it was registered with, or the
/// agent registers again until that token expires.
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

/// One connected agent.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    pub cluster: ClusterId,
    pub key: KeyId,
    pub instance: String,
    pub agent_version: String,
    pub remote: Option<SocketAddr>,
    pub connected_at: SystemTime,
}

/// Decides who is let in, and hears who came and went. Implemented by a feature.
///
/// The event methods are called from the session's own task and must return at once: hand the news
/// to a queue.
pub trait Registrar: Send + Sync + 'static {
    /// Judges a hello. Changes nothing: the agent has proven nothing yet.
    ///
    /// A refusal's message goes to the agent's log.
    fn admit<'a>(&'a self, hello: &'a Hello) -> BoxFuture<'a, Result<Admission, Refusal>>;

    /// Registers the key of an [`ExpectedKey::First`] after the agent has proven it.
    ///
    /// Must check again and store in one atomic step: of two agents that show the same token at
    /// once, one is refused with [`Refusal::token_used`].
    fn enrol<'a>(
        &'a self,
        hello: &'a Hello,
        admission: &'a Admission,
    ) -> BoxFuture<'a, Result<(), Refusal>>;

    /// The cluster that the hello's token or key is of, for the records; proven is nothing.
    fn claimed_cluster(&self, hello: &Hello) -> Option<ClusterId> {
        let _ = hello;
        None
    }

    /// A session is up.
    fn connected(&self, session: &SessionInfo);

    /// A session is over. Others of the same cluster may go on.
    fn disconnected(&self, session: &SessionInfo, cause: &str);

    /// The agent told how its API server is reached: after each connect, and when the token
    /// rotates.
    fn reported(&self, session: &SessionInfo, credential: ApiCredential);

    /// The agent told why it cannot say how its API server is reached.
    fn troubled(&self, session: &SessionInfo, trouble: &str);
}
