//! HTTP/2 inside a WebSocket that the agent dialled.
//!
//! The agent is the HTTP/2 *server*, the management side the *client*, so only the management side
//! opens streams. A session carries `CONNECT host:port` byte streams to addresses that the agent
//! allows, and the agent's small HTTP API ([`agent_api`]). An agent authenticates with a key of its
//! own ([`key`]) in a signed challenge ([`handshake`]). A [`Registrar`], which a feature
//! implements, decides whether a key or a registration token is valid ([`admission::decide`] is the
//! rule).
//!
//! Management side: [`Acceptor`] handles the upgrade request, [`Sessions`] holds the admitted
//! sessions and dials through them. Agent side: [`connect::open`], then [`serve::serve`]. Both run
//! over any byte stream. The wire format is in `docs/compat/tunnel.md`, the decisions in
//! `docs/adr/0003-tunnel.md`.
//!
//! This crate knows no kind and opens no TCP or TLS connection of its own, except in
//! [`serve::TcpOutbound`], with which an agent reaches its API server.

pub mod accept;
pub mod address;
pub mod admission;
pub mod agent_api;
mod carry;
pub mod connect;
pub mod handshake;
pub mod hello;
pub mod key;
pub mod limits;
mod liveness;
mod reader;
pub mod refusal;
pub mod relay;
pub mod serve;
mod session;
pub mod sessions;
pub mod stream;
pub mod traffic;
mod window;
pub mod wire;

#[cfg(test)]
mod tests;

pub use accept::{Accepted, Acceptor, ConnectAttempt, Observer};
pub use address::{Address, AddressError};
pub use admission::{Admission, ExpectedKey, KeyRecord, Registrar, SessionInfo, TokenRecord};
pub use agent_api::{ApiCredential, CredentialReport};
pub use hello::{Hello, RegistrationToken};
pub use key::{AgentKey, KeyId, PublicKey};
pub use refusal::{Refusal, RefusalReason};
pub use sessions::{Connected, DialError, Sessions};
pub use stream::Stream;

/// Identifies one downstream cluster. Opaque to this crate.
pub type ClusterId = std::sync::Arc<str>;

/// A bidirectional byte stream.
pub trait Io: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}
impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin> Io for T {}
