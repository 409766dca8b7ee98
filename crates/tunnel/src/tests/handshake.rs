//! Which agents are admitted and which are refused.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::harness::{Agent, CA, SECOND, World};
use crate::admission::decide;
use crate::connect::ConnectError;
use crate::handshake::{
    Challenge, HandshakeError, Proof, challenge, prove, read_frame, signed_bytes,
};
use crate::limits::HANDSHAKE_FRAME_MAX_BYTES;
use crate::*;

fn refusal(error: ConnectError) -> Refusal {
    match error {
        ConnectError::Refused(refusal) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_registers_once_and_then_needs_no_token() {
    let world = World::new();
    let (mut agent, running) = world.join("c-1").await;
    drop(running);
    agent.token = None;
    let (established, _) = world.open(&agent).await.unwrap();
    assert_eq!(&*established.cluster, "c-1");
}

#[tokio::test(start_paused = true)]
async fn the_same_agent_may_present_its_token_again_but_no_other_agent() {
    let world = World::new();
    let (agent, _running) = world.join("c-1").await;
    assert!(world.open(&agent).await.is_ok());
    let thief = Agent::new("c-1").with_token("c-1");
    let refused = refusal(world.open(&thief).await.err().unwrap());
    assert_eq!((refused.code, refused.reason), (403, RefusalReason::TokenUsed));
    assert!(refused.message.contains("already used by another agent"), "{refused}");
    assert_eq!(world.registrar.key_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn unknown_and_expired_tokens_are_refused_with_their_own_reason() {
    let world = World::new();
    world.registrar.add_token("old", "c-1", SECOND);
    world.registrar.expire("old");
    let cases = [
        (Agent::new("c-1"), 401, RefusalReason::KeyUnknown),
        (Agent::new("c-1").with_token("wrong"), 401, RefusalReason::TokenUnknown),
        (Agent::new("c-1").with_token("old"), 403, RefusalReason::TokenExpired),
    ];
    for (agent, code, reason) in cases {
        let refused = refusal(world.open(&agent).await.err().unwrap());
        assert_eq!((refused.code, refused.reason), (code, reason));
        assert!(!refused.message.contains("wrong"), "tokens are not repeated");
    }
    assert!(!world.sessions.is_connected("c-1"));
}

#[tokio::test(start_paused = true)]
async fn of_two_agents_with_one_token_at_once_only_one_is_admitted() {
    let world = World::new();
    world.registrar.add_token("t", "c-1", 60 * SECOND);
    let (one, two) = (Agent::new("c-1").with_token("t"), Agent::new("c-1").with_token("t"));
    let (first, second) = tokio::join!(world.open(&one), world.open(&two));
    assert_eq!(usize::from(first.is_ok()) + usize::from(second.is_ok()), 1);
    let refused = refusal(first.err().or(second.err()).unwrap());
    assert_eq!(refused.reason, RefusalReason::TokenUsed);
}

#[tokio::test(start_paused = true)]
async fn a_registered_key_without_its_private_half_is_refused() {
    let world = World::new();
    let (agent, _running) = world.join("c-1").await;
    let mut impostor = Agent::new("c-1");
    impostor.pinned = None;
    let mut hello = impostor.hello();
    hello.key = agent.key.id();
    let (io, _server) = world.pipe();
    let opened = connect::open(io, "drover", &hello, &impostor.key, None).await;
    assert_eq!(refusal(opened.err().unwrap()).reason, RefusalReason::ProofFailed);
    assert_eq!(world.sessions.health("c-1").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_does_not_sign_for_another_server_than_the_pinned_one() {
    let world = World::new();
    world.registrar.add_token("t", "c-1", 60 * SECOND);
    world.acceptor.set_ca_checksum("another");
    let agent = Agent::new("c-1").with_token("t");
    let error = world.open(&agent).await.err().unwrap();
    let ConnectError::Handshake(HandshakeError::OtherServer { announced, pinned }) = error else {
        panic!("{error:?}");
    };
    assert_eq!((announced.as_str(), pinned.as_str()), ("another", CA));
    assert_eq!(world.registrar.key_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_recorded_proof_does_not_pass_another_challenge() {
    let agent = Agent::new("c-1").with_token("t");
    let hello = agent.hello();
    let key = admission::ExpectedKey::Registered(agent.key.public_key());
    let admission = Admission { cluster: "c-1".into(), key };

    // A first, honest handshake through a wire tap.
    let (mut server, mut tap) = tokio::io::duplex(4096);
    let judged = challenge(&mut server, CA, &hello, &admission);
    let recorded = async {
        let challenge: Challenge = read_frame(&mut tap).await.unwrap();
        let signed = signed_bytes(&challenge, &agent.key.id(), &hello.instance, "n");
        let signature = base64::Engine::encode(
            &base64::engine::general_purpose::STANDARD,
            agent.key.sign(&signed),
        );
        let proof = Proof { nonce: "n".to_owned(), signature };
        let json = serde_json::to_vec(&proof).unwrap();
        let mut frame = u32::try_from(json.len()).unwrap().to_be_bytes().to_vec();
        frame.extend_from_slice(&json);
        tap.write_all(&frame).await.unwrap();
        frame
    };
    let (judged, recorded) = tokio::join!(judged, recorded);
    judged.unwrap();

    // The same bytes again, to a new challenge.
    let (mut server, mut tap) = tokio::io::duplex(4096);
    tap.write_all(&recorded).await.unwrap();
    let judged = challenge(&mut server, CA, &hello, &admission).await;
    let Err(HandshakeError::Refused(refused)) = judged else { panic!("{judged:?}") };
    assert_eq!(refused.reason, RefusalReason::ProofFailed);
}

#[test]
fn a_signature_is_good_for_exactly_one_cluster_server_key_and_run() {
    let challenge = Challenge {
        version: 1,
        server: "s".to_owned(),
        cluster: "c".to_owned(),
        nonce: "n".to_owned(),
    };
    let key = AgentKey::generate().unwrap().id();
    let base = signed_bytes(&challenge, &key, "i", "a");
    let shifted =
        Challenge { server: "sc".to_owned(), cluster: String::new(), ..challenge.clone() };
    let others = [
        signed_bytes(&Challenge { server: "x".to_owned(), ..challenge.clone() }, &key, "i", "a"),
        signed_bytes(&Challenge { cluster: "x".to_owned(), ..challenge.clone() }, &key, "i", "a"),
        signed_bytes(&Challenge { nonce: "x".to_owned(), ..challenge.clone() }, &key, "i", "a"),
        signed_bytes(&shifted, &key, "i", "a"),
        signed_bytes(&challenge, &AgentKey::generate().unwrap().id(), "i", "a"),
        signed_bytes(&challenge, &key, "x", "a"),
        signed_bytes(&challenge, &key, "i", "x"),
    ];
    for other in others {
        assert_ne!(base, other);
    }
}

#[test]
fn the_rule_of_registration_holds_in_every_case() {
    let own = Agent::new("c-1").with_token("t");
    let other = Agent::new("c-1");
    let now = SystemTime::now();
    let minute = Duration::from_secs(60);
    let record = |cluster: &str, key: &AgentKey| KeyRecord {
        cluster: cluster.into(),
        public_key: key.public_key(),
    };
    let token = |cluster: &str, expires_at, used_by| TokenRecord {
        cluster: cluster.into(),
        expires_at,
        used_by,
    };
    let known = record("c-1", &own.key);
    let used = token("c-1", now + minute, Some(other.key.id()));
    let again = token("c-1", now + minute, Some(own.key.id()));
    let fresh = token("c-1", now + minute, None);
    let expired = token("c-1", now - minute, None);
    let elsewhere = token("c-2", now + minute, None);
    let with_token = own.hello();
    let without = Hello { token: None, public_key: None, ..with_token.clone() };
    let first = Ok("first");
    let cases = [
        (&without, None, None, Err(RefusalReason::KeyUnknown)),
        (&without, Some(&known), None, Ok("registered")),
        (&with_token, Some(&known), None, Ok("registered")),
        (&with_token, Some(&known), Some(&expired), Ok("registered")),
        (&with_token, Some(&known), Some(&elsewhere), Err(RefusalReason::KeyElsewhere)),
        (&with_token, None, None, Err(RefusalReason::TokenUnknown)),
        (&with_token, None, Some(&fresh), first),
        (&with_token, None, Some(&again), first),
        (&with_token, None, Some(&expired), Err(RefusalReason::TokenExpired)),
        (&with_token, None, Some(&used), Err(RefusalReason::TokenUsed)),
    ];
    for (index, (hello, key, token, expected)) in cases.into_iter().enumerate() {
        let decided = decide(hello, key, token, now);
        let decided = decided.as_ref().map(|admission| match admission.key {
            ExpectedKey::Registered(_) => "registered",
            ExpectedKey::First(_) => "first",
        });
        assert_eq!(decided.map_err(|refusal| refusal.reason), expected, "case {index}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_announced_giant_message_is_refused_before_it_is_read() {
    let (mut near, mut far) = tokio::io::duplex(64);
    let length = u32::try_from(HANDSHAKE_FRAME_MAX_BYTES + 1).unwrap();
    far.write_all(&length.to_be_bytes()).await.unwrap();
    let agent = Agent::new("c-1");
    let error = prove(&mut near, &agent.key, "i", None).await.err().unwrap();
    assert!(matches!(error, HandshakeError::TooLong(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_an_agents_gets_a_status_and_no_upgrade() {
    let world = World::new();
    let (mut io, _server) = world.pipe();
    io.write_all(b"GET /v3/connect HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut response = String::new();
    io.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    assert!(
        response.contains("\"kind\":\"Status\"") && response.contains("\"code\":400"),
        "{response}"
    );
    assert!(response.contains("this path is for cluster agents"), "{response}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_stops_in_the_handshake_is_dropped_in_time() {
    let world = World::new();
    let (agent, running) = world.join("c-1").await;
    drop(running);
    let (mut io, server) = world.pipe();
    let request = format!(
        "GET /v3/connect HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         x-drover-tunnel-version: 1\r\nx-drover-tunnel-key: {}\r\n\
         x-drover-tunnel-instance: i\r\n\r\n",
        agent.key.id()
    );
    io.write_all(request.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    let started = tokio::time::Instant::now();
    io.read_to_end(&mut response).await.unwrap();
    assert!(response.starts_with(b"HTTP/1.1 101 "));
    assert!(started.elapsed() <= limits::HANDSHAKE_TIME_MAX + SECOND);
    server.await.unwrap();
}

fn header_name() -> impl Strategy<Value = HeaderName> {
    prop::sample::select(vec![
        hello::HEADER_VERSION,
        hello::HEADER_KEY,
        hello::HEADER_PUBLIC_KEY,
        hello::HEADER_INSTANCE,
        hello::HEADER_AGENT_VERSION,
        hello::HEADER_TOKEN,
    ])
}

proptest! {
    #[test]
    fn any_headers_are_read_or_refused_as_a_bad_hello(
        list in prop::collection::vec(
            (header_name(), prop::collection::vec(any::<u8>(), 0..80)),
            0..10,
        )
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(name, value);
            }
        }
        if let Err(refusal) = Hello::from_headers(&headers) {
            prop_assert_eq!(refusal.reason, RefusalReason::BadHello);
        }
    }

    #[test]
    fn a_hello_survives_its_headers(token in "[!-~]{1,60}", instance in "[a-z0-9]{1,32}") {
        let agent = Agent { instance, ..Agent::new("c-1") }.with_token(&token);
        let mut headers = HeaderMap::new();
        agent.hello().write_headers(&mut headers);
        prop_assert_eq!(Hello::from_headers(&headers).unwrap(), agent.hello());
        headers.append(hello::HEADER_TOKEN, HeaderValue::from_static("second"));
        prop_assert!(Hello::from_headers(&headers).is_err(), "a doubled header must be refused");
    }

    #[test]
    fn an_address_survives_its_text(text in "\\PC{0,40}") {
        if let Ok(address) = text.parse::<Address>() {
            prop_assert_eq!(address.to_string().parse::<Address>().unwrap(), address);
        }
    }
}

#[test]
fn addresses_are_read_strictly() {
    for good in ["10.43.0.1:443", "[fd00::1]:6443", "kubernetes.default.svc:443"] {
        assert_eq!(good.parse::<Address>().unwrap().to_string(), good);
    }
    for bad in
        ["", "x", "x:", ":1", "x:0", "x:+1", "x:65536", "fd00::1:6443", "a b:1", "u@x:1", "x/y:1"]
    {
        assert!(bad.parse::<Address>().is_err(), "{bad}");
    }
}
