//! From registration to the stream that carries kubectl.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tls_trust::{roots_from_pem, trust_roots};
use tokio_rustls::TlsConnector;
use tunnel::connect::ConnectError;
use tunnel::{DialError, Refusal, RefusalReason};

use super::wait::until;
use super::world::{HomeApi, KUBE_SYSTEM_UID, Running, Server, unread_status};
use crate::run::{Agent, AttemptError, Next};
use crate::status::StatusReporter;
use crate::trust::{TrustError, establish};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn the_server_reaches_the_api_server_through_the_agent_with_the_reported_credential() {
    let (server, home) = (Server::start().await, HomeApi::start().await);
    server.registrar.add_token("t", "c-1");
    let _agent = Running::start(server.settings("t"), home.home());
    until("the report", || !server.registrar.0.lock().reports.is_empty()).await;
    let credential = server.registrar.0.lock().reports[0].clone();
    assert_eq!(credential.ca_cert, home.ca_pem());

    let address = credential.address.parse().unwrap();
    let stream = server.sessions.dial("c-1", &address, 10 * SECOND).await.unwrap();
    let tls = trust_roots(roots_from_pem(&credential.ca_cert).unwrap()).with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("/version")
        .header("host", "x")
        .header("authorization", format!("Bearer {}", credential.token))
        .body(Full::<Bytes>::default())
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "{\"gitVersion\":\"v1.37.0\"}");

    let elsewhere = "127.0.0.1:1".parse().unwrap();
    let denied = server.sessions.dial("c-1", &elsewhere, SECOND).await.err().unwrap();
    assert!(matches!(denied, DialError::Denied { .. }), "{denied}");
}

#[tokio::test]
async fn a_restarted_agent_reuses_its_key_and_does_not_send_its_token() {
    let (server, home) = (Server::start().await, HomeApi::start().await);
    server.registrar.add_token("t", "c-1");
    for run in 1..=3 {
        let agent = Running::start(server.settings("t"), home.home());
        until("the session", || server.sessions.is_connected("c-1")).await;
        let is_noted = || {
            let secrets = home.secrets.lock();
            secrets["drover-agent-identity"]["data"]["acceptedWith"].is_string()
        };
        until("the note in the Secret", is_noted).await;
        drop(agent);
        until("the end", || !server.sessions.is_connected("c-1")).await;
        let records = server.registrar.0.lock();
        assert_eq!(records.keys.len(), 1);
        assert_eq!(records.admitted_with_token.len(), run);
    }
    assert_eq!(server.registrar.0.lock().admitted_with_token, [true, false, false]);
}

#[tokio::test]
async fn a_lost_session_is_back_at_once() {
    let (server, home) = (Server::start().await, HomeApi::start().await);
    server.registrar.add_token("t", "c-1");
    let _agent = Running::start(server.settings("t"), home.home());
    let mut state = server.sessions.watch_connected("c-1");
    state.wait_for(|state| state.is_connected()).await.unwrap();
    server.sessions.cut_all();
    state.wait_for(|state| !state.is_connected()).await.unwrap();
    let cut = Instant::now();
    state.wait_for(|state| state.is_connected()).await.unwrap();
    assert!(cut.elapsed() < 3 * SECOND, "{:?}", cut.elapsed());
}

#[tokio::test]
async fn a_server_that_lost_the_key_gets_the_token_again() {
    let (server, home) = (Server::start().await, HomeApi::start().await);
    server.registrar.add_token("t", "c-1");
    let agent = Running::start(server.settings("t"), home.home());
    until("the session", || server.sessions.is_connected("c-1")).await;
    let is_noted =
        || home.secrets.lock()["drover-agent-identity"]["data"]["acceptedWith"].is_string();
    until("the note in the Secret", is_noted).await;
    drop(agent);
    server.registrar.0.lock().keys.clear();
    server.registrar.add_token("t", "c-2");
    let _agent = Running::start(server.settings("t"), home.home());
    until("the new registration", || server.sessions.is_connected("c-2")).await;
    let reasons: Vec<_> =
        server.registrar.0.lock().refusals.iter().map(|refusal| refusal.reason).collect();
    assert_eq!(reasons, [RefusalReason::KeyUnknown]);
}

#[tokio::test]
async fn a_cluster_imported_under_another_name_gets_a_key_of_its_own() {
    let (server, home) = (Server::start().await, HomeApi::start().await);
    server.registrar.add_token("t", "c-1");
    let agent = Running::start(server.settings("t"), home.home());
    until("the session", || server.sessions.is_connected("c-1")).await;
    drop(agent);
    server.registrar.add_token("other", "c-2");
    let _agent = Running::start(server.settings("other"), home.home());
    until("the second cluster", || server.sessions.is_connected("c-2")).await;
    assert_eq!(server.registrar.0.lock().keys.len(), 2);
}

