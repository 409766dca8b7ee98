//! HTTP/2 inside a WebSocket that the agent dialled.
//!
//! The agent is the HTTP/2 *server*, the management side the *client*, so only the management side
//! opens streams. Two things ride on a session: `CONNECT host:port` byte streams to addresses that
//! the agent allows, and the agent's small HTTP API ([`agent_api`]). An agent proves who it is with
//! a key of its own ([`key`]) in a signed challenge ([`handshake`]); whether a key or a
//! registration token is good is the decision of a [`Registrar`], which a feature implements
//! ([`admission::decide`] states the rule).
//!
//! Management side: [`Acceptor`] answers the upgrade request, [`Sessions`] keeps what was admitted
//! and dials. Agent side: [`connect::open`], then [`serve::serve`]. Both run over any byte stream.
//! What travels, byte by byte: `docs/compat/tunnel.md`. Decisions: `docs/adr/0003-tunnel.md`.
//!
//! This crate knows no kind of object and makes no TCP or TLS connection of its own, but for
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

pub use accept::{Accepted, Acceptor, Attempt, Observer};
pub use address::{Address, AddressError};
pub use admission::{Admission, ExpectedKey, KeyRecord, Registrar, SessionInfo, TokenRecord};
pub use agent_api::{ApiCredential, CredentialReport};
pub use hello::{Hello, RegistrationToken};
pub use key::{AgentKey, KeyId, PublicKey};
pub use refusal::{Refusal, RefusalReason};
pub use sessions::{Connected, DialError, Sessions};
pub use stream::Stream;

/// Names one downstream cluster. Opaque here.
pub type ClusterId = std::sync::Arc<str>;

/// Anything that carries bytes both ways.
pub trait Io: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}
impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin> Io for T {}
