//! Watchers: one of everything, which shows all commits, and some that watch only for a while.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::StreamExt as _;
use rand::RngExt as _;
use storage::{Revision, WatchStream};
use tokio::sync::watch::Receiver;

use crate::record::{Item, Operation, Outcome};
use crate::work::{self, BACK_MAX, PREFIXES, ROOT, Scene};

/// Most items that a watcher receives before it closes its watch.
const ITEMS_MAX: u64 = 40;

/// An open watch and its progress.
struct Watch<'s> {
    scene: &'s Scene,
    number: u64,
    stream: WatchStream,
    /// Everything up to this revision was delivered.
    complete: Revision,
}

impl<'s> Watch<'s> {
    /// Opens a watch. On failure, the error is whether the revision is compacted.
    async fn open(scene: &'s Scene, prefix: &str, after: Revision) -> Result<Self, bool> {
        let number =
            scene.recorder.record_invocation(Operation::Watch { prefix: prefix.to_owned(), after });
        match scene.storage.watch(prefix, after).await {
            Ok(stream) => {
                scene.recorder.record_response(number, Outcome::Watching);
                Ok(Self { scene, number, stream, complete: after })
            }
            Err(error) => {
                let outcome = Outcome::from(error);
                let is_compacted = matches!(outcome, Outcome::TooOld { .. });
                scene.record_response(number, outcome).await;
                Err(is_compacted)
            }
        }
    }

    /// Receives the next item. Returns false when the watch ended.
    async fn next(&mut self) -> bool {
        let Some(item) = self.stream.next().await else { return false };
        let item = Item::from(&item);
        let complete = match &item {
            Item::Changes(changes) => changes.last().map(|change| change.revision),
            Item::Progress(revision) => Some(*revision),
            Item::Ended(_) => None,
        };
        let ended = matches!(item, Item::Ended(_));
        if self.scene.recorder.record_delivery(self.number, item) {
            self.complete = self.complete.max(complete.unwrap_or(0));
        }
        !ended
    }
}

/// Watches everything from `after` on, until `until` has a revision and it was delivered.
pub async fn witness(scene: Arc<Scene>, after: Revision, mut until: Receiver<Option<Revision>>) {
    let mut complete = after;
    loop {
        let Ok(mut watch) = Watch::open(&scene, ROOT, complete).await else {
            // No leader, or no connection: this is temporary.
            tokio::task::yield_now().await;
            continue;
        };
        loop {
            scene.witnessed.fetch_max(watch.complete, Ordering::Relaxed);
            complete = watch.complete;
            if until.borrow_and_update().is_some_and(|until| complete >= until) {
                return;
            }
            tokio::select! {
                is_open = watch.next() => if !is_open { break },
                _ = until.changed() => {}
            }
        }
    }
}

/// Watches from varying revisions, each for a while, until `until` has a revision and the watch
/// that is open by then has delivered it. When the revision is compacted, it lists and continues
/// from the list's revision.
pub async fn wander(
    scene: Arc<Scene>,
    seed: u64,
    number: u64,
    mut until: Receiver<Option<Revision>>,
) {
    let mut random = work::random(seed, number);
    let mut after = 0;
    loop {
        let prefix = PREFIXES[random.random_range(0..PREFIXES.len())];
        let mut watch = match Watch::open(&scene, prefix, after).await {
            Ok(watch) => watch,
            Err(is_compacted) => {
                // Without a list the next watch begins at a guess again.
                let listed =
                    if is_compacted { work::list(&scene, prefix, None, None).await } else { None };
                after = listed.unwrap_or_else(|| scene.recorder.newest_reported());
                tokio::task::yield_now().await;
                continue;
            }
        };
        let mut items = random.random_range(1..ITEMS_MAX);
        loop {
            match *until.borrow_and_update() {
                Some(until) if watch.complete >= until => return,
                None if items == 0 => break,
                _ => {}
            }
            tokio::select! {
                is_open = watch.next() => if !is_open { break },
                _ = until.changed() => {}
            }
            items = items.saturating_sub(1);
        }
        after = match random.random_range(0..3) {
            0 => watch.complete,
            1 => scene.recorder.newest_reported(),
            _ => scene.recorder.newest_reported().saturating_sub(random.random_range(0..BACK_MAX)),
        };
    }
}
