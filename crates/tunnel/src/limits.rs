//! Every limit of the tunnel, with its unit and its reason. Nothing here is configurable yet.

use std::time::Duration;

/// Version of everything between the upgrade request and the end of the session.
pub const PROTOCOL_VERSION: u32 = 1;

/// From the upgrade to the decision. Covers three messages on a slow satellite link.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// One handshake message. The largest real one is under 1 KiB.
pub const HANDSHAKE_FRAME_MAX_BYTES: usize = 8 * 1024;
/// Concurrent handshakes; further agents are refused as busy.
pub const HANDSHAKES_MAX: usize = 1024;

/// One WebSocket message that is accepted. Drover sends at most [`MESSAGE_BYTES`].
pub const MESSAGE_MAX_BYTES: usize = 256 * 1024;
/// One WebSocket message that is sent: an HTTP/2 frame with its header.
pub const MESSAGE_BYTES: usize = 64 * 1024 - 1;
/// Bytes gathered before a write to the socket.
pub const WRITE_BUFFER_BYTES: usize = 64 * 1024;
/// Bytes that wait to be written while WebSocket pings still get a pong.
pub const PONGS_MAX_BYTES: usize = 2 * WRITE_BUFFER_BYTES;
/// One HTTP/2 frame of payload: a small one waits for at most one of these.
pub const DATA_FRAME_MAX_BYTES: u32 = 64 * 1024 - 16;

/// Bytes that an agent reads at a time from the address that it has connected to, for one idle
/// stream.
pub const TARGET_READ_MIN_BYTES: usize = 4 * 1024;
/// The same for one busy stream.
pub const TARGET_READ_MAX_BYTES: usize = 64 * 1024;

/// Streams open at once in one session, requests to the agent's API included.
pub const STREAMS_PER_SESSION_MAX: usize = 1024;
/// Size of the request or response headers on a stream.
pub const HEADERS_MAX_BYTES: u32 = 16 * 1024;
/// Bytes that one stream may have waiting to be sent.
pub const SEND_BUFFER_MAX_BYTES: usize = 256 * 1024;
/// Sessions of one cluster: replicas of its agent, and old ones that finish their streams.
pub const SESSIONS_PER_CLUSTER_MAX: usize = 8;

/// Each side sends a heartbeat this often.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// No byte from the peer for this long: the peer counts as dead and the session ends. Three
/// heartbeats.
pub const PEER_SILENCE_MAX: Duration = Duration::from_secs(15);
/// No byte for this long: other sessions are preferred for new streams.
pub const PEER_SILENCE_SUSPECT: Duration = Duration::from_secs(7);
/// An open stream without traffic in both directions is closed. Longer than the kubelet's own limit
/// for an idle `exec` (4 h), so that the kubelet closes first.
pub const STREAM_IDLE_MAX: Duration = Duration::from_secs(4 * 3600 + 300);
/// How long an agent waits for a TCP connection to a requested address.
pub const AGENT_DIAL_TIME_MAX: Duration = Duration::from_secs(10);

/// One response of the agent's API.
pub const AGENT_API_BODY_MAX_BYTES: usize = 1024 * 1024;
/// One line of the credential stream: a CA bundle and a token.
pub const CREDENTIAL_MAX_BYTES: usize = 256 * 1024;
/// How long a request to the agent's API may take.
pub const AGENT_API_TIME_MAX: Duration = Duration::from_secs(10);
/// Pause between two credential reports that are read; further reports wait in the agent. Agents
/// report when they connect and when a token is rotated.
pub const CREDENTIAL_PACE: Duration = Duration::from_secs(1);
/// Size of the text of a refused `CONNECT`.
pub const REFUSAL_TEXT_MAX_BYTES: usize = 4 * 1024;
/// Pause before a failed credential stream is requested again.
pub const CREDENTIAL_RETRY: Duration = Duration::from_secs(5);

/// Size of a registration token in its header.
pub const TOKEN_MAX_BYTES: usize = 512;
/// Size of a free text that an agent claims about itself: version, instance.
pub const LABEL_MAX_BYTES: usize = 128;
