//! Watchers: one of everything, which tells all commits, and some that come and go.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::StreamExt as _;
use rand::RngExt as _;
use storage::{Revision, WatchStream};
use tokio::sync::watch::Receiver;

use crate::record::{Item, Operation, Outcome};
use crate::work::{self, BACK_MAX, PREFIXES, ROOT, Scene};

/// Items that a watcher takes before it goes away, at most.
const ITEMS_MAX: u64 = 40;

/// Where a watch stands.
struct Watch<'s> {
    scene: &'s Scene,
    number: u64,
    stream: WatchStream,
    /// Everything up to this was delivered.
    complete: Revision,
}

impl<'s> Watch<'s> {
    /// Opens a watch; without one, whether the revision is gone.
    async fn open(scene: &'s Scene, prefix: &str, after: Revision) -> Result<Self, bool> {
        let number = scene.recorder.ask(Operation::Watch { prefix: prefix.to_owned(), after });
        match scene.storage.watch(prefix, after).await {
            Ok(stream) => {
                scene.recorder.tell(number, Outcome::Watching);
                Ok(Self { scene, number, stream, complete: after })
            }
            Err(error) => {
                let outcome = Outcome::from(error);
                let gone = matches!(outcome, Outcome::Gone { .. });
                scene.tell(number, outcome).await;
                Err(gone)
            }
        }
    }

    /// Takes the next item. Answers false when the watch ended.
    async fn next(&mut self) -> bool {
        let Some(item) = self.stream.next().await else { return false };
        let item = Item::from(&item);
        let complete = match &item {
            Item::Changes(changes) => changes.last().map(|change| change.revision),
            Item::Progress(revision) => Some(*revision),
            Item::Ended(_) => None,
        };
        let ended = matches!(item, Item::Ended(_));
        if self.scene.recorder.deliver(self.number, item) {
            self.complete = self.complete.max(complete.unwrap_or(0));
        }
        !ended
    }
}

/// Watches everything from `after` on until `until` tells a revision and it was delivered.
pub async fn witness(scene: Arc<Scene>, after: Revision, mut until: Receiver<Option<Revision>>) {
    let mut complete = after;
    loop {
        let Ok(mut watch) = Watch::open(&scene, ROOT, complete).await else {
            // No leader, or no connection: it comes back.
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
                goes_on = watch.next() => if !goes_on { break },
                _ = until.changed() => {}
            }
        }
    }
}

/// Watches from here and there, a while each, until `until` tells a revision and the watch that is
/// open by then was delivered it. One that comes too late lists and goes on from there.
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
            Err(gone) => {
                // Without an answer the next one begins at a guess again.
                let listed = if gone { work::list(&scene, prefix, None, None).await } else { None };
                after = listed.unwrap_or_else(|| scene.recorder.known());
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
                goes_on = watch.next() => if !goes_on { break },
                _ = until.changed() => {}
            }
            items = items.saturating_sub(1);
        }
        after = match random.random_range(0..3) {
            0 => watch.complete,
            1 => scene.recorder.known(),
            _ => scene.recorder.known().saturating_sub(random.random_range(0..BACK_MAX)),
        };
    }
}
