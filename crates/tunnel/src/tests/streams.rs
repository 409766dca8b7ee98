//! Streams: flow control, limits, and the addresses that an agent allows.

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::harness::{SECOND, World, echo};
use super::wait::{pass, until};
use crate::limits::{HEARTBEAT_INTERVAL, MESSAGE_MAX_BYTES, STREAMS_PER_SESSION_MAX};
use crate::wire::Wire;
use crate::{ApiCredential, CredentialReport, DialError, agent_api, traffic};

#[tokio::test(start_paused = true)]
async fn a_stream_carries_bytes_and_its_end_in_both_directions() {
    let world = World::new();
    let (_agent, _running) = world.join("c-1").await;
    let mut stream = world.dial("c-1", "sink:1").await.unwrap();
    stream.write_all(&[7; 300_000]).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    assert_eq!(reply, "300000", "the reply came after the half-close");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_does_not_read_does_not_block_the_others() {
    let world = World::new();
    let (_agent, _running) = world.join("c-1").await;
    let mut stalled = Vec::new();
    for _ in 0..200 {
        stalled.push(world.dial("c-1", "flood:1").await.unwrap());
    }
    let mut fast = world.dial("c-1", "echo:1").await.unwrap();
    for _ in 0..100 {
        let block = [5; 40_000];
        assert_eq!(echo(&mut fast, &block).await, block);
    }
    // The stalled ones are alive, each with its own data waiting.
    let mut byte = [0; 100_000];
    stalled[0].read_exact(&mut byte).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_was_read_empty_continues_when_many_others_shrink_its_window() {
    let world = World::new();
    let (_agent, _running) = world.join("c-1").await;
    let mut stream = world.dial("c-1", "echo:1").await.unwrap();
    // Less than makes either end release the window, more than the small window will be.
    let block = [3; 170_000];
    assert_eq!(echo(&mut stream, &block[..100_000]).await, block[..100_000]);
    assert_eq!(echo(&mut stream, &block[..70_000]).await, block[..70_000]);
    let mut others = Vec::new();
    for _ in 0..STREAMS_PER_SESSION_MAX - 1 {
        others.push(world.dial("c-1", "echo:1").await.unwrap());
    }
    // Each heartbeat may halve the windows once.
    pass(12 * HEARTBEAT_INTERVAL).await;
    let echoed = tokio::time::timeout(60 * SECOND, echo(&mut stream, &block[..50_000])).await;
    assert_eq!(echoed.expect("the stream must not stand still"), block[..50_000]);
}

#[tokio::test(start_paused = true)]
async fn a_writer_to_a_full_stream_waits_instead_of_buffering() {
    let world = World::new();
    let (_agent, _running) = world.join("c-1").await;
    let mut stream = world.dial("c-1", "echo:1").await.unwrap();
    let stalls = traffic::stalls();
    // Nothing reads the echo, so at some point nothing more is accepted.
    let mut taken = 0;
    let block = [0; 64 * 1024];
    while let Ok(written) = tokio::time::timeout(SECOND, stream.write(&block)).await {
        taken += written.unwrap();
        assert!(taken < 32 << 20, "a stream must not take bytes without bound");
    }
    assert!(taken > 256 * 1024, "{taken}");
    assert!(traffic::stalls() > stalls);
    assert!(traffic::sent_bytes() >= taken as u64);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_streams_work_at_once_and_one_more_is_refused() {
    let world = World::new();
    let (_agent, _running) = world.join("c-1").await;
    let mut streams = Vec::new();
    for _ in 0..STREAMS_PER_SESSION_MAX {
        streams.push(world.dial("c-1", "echo:1").await.unwrap());
    }
    assert_eq!(world.dial("c-1", "echo:1").await.err(), Some(DialError::Saturated));
    let echoes = streams.iter_mut().enumerate().map(|(index, stream)| async move {
        let text = index.to_string();
        assert_eq!(echo(stream, text.as_bytes()).await, text.as_bytes());
    });
    futures::future::join_all(echoes).await;
    streams.truncate(1);
    until("the slots to be free", || world.sessions.health("c-1")[0].open_streams == 1).await;
    let mut again = world.dial("c-1", "echo:1").await;
    while again.is_err() {
        // The agent learns of the dropped ones a moment later.
        assert_eq!(again.err(), Some(DialError::Saturated));
        again = world.dial("c-1", "echo:1").await;
    }
}

/// Waits until the agent itself counts no open stream any more.
async fn agent_is_idle(world: &World) {
    let is_idle = || async {
        let body = world.sessions.get("c-1", agent_api::PATH_HEALTH, SECOND).await.unwrap();
        serde_json::from_slice::<agent_api::Health>(&body).unwrap().streams == 0
    };
    let waiting = tokio::time::timeout(10 * SECOND, async {
        while !is_idle().await {
            tokio::task::yield_now().await;
        }
    });
    waiting.await.expect("the agent must let go of its streams");
}

#[tokio::test(start_paused = true)]
async fn only_allowed_addresses_are_dialled_and_failures_are_reported() {
    let world = World::new();
    let (_agent, _running) = world.join("c-1").await;
    let denied = world.dial("c-1", "169.254.169.254:80").await.err().unwrap();
    assert_eq!(denied, DialError::Denied { address: "169.254.169.254:80".to_owned() });
    let refused = world.dial("c-1", "refused:1").await.err().unwrap();
    assert_eq!(
        refused.to_string(),
        "the cluster's agent could not reach \"refused:1\": connection refused"
    );
    // Neither harmed the session.
    let mut stream = world.dial("c-1", "echo:1").await.unwrap();
    assert_eq!(echo(&mut stream, b"still here").await, b"still here");
}

#[tokio::test(start_paused = true)]
async fn an_address_that_never_responds_ends_at_the_callers_deadline_and_frees_its_slot() {
    let world = World::new();
    let (_agent, _running) = world.join("c-1").await;
    let address = "hole:1".parse().unwrap();
    let dialled = world.sessions.dial("c-1", &address, 2 * SECOND).await;
    assert_eq!(dialled.err(), Some(DialError::TimedOut { after: 2 * SECOND }));
    until("the slot to be free", || world.sessions.health("c-1")[0].open_streams == 0).await;
    agent_is_idle(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_ends_at_the_other_end_too() {
    let world = World::new();
    let (_agent, _running) = world.join("c-1").await;
    let stream = world.dial("c-1", "flood:1").await.unwrap();
    drop(stream);
    agent_is_idle(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_reached_through_its_own_agent_only() {
    let world = World::new();
    let (_one, _running_one) = world.join("c-1").await;
    let (_two, _running_two) = world.join("c-2").await;
    for cluster in ["c-1", "c-2"] {
        let mut stream = world.dial(cluster, "who:1").await.unwrap();
        let mut name = String::new();
        stream.read_to_string(&mut name).await.unwrap();
        assert_eq!(name, cluster);
    }
    assert_eq!(world.dial("c-3", "who:1").await.err(), Some(DialError::NotConnected));
}

#[tokio::test(start_paused = true)]
async fn the_agents_api_serves_health_and_version() {
    let world = World::new();
    let (_agent, _running) = world.join("c-1").await;
    let body = world.sessions.get("c-1", agent_api::PATH_VERSION, SECOND).await.unwrap();
    let version: agent_api::AgentVersion = serde_json::from_slice(&body).unwrap();
    assert_eq!((version.agent_version.as_str(), version.protocol), ("test", 1));
    let unknown = world.sessions.get("c-1", "/v1/nothing", SECOND).await;
    assert_eq!(unknown.err(), Some(DialError::AgentStatus(http::StatusCode::NOT_FOUND)));
}

#[tokio::test(start_paused = true)]
async fn a_rotated_credential_reaches_the_server_without_a_reconnect() {
    let world = World::new();
    let (agent, _running) = world.join("c-1").await;
    let credential = |token: &str| ApiCredential {
        address: "10.43.0.1:443".to_owned(),
        ca_cert: "pem".to_owned(),
        token: token.to_owned(),
    };
    for (count, token) in ["first", "second", "third"].into_iter().enumerate() {
        agent.credential.send_replace(Some(CredentialReport::Credential(credential(token))));
        until("the report", || world.registrar.reports().len() > count).await;
        let (cluster, report) = world.registrar.reports().pop().unwrap();
        assert_eq!((&*cluster, report), ("c-1", credential(token)));
    }
    assert!(!format!("{:?}", credential("geheim")).contains("geheim"));
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_credential_reports_why() {
    let world = World::new();
    let (agent, _running) = world.join("c-1").await;
    let trouble = "no token is mounted".to_owned();
    agent.credential.send_replace(Some(CredentialReport::Trouble { trouble }));
    let report = "c-1 troubled: no token is mounted".to_owned();
    until("the report", || world.registrar.events().contains(&report)).await;
    assert_eq!(world.registrar.reports(), []);
}

#[tokio::test(start_paused = true)]
async fn a_giant_message_or_a_text_message_ends_the_wire() {
    for message in [
        Message::Binary(Bytes::from(vec![0; MESSAGE_MAX_BYTES + 1])),
        Message::Text("hello".into()),
    ] {
        let (near, far) = tokio::io::duplex(1 << 20);
        let mut wire = Wire::server(near);
        let mut peer = WebSocketStream::from_raw_socket(far, Role::Client, None).await;
        peer.send(message).await.unwrap();
        let error = wire.read_u8().await.err().unwrap();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    }
}

#[tokio::test(start_paused = true)]
async fn pings_of_a_load_balancer_get_a_pong_and_are_no_data() {
    let (near, far) = tokio::io::duplex(1 << 20);
    let mut wire = Wire::server(near);
    let mut peer = WebSocketStream::from_raw_socket(far, Role::Client, None).await;
    peer.send(Message::Ping(Bytes::from_static(b"lb"))).await.unwrap();
    peer.send(Message::Binary(Bytes::new())).await.unwrap();
    peer.send(Message::Binary(Bytes::from_static(b"x"))).await.unwrap();
    assert_eq!(wire.read_u8().await.unwrap(), b'x');
    wire.flush().await.unwrap();
    let reply = peer.next().await.unwrap().unwrap();
    assert_eq!(reply, Message::Pong(Bytes::from_static(b"lb")));
}
