//! What the agent tells the kubelet, and when it ends so that the kubelet tells people.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tokio_util::sync::CancellationToken;

use super::wait::until;
use super::world::{HomeApi, Running, Server};
use crate::run::{Agent, AttemptError};
use crate::standing::{Standing, ask_at};

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

    fn standing(&self) -> Standing {
        let standing = Standing::at(self.log.clone());
        standing.answer_at(self.socket.as_bytes()).unwrap();
        standing
    }

    async fn asked(&self) -> Option<String> {
        let socket = self.socket.clone();
        // The answer comes from this test's own thread.
        tokio::task::spawn_blocking(move || ask_at(socket.as_bytes()).unwrap()).await.unwrap()
    }
}

fn message(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap()
}

#[tokio::test]
async fn trouble_is_told_while_it_lasts() {
    let (server, home, container) =
        (Server::start().await, HomeApi::start().await, Container::new());
    server.registrar.add_token("t", "c-1");
    let standing = container.standing();
    assert!(container.asked().await.unwrap().contains("for the first time"));
    let _agent = Running::start_with(server.settings("t"), home.home(), standing);
    until("the session", || server.sessions.is_connected("c-1")).await;
    let mut asked = container.asked().await;
    while asked.is_some() {
        asked = container.asked().await;
    }
    assert_eq!(message(&container.log), "");

    let (url, sessions) = (server.url(), server.sessions.clone());
    drop(server);
    sessions.cut_all();
    until("the message", || message(&container.log).contains("reach the server")).await;
    let told = message(&container.log);
    let address = url.trim_start_matches("https://");
    assert!(told.contains(address) && told.contains("network policies"), "{told}");
    assert_eq!(container.asked().await, Some(told));
}

#[tokio::test]
async fn an_agent_that_no_server_ever_accepted_ends_when_only_a_person_can_help() {
    let (server, home, container) =
        (Server::start().await, HomeApi::start().await, Container::new());
    let refused = Agent::new(server.settings("wrong"), home.home(), container.standing());
    let error = refused.run(CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error, AttemptError::Connect(_)), "{error}");
    let told = message(&container.log);
    assert!(told.contains("apply the cluster's current import manifest"), "{told}");

    let mut settings = server.settings("t");
    settings.ca_checksum = Some("0".repeat(64));
    let error = Agent::new(settings, home.home(), Standing::at(container.log.clone()))
        .run(CancellationToken::new())
        .await
        .unwrap_err();
    assert!(matches!(error, AttemptError::Trust(_)), "{error}");
    let told = message(&container.log);
    assert!(told.contains("checksum") && told.contains("get a new import command"), "{told}");
}

#[tokio::test]
async fn an_agent_that_was_accepted_before_tries_on_and_says_why() {
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
    let again = Running::start_with(server.settings("t"), home.home(), container.standing());
    until("the reason", || message(&container.log).contains("not known to this server")).await;
    assert!(!again.has_ended());
}

#[tokio::test]
async fn a_right_that_the_agent_lacks_in_its_own_cluster_is_named() {
    let (server, home, container) =
        (Server::start().await, HomeApi::start().await, Container::new());
    std::fs::write(home.directory.path().join("token"), "of nobody").unwrap();
    let agent = Running::start_with(server.settings("t"), home.home(), container.standing());
    until("the reason", || message(&container.log).contains("apply it again")).await;
    let told = message(&container.log);
    assert!(told.contains("Secret \"drover-agent-identity\"") && told.contains("401"), "{told}");
    // Rights need a moment until they hold everywhere.
    assert!(!agent.has_ended());
}

#[test]
fn a_message_is_cut_to_what_kubelets_read() {
    let container = Container::new();
    Standing::at(container.log.clone()).troubled(&"ä".repeat(5000));
    let told = message(&container.log);
    assert_eq!(told.len(), 4096);
}
