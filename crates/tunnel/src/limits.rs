//! Every limit of the tunnel, with its unit and its reason. Nothing here is configurable yet.

use std::time::Duration;

/// Version of everything between the upgrade request and the end of the session.
pub const PROTOCOL_VERSION: u32 = 1;

/// From the upgrade to the verdict. Covers three messages on a slow satellite link.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// One handshake message. The largest real one is under 1 KiB.
pub const HANDSHAKE_FRAME_MAX_BYTES: usize = 8 * 1024;
/// Handshakes under way at once; above, agents are told to come back.
pub const HANDSHAKES_MAX: usize = 1024;

/// One WebSocket message that we accept. We send at most [`MESSAGE_BYTES`].
pub const MESSAGE_MAX_BYTES: usize = 256 * 1024;
/// One WebSocket message that we send: an HTTP/2 frame with its head.
pub const MESSAGE_BYTES: usize = 64 * 1024 - 1;
/// Bytes gathered before a write to the socket.
pub const WRITE_BUFFER_BYTES: usize = 64 * 1024;
/// Bytes that wait to be written while pings of the WebSocket are still answered.
pub const PONGS_MAX_BYTES: usize = 2 * WRITE_BUFFER_BYTES;
/// One HTTP/2 frame of payload: a small one waits for at most one of these.
pub const DATA_FRAME_MAX_BYTES: u32 = 64 * 1024 - 16;

/// Bytes that an agent reads at a time from what it has connected to, for one stream: the latter when much comes.
pub const TARGET_READ_MIN_BYTES: usize = 4 * 1024;
pub const TARGET_READ_MAX_BYTES: usize = 64 * 1024;

/// Streams open at once in one session, requests to the agent's API included.
pub const STREAMS_PER_SESSION_MAX: usize = 1024;
/// Request or response headers on a stream.
pub const HEADERS_MAX_BYTES: u32 = 16 * 1024;
/// Bytes that one stream may have waiting to be sent.
pub const SEND_BUFFER_MAX_BYTES: usize = 256 * 1024;
/// Sessions of one cluster: replicas of its agent, and old ones that finish their streams.
pub const SESSIONS_PER_CLUSTER_MAX: usize = 8;

/// Each side sends a heartbeat this often.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// No byte from the peer for this long: it is dead, the session ends. Three heartbeats.
pub const PEER_SILENCE_MAX: Duration = Duration::from_secs(15);
/// No byte for this long: other sessions are preferred for new streams.
pub const PEER_SILENCE_SUSPECT: Duration = Duration::from_secs(7);
/// An open stream without traffic in both directions is closed. Longer than the kubelet's own limit
/// for an idle `exec` (4 h), so that the kubelet speaks first.
pub const STREAM_IDLE_MAX: Duration = Duration::from_secs(4 * 3600 + 300);
/// What an agent waits for a TCP connection to an address it was asked to dial.
pub const AGENT_DIAL_TIME_MAX: Duration = Duration::from_secs(10);

/// One answer of the agent's API.
pub const AGENT_API_BODY_MAX_BYTES: usize = 1024 * 1024;
/// One line of the credential stream: a CA bundle and a token.
pub const CREDENTIAL_MAX_BYTES: usize = 256 * 1024;
/// Until the agent has answered a request to its API.
pub const AGENT_API_TIME_MAX: Duration = Duration::from_secs(10);
/// Pause between two credential reports that are looked at; further ones wait with the agent. Agents report when they
/// connect and when a token rotates.
pub const CREDENTIAL_PACE: Duration = Duration::from_secs(1);
/// Text of a refused `CONNECT`.
pub const REFUSAL_TEXT_MAX_BYTES: usize = 4 * 1024;
/// Pause before the credential stream is asked for again when it broke.
pub const CREDENTIAL_RETRY: Duration = Duration::from_secs(5);

/// A registration token in its header.
pub const TOKEN_MAX_BYTES: usize = 512;
/// Free text that an agent says about itself: version, instance.
pub const LABEL_MAX_BYTES: usize = 128;
