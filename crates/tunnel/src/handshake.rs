//! The proof of the agent's key: three messages inside the WebSocket, before HTTP/2 begins.
//!
//! ```text
//! server ─► Challenge { version, server, cluster, nonce }
//! agent  ─► Proof { nonce, signature }
//! server ─► Accepted { session } | Refused(refusal)
//! ```
//!
//! Each is a 4-byte big-endian length and that much JSON. The signature covers both nonces, the
//! key, the cluster and the server's identity (the checksum of its CA). So it cannot be replayed,
//! used for another cluster, or obtained by another server and passed on: an agent that has pinned
//! a CA signs only for that CA. TLS authenticates the server to the agent. Behind a
//! load balancer that terminates TLS, this proof authenticates the agent to the server.

use std::io;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::ClusterId;
use crate::admission::Admission;
use crate::hello::Hello;
use crate::key::{AgentKey, KeyId};
use crate::limits::{HANDSHAKE_FRAME_MAX_BYTES, PROTOCOL_VERSION};
use crate::refusal::Refusal;

const NONCE_BYTES: usize = 32;
/// Distinguishes the signatures of this protocol from any other use of the key.
const CONTEXT: &str = "drover tunnel 1 agent proof";

/// Why a handshake failed, by step.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    #[error("exchange handshake messages with the peer")]
    Io(#[from] io::Error),
    /// Bytes of a message above [`HANDSHAKE_FRAME_MAX_BYTES`].
    #[error("read a handshake message: {0} bytes announced, at most {HANDSHAKE_FRAME_MAX_BYTES}")]
    TooLong(usize),
    #[error("read a handshake message: it is not what this step expects")]
    Malformed(#[source] serde_json::Error),
    #[error(
        "the server identifies itself as \"{announced}\", but the agent has pinned \"{pinned}\"; the connection \
         may be intercepted"
    )]
    OtherServer { announced: String, pinned: String },
    /// The server's version of the protocol.
    #[error("the server speaks tunnel version {0}, this agent {PROTOCOL_VERSION}")]
    Version(u32),
    #[error("make a nonce: the random generator failed")]
    Random,
    #[error("refused: {0}")]
    Refused(#[from] Refusal),
}

/// 32 random bytes in base64, made by each side for one session.
fn nonce() -> Result<String, HandshakeError> {
    let mut bytes = [0; NONCE_BYTES];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| HandshakeError::Random)?;
    Ok(STANDARD.encode(bytes))
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Challenge {
    pub version: u32,
    /// SHA-256 of the server's CA, in hex; empty when the server uses a public CA.
    pub server: String,
    pub cluster: String,
    pub nonce: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proof {
    pub nonce: String,
    pub signature: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum HandshakeDecision {
    Accepted { session: u64 },
    Refused(Refusal),
}

/// What is signed. Each part carries its length, so no two lists of parts give the same bytes.
pub(crate) fn signed_bytes(
    challenge: &Challenge,
    key: &KeyId,
    instance: &str,
    agent_nonce: &str,
) -> Vec<u8> {
    let parts = [
        CONTEXT,
        &challenge.server,
        &challenge.cluster,
        key.as_str(),
        instance,
        &challenge.nonce,
        agent_nonce,
    ];
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

/// Management side, first half: requests the proof and verifies it. Sends no decision yet.
///
/// `server` is the checksum of the CA that agents pin, empty for a public CA.
///
/// # Errors
/// [`HandshakeError::Refused`] when the proof is wrong; send it to the agent with [`conclude`].
pub(crate) async fn challenge<S: AsyncRead + AsyncWrite + Unpin>(
    io: &mut S,
    server: &str,
    hello: &Hello,
    admission: &Admission,
) -> Result<(), HandshakeError> {
    let challenge = Challenge {
        version: PROTOCOL_VERSION,
        server: server.to_owned(),
        cluster: admission.cluster.to_string(),
        nonce: nonce()?,
    };
    write_frame(io, &challenge).await?;
    let proof: Proof = read_frame(io).await?;
    let signature = STANDARD.decode(&proof.signature).unwrap_or_default();
    let signed = signed_bytes(&challenge, &hello.key, &hello.instance, &proof.nonce);
    if admission.key.public_key().verifies(&signed, &signature) {
        Ok(())
    } else {
        Err(Refusal::proof_failed().into())
    }
}

/// Management side, second half: sends the decision.
pub(crate) async fn conclude<S: AsyncWrite + Unpin>(
    io: &mut S,
    decision: Result<u64, Refusal>,
) -> Result<(), HandshakeError> {
    let decision = match decision {
        Ok(session) => HandshakeDecision::Accepted { session },
        Err(refusal) => HandshakeDecision::Refused(refusal),
    };
    write_frame(io, &decision).await
}

/// Agent side: responds to the challenge. Returns the id of this cluster on the server, and the
/// number of the session.
pub(crate) async fn prove<S: AsyncRead + AsyncWrite + Unpin>(
    io: &mut S,
    key: &AgentKey,
    instance: &str,
    pinned_server: Option<&str>,
) -> Result<(ClusterId, u64), HandshakeError> {
    let challenge: Challenge = read_frame(io).await?;
    if challenge.version != PROTOCOL_VERSION {
        return Err(HandshakeError::Version(challenge.version));
    }
    if let Some(pinned) = pinned_server
        && pinned != challenge.server
    {
        let pinned = pinned.to_owned();
        return Err(HandshakeError::OtherServer { announced: challenge.server, pinned });
    }
    let agent_nonce = nonce()?;
    let signed = signed_bytes(&challenge, &key.id(), instance, &agent_nonce);
    let signature = STANDARD.encode(key.sign(&signed));
    write_frame(io, &Proof { nonce: agent_nonce, signature }).await?;
    match read_frame(io).await? {
        HandshakeDecision::Accepted { session } => Ok((challenge.cluster.into(), session)),
        HandshakeDecision::Refused(refusal) => Err(refusal.into()),
    }
}

async fn write_frame<S: AsyncWrite + Unpin>(
    io: &mut S,
    message: &impl Serialize,
) -> Result<(), HandshakeError> {
    let json = serde_json::to_vec(message).expect("plain strings and numbers serialise");
    let length = u32::try_from(json.len()).map_err(|_| HandshakeError::TooLong(json.len()))?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(&json);
    io.write_all(&frame).await?;
    io.flush().await?;
    Ok(())
}

pub(crate) async fn read_frame<S: AsyncRead + Unpin, T: DeserializeOwned>(
    io: &mut S,
) -> Result<T, HandshakeError> {
    let length = io.read_u32().await? as usize;
    if length > HANDSHAKE_FRAME_MAX_BYTES {
        return Err(HandshakeError::TooLong(length));
    }
    let mut json = vec![0; length];
    io.read_exact(&mut json).await?;
    serde_json::from_slice(&json).map_err(HandshakeError::Malformed)
}
