//! What the agent reports to the kubelet, and when it ends so that the kubelet reports to users.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tokio_util::sync::CancellationToken;

use super::wait::until;
use super::world::{HomeApi, Running, Server};
use crate::run::{Agent, AttemptError};
use crate::status::{StatusReporter, query_trouble_at};

/// A termination message and a socket, as a container has them.
struct Container {
    _folder: tempfile::TempDir,
    log: PathBuf,
    socket: String,
}

impl Container {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("termination-log");
        std::fs::write(&log, "").unwrap();
        let socket = format!("drover-agent-test-{}-{number}", std::process::id());
        Self { _folder: folder, log, socket }
    }

    fn reporter(&self) -> StatusReporter {
        let reporter = StatusReporter::at(self.log.clone());
        reporter.serve_at(self.socket.as_bytes()).unwrap();
        reporter
    }

    async fn trouble(&self) -> Option<String> {
        let socket = self.socket.clone();
        // The response comes from this test's own thread.
        tokio::task::spawn_blocking(move || query_trouble_at(socket.as_bytes()).unwrap())
            .await
            .unwrap()
    }
}

fn message(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap()
}

#[tokio::test]
async fn trouble_is_reported_while_it_lasts() {
    let (server, home, container) =
        (Server::start().await, HomeApi::start().await, Container::new());
    server.registrar.add_token("t", "c-1");
    let reporter = container.reporter();
    assert!(container.trouble().await.unwrap().contains("for the first time"));
    let _agent = Running::start_with(server.settings("t"), home.home(), reporter);
    until("the session", || server.sessions.is_connected("c-1")).await;
    let mut trouble = container.trouble().await;
    while trouble.is_some() {
        trouble = container.trouble().await;
    }
    assert_eq!(message(&container.log), "");

    let (url, sessions) = (server.url(), server.sessions.clone());
    drop(server);
    sessions.cut_all();
    until("the message", || message(&container.log).contains("reach the server")).await;
    let text = message(&container.log);
    let address = url.trim_start_matches("https://");
    assert!(text.contains(address) && text.contains("network policies"), "{text}");
    assert_eq!(container.trouble().await, Some(text));
}

#[tokio::test]
async fn an_agent_that_no_server_ever_accepted_ends_when_only_a_user_can_help() {
    let (server, home, container) =
        (Server::start().await, HomeApi::start().await, Container::new());
    let refused = Agent::new(server.settings("wrong"), home.home(), container.reporter());
    let error = refused.run(CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error, AttemptError::Connect(_)), "{error}");
    let text = message(&container.log);
    assert!(text.contains("apply the cluster's current import manifest"), "{text}");

    let mut settings = server.settings("t");
    settings.ca_checksum = Some("0".repeat(64));
    let error = Agent::new(settings, home.home(), StatusReporter::at(container.log.clone()))
        .run(CancellationToken::new())
        .await
        .unwrap_err();
    assert!(matches!(error, AttemptError::Trust(_)), "{error}");
    let text = message(&container.log);
    assert!(text.contains("checksum") && text.contains("get a new import command"), "{text}");
}

#[tokio::test]
async fn an_agent_that_was_accepted_before_retries_and_reports_why() {
    let (server, home, container) =
        (Server::start().await, HomeApi::start().await, Container::new());
    server.registrar.add_token("t", "c-1");
    let first = Running::start(server.settings("t"), home.home());
    let is_noted =
        || home.secrets.lock()["drover-agent-identity"]["data"]["acceptedWith"].is_string();
    until("the session", || server.sessions.is_connected("c-1")).await;
    until("the note in the Secret", is_noted).await;
    drop(first);
    server.registrar.0.lock().keys.clear();
    server.registrar.0.lock().tokens.clear();
    let again = Running::start_with(server.settings("t"), home.home(), container.reporter());
    until("the reason", || message(&container.log).contains("not known to this server")).await;
    assert!(!again.has_ended());
}

#[tokio::test]
async fn a_right_that_the_agent_lacks_in_its_own_cluster_is_reported() {
    let (server, home, container) =
        (Server::start().await, HomeApi::start().await, Container::new());
    std::fs::write(home.directory.path().join("token"), "of nobody").unwrap();
    let agent = Running::start_with(server.settings("t"), home.home(), container.reporter());
    until("the reason", || message(&container.log).contains("apply it again")).await;
    let text = message(&container.log);
    assert!(text.contains("Secret \"drover-agent-identity\"") && text.contains("401"), "{text}");
    // Rights need a moment to take effect.
    assert!(!agent.has_ended());
}

#[test]
fn a_message_is_truncated_to_the_limit_of_kubelets() {
    let container = Container::new();
    StatusReporter::at(container.log.clone()).report_trouble(&"ä".repeat(5000));
    let text = message(&container.log);
    assert_eq!(text.len(), 4096);
}
