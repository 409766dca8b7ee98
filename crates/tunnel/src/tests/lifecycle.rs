//! Sessions begin, are replaced, and end.

use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use super::harness::{SECOND, World, echo};
use super::wait::{pass, until};
use crate::DialError;
use crate::limits::{PEER_SILENCE_MAX, SESSIONS_PER_CLUSTER_MAX};
use crate::serve::ServeError;

#[tokio::test(start_paused = true)]
async fn a_peer_that_vanishes_is_noticed_in_time_on_both_sides() {
    let world = World::new();
    let (_agent, mut running) = world.join("c-1").await;
    let mut state = world.sessions.watch_connected("c-1");
    assert!(state.borrow_and_update().is_connected());
    let mut stream = world.dial("c-1", "flood:1").await.unwrap();
    running.sever();
    let severed = Instant::now();
    state.changed().await.unwrap();
    assert!(!state.borrow().is_connected());
    assert!(severed.elapsed() <= PEER_SILENCE_MAX + SECOND, "{:?}", severed.elapsed());
    assert_eq!(world.dial("c-1", "echo:1").await.err(), Some(DialError::NotConnected));
    let mut rest = Vec::new();
    assert!(stream.read_to_end(&mut rest).await.is_err(), "open streams end with an error");
    let ended = (&mut running.task).await.unwrap();
    assert!(matches!(ended, Err(ServeError::Silent)), "{ended:?}");
    assert!(severed.elapsed() <= PEER_SILENCE_MAX + SECOND);
    until("the event", || world.registrar.events().len() == 2).await;
    assert_eq!(world.registrar.events()[1], "c-1 disconnected: the agent fell silent");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_session_stays_up_for_a_day() {
    let world = World::new();
    let (_agent, running) = world.join("c-1").await;
    let mut stream = world.dial("c-1", "echo:1").await.unwrap();
    tokio::time::advance(3600 * SECOND).await;
    for _ in 0..100 {
        pass(30 * SECOND).await;
    }
    assert!(!running.task.is_finished());
    assert_eq!(echo(&mut stream, b"hello").await, b"hello");
}

#[tokio::test(start_paused = true)]
async fn a_new_session_replaces_the_old_one_and_cuts_no_stream() {
    let world = World::new();
    let (agent, mut old) = world.join("c-1").await;
    let mut stream = world.dial("c-1", "echo:1").await.unwrap();
    let _new = world.connect(&agent).await;
    assert_eq!(echo(&mut stream, b"on the old one").await, b"on the old one");
    let mut other = world.dial("c-1", "echo:1").await.unwrap();
    assert_eq!(echo(&mut other, b"on the new one").await, b"on the new one");
    let health = world.sessions.health("c-1");
    assert!(health[0].is_retired && !health[1].is_retired);
    assert_eq!((health[0].open_streams, health[1].open_streams), (1, 1));
    drop(stream);
    until("the old session to end", || world.sessions.health("c-1").len() == 1).await;
    let _ = (&mut old.task).await.unwrap();
    assert_eq!(echo(&mut other, b"still").await, b"still");
}

#[tokio::test(start_paused = true)]
async fn two_replicas_of_an_agent_both_serve_and_one_may_die() {
    let world = World::new();
    let (mut agent, first) = world.join("c-1").await;
    agent.instance = "c-1-2".to_owned();
    let second = world.connect(&agent).await;
    assert_eq!(world.sessions.watch_connected("c-1").borrow().sessions, 2);
    // The newest is preferred; when it is silent, the other one is used long before it counts as
    // dead.
    second.sever();
    pass(crate::limits::PEER_SILENCE_SUSPECT + SECOND).await;
    assert_eq!(world.sessions.health("c-1").len(), 2);
    let mut stream = world.dial("c-1", "echo:1").await.unwrap();
    assert_eq!(echo(&mut stream, b"healthy").await, b"healthy");
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_says_goodbye_finishes_its_streams() {
    let world = World::new();
    let (_agent, mut running) = world.join("c-1").await;
    let mut stream = world.dial("c-1", "echo:1").await.unwrap();
    running.goodbye.cancel();
    let refused = async {
        loop {
            match world.dial("c-1", "echo:1").await {
                Ok(_) => tokio::task::yield_now().await,
                Err(error) => return error,
            }
        }
    };
    let refused = tokio::time::timeout(10 * SECOND, refused).await.unwrap();
    assert!(matches!(refused, DialError::NotConnected | DialError::Lost), "{refused:?}");
    assert_eq!(echo(&mut stream, b"the last word").await, b"the last word");
    drop(stream);
    assert!((&mut running.task).await.unwrap().is_ok());
    until("the session to end", || world.sessions.health("c-1").is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn cutting_a_cluster_ends_its_streams_and_the_watch() {
    let world = World::new();
    let (_agent, mut running) = world.join("c-1").await;
    let mut state = world.sessions.watch_connected("c-1");
    state.mark_unchanged();
    let mut stream = world.dial("c-1", "flood:1").await.unwrap();
    world.sessions.cut("c-1");
    let mut rest = Vec::new();
    assert!(stream.read_to_end(&mut rest).await.is_err());
    assert!(!state.wait_for(|state| !state.is_connected()).await.unwrap().is_connected());
    assert!(state.changed().await.is_err(), "the cluster is forgotten");
    let _ = (&mut running.task).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn sessions_of_one_cluster_have_a_limit() {
    let world = World::new();
    let (mut agent, first) = world.join("c-1").await;
    let mut more = vec![first];
    for number in 0..SESSIONS_PER_CLUSTER_MAX {
        agent.instance = format!("replica-{number}");
        let (established, _) = world.open(&agent).await.unwrap();
        more.push({
            let goodbye = tokio_util::sync::CancellationToken::new();
            let running = world.run(&agent, established, goodbye);
            until("the session", || {
                let health = world.sessions.health("c-1");
                health.last().is_some_and(|last| last.info.instance == agent.instance)
            })
            .await;
            running
        });
    }
    assert_eq!(world.sessions.health("c-1").len(), SESSIONS_PER_CLUSTER_MAX);
    let _ = (&mut more[0].task).await.unwrap();
}