#[tokio::test]
async fn an_agent_whose_cluster_another_entry_manages_leaves_the_key_to_that_entrys_agent() {
    let (server, home) = (Server::start().await, HomeApi::start().await);
    server.registrar.add_token("t", "c-1");
    let first = Running::start(server.settings("t"), home.home());
    until("the session", || server.sessions.is_connected("c-1")).await;
    let said = server.registrar.0.lock().cluster_uids.clone();
    assert_eq!(said, [Some(KUBE_SYSTEM_UID.to_owned())]);
    let key = || home.secrets.lock()["drover-agent-identity"]["data"]["key"].clone();
    let before = key();

    server.registrar.add_token("other", "c-2");
    server.registrar.0.lock().refuse_with = Some(Refusal::already_managed());
    let log = tempfile::NamedTempFile::new().unwrap();
    let status = StatusReporter::at(log.path().to_owned());
    let _second = Running::start_with(server.settings("other"), home.home(), status);
    until("the reason in the second agent's pod", || {
        std::fs::read_to_string(log.path()).unwrap().contains("already manages this cluster")
    })
    .await;
    let error = ConnectError::Refused(Refusal::already_managed());
    assert_eq!(AttemptError::Connect(error).next(), Next::Late);
    assert_eq!(key(), before);
    assert!(server.sessions.is_connected("c-1") && !server.sessions.is_connected("c-2"));
    drop(first);
}

#[tokio::test]
async fn a_used_token_is_retried_slowly() {
    let (server, home) = (Server::start().await, HomeApi::start().await);
    server.registrar.add_token("t", "c-1");
    let first = Running::start(server.settings("t"), home.home());
    until("the session", || server.sessions.is_connected("c-1")).await;
    drop(first);
    let other_home = HomeApi::start().await;
    let _second = Running::start(server.settings("t"), other_home.home());
    until("the refusal", || !server.registrar.0.lock().refusals.is_empty()).await;
    let refusal = server.registrar.0.lock().refusals[0].clone();
    assert_eq!(refusal.reason, RefusalReason::TokenUsed);
    let error = AttemptError::Connect(ConnectError::Refused(refusal));
    assert_eq!(error.next(), Next::Late);
    assert!(error.to_string().contains("get a new import command"), "{error}");
}

#[tokio::test]
async fn a_wrong_checksum_is_reported_with_both_values_and_nothing_is_sent() {
    let server = Server::start().await;
    let wrong = "0".repeat(64);
    let settings = server.settings("t");
    let error = establish(&settings.server, Some(&wrong), &settings.proxies).await.unwrap_err();
    let right = settings.ca_checksum.unwrap();
    assert!(matches!(error, TrustError::Checksum { .. }) && error.is_final());
    let text = error.to_string();
    assert!(text.contains(&wrong) && text.contains(&right), "{text}");
    assert!(text.contains("get a new import command"), "{text}");
    assert_eq!(AttemptError::from(error).next(), Next::Late);
    assert!(server.registrar.0.lock().refusals.is_empty());
}

#[tokio::test]
async fn an_unreachable_server_is_retried_soon() {
    let settings = {
        let server = Server::start().await;
        server.settings("t")
    };
    let checksum = settings.ca_checksum.as_deref();
    let error = establish(&settings.server, checksum, &settings.proxies).await.unwrap_err();
    assert_eq!(AttemptError::from(error).next(), Next::Soon);
}

#[tokio::test]
async fn goodbye_ends_the_agent() {
    let (server, home) = (Server::start().await, HomeApi::start().await);
    server.registrar.add_token("t", "c-1");
    let goodbye = tokio_util::sync::CancellationToken::new();
    let agent = Agent::new(server.settings("t"), home.home(), unread_status()).run(goodbye.clone());
    let agent = tokio::spawn(agent);
    until("the session", || server.sessions.is_connected("c-1")).await;
    let address = home.address();
    let stream = server.sessions.dial("c-1", &address, SECOND).await.unwrap();
    goodbye.cancel();
    tokio::task::yield_now().await;
    assert!(!agent.is_finished(), "an open stream may finish");
    drop(stream);
    tokio::time::timeout(10 * SECOND, agent).await.unwrap().unwrap().unwrap();
}
