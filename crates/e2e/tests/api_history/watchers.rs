//! Watchers: one of everything, which shows all commits, and some that watch only for a while.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rand::RngExt;
use serde_json::Value;
use tokio::sync::watch::Receiver;

use crate::clients::{self, Scene};
use crate::record::{Entry, Event, Object, Operation, Scope, version};
use crate::wire::{Line, Watching, is_end_of_state};

/// Most events that a watcher receives before it closes its watch.
const EVENTS_MAX: u64 = 12;
/// Shortest time for which a server sends a bookmark before the end: two seconds before.
const WITH_BOOKMARK_SECONDS: u64 = 3;

/// Watches everything after `after`, until everything up to the version in `until` was delivered.
pub async fn witness(
    scene: Arc<Scene>,
    mut after: u64,
    mut until: Receiver<Option<u64>>,
) -> Result<()> {
    let scope = Scope::ALL;
    loop {
        let operation = Operation::Watch { scope: scope.clone(), after, witness: true };
        let number = scene.record_invocation(operation);
        let path = format!("{}&watch=true&resourceVersion={after}", clients::path_of_scope(&scope));
        let mut watching = scene.wire.watch(&path).await?;
        loop {
            let reached = |until: &Option<u64>| until.is_some_and(|until| after >= until);
            if reached(&until.borrow_and_update()) {
                return Ok(());
            }
            let event = tokio::select! {
                event = watching.next() => event?,
                _ = until.changed() => continue,
            };
            let Some(event) = event else { break };
            let event = read(&scene, &event).await?;
            after = event.version().unwrap_or(after);
            let is_expired = matches!(event, Event::Expired { .. });
            scene.write(Entry::Delivered(number, event));
            if is_expired {
                return Ok(());
            }
        }
    }
}

/// Watches from varying versions, each for a while.
pub async fn wander(scene: Arc<Scene>, number: u64) -> Result<()> {
    let mut random = scene.random(number);
    loop {
        let scope = clients::some_scope(&mut random);
        let mut path = format!("{}&watch=true", clients::path_of_scope(&scope));
        let operation = if random.random_bool(0.3) {
            path += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
            Operation::WatchList { scope }
        } else {
            let after = scene.some_version(&mut random);
            path += &format!("&resourceVersion={after}&allowWatchBookmarks=true");
            Operation::Watch { scope, after, witness: false }
        };
        if random.random_bool(0.3) {
            path += &format!("&timeoutSeconds={WITH_BOOKMARK_SECONDS}");
        }
        let number = scene.record_invocation(operation);
        let mut watching = scene.wire.watch(&path).await?;
        record_events(&scene, number, &mut watching, random.random_range(1..EVENTS_MAX)).await?;
    }
}

async fn record_events(
    scene: &Scene,
    number: usize,
    watching: &mut Watching<'_>,
    events: u64,
) -> Result<()> {
    for _ in 0..events {
        let Some(event) = watching.next().await? else { break };
        let event = read(scene, &event).await?;
        let is_expired = matches!(event, Event::Expired { .. });
        scene.write(Entry::Delivered(number, event));
        if is_expired {
            break;
        }
    }
    Ok(())
}

async fn read(scene: &Scene, event: &Value) -> Result<Event> {
    let object = &event["object"];
    Ok(match event["type"].as_str().context("an event has a type")? {
        "ADDED" => Event::Added(Object::read(object)?),
        "MODIFIED" => Event::Modified(Object::read(object)?),
        "DELETED" => Event::Deleted(Object::read(object)?),
        "BOOKMARK" => {
            Event::Bookmark { version: version(object)?, is_end_of_state: is_end_of_state(event) }
        }
        "ERROR" if object["code"] == 410 => {
            Event::Expired { newest: clients::newest(scene, &mut Line::default()).await }
        }
        _ => bail!("{event}"),
    })
}
