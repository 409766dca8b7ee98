//! Clients that call every operation of a storage, on a few keys, so that they conflict.
//!
//! What a client does follows from the seed and from what it finds. How the calls of several
//! clients interleave does not, since they run concurrently.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use storage::{RangeRequest, Revision, Storage};

use crate::record::{Operation, Outcome, Recorder, State, expect, value};

/// Every key begins with this.
pub const ROOT: &str = "/r/";
/// They sort on both sides of each other's prefix.
const KEYS: [&str; 7] = ["/r/a", "/r/a/1", "/r/a/2", "/r/a0", "/r/b/1", "/r/b/11", "/r/c"];
/// The prefixes that are listed and watched.
pub(crate) const PREFIXES: [&str; 5] = [ROOT, "/r/a", "/r/a/", "/r/b/1", "/r/none/"];
/// How far reads at a revision are behind the newest one, at most, in revisions.
pub(crate) const BACK_MAX: u64 = 30;
/// How far compaction stays behind the delivered revision, at most, in revisions.
const COMPACT_BACK_MAX: u64 = 15;

/// Pause after a call that failed.
const RECOVERY: Duration = Duration::from_millis(5);

/// The state that clients and watchers share.
pub struct Scene {
    pub storage: Arc<dyn Storage>,
    pub recorder: Arc<Recorder>,
    /// The revision that the watch of everything has delivered. Compaction stays below it, so
    /// that this watch shows all commits.
    pub witnessed: AtomicU64,
}

impl Scene {
    /// Records a response. After a failure it waits, so that the storage can recover.
    pub(crate) async fn record_response(&self, number: u64, outcome: Outcome) {
        let failed = matches!(outcome, Outcome::Failed(_) | Outcome::Full(_) | Outcome::Unknown(_));
        self.recorder.record_response(number, outcome);
        if failed {
            tokio::time::sleep(RECOVERY).await;
        }
    }
}

/// A random source for one part of a run.
pub(crate) fn random(seed: u64, part: u64) -> StdRng {
    // The parts of one seed must differ from the same parts of its neighbours.
    StdRng::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(part))
}

/// One client of the storage.
pub struct Client {
    scene: Arc<Scene>,
    random: StdRng,
    name: String,
    writes: u64,
    /// The newest revision that it found of each key; stale ones make wrong expectations.
    found: BTreeMap<&'static str, Revision>,
}

impl Client {
    /// `name` is unique in the whole history: values begin with it.
    pub fn new(scene: Arc<Scene>, name: String, seed: u64, number: u64) -> Self {
        let random = random(seed, number);
        Self { scene, random, name, writes: 0, found: BTreeMap::new() }
    }

    /// Does `steps` steps of one to six calls each.
    pub async fn work(mut self, steps: usize) {
        for _ in 0..steps {
            self.step().await;
            tokio::task::yield_now().await;
        }
    }

    async fn step(&mut self) {
        let key = KEYS[self.below(KEYS.len() as u64) as usize];
        match self.below(100) {
            0..=39 => {
                let found = self.get(key, None).await;
                self.put(key, found).await;
            }
            40..=47 => {
                self.put(key, None).await;
            }
            48..=54 => {
                let guess = self.found.get(key).copied().unwrap_or(1);
                self.put(key, Some(guess)).await;
            }
            55..=61 => self.put_anyway(key).await,
            62..=73 => {
                if let Some(found) = self.get(key, None).await {
                    self.delete(key, found).await;
                }
            }
            74..=75 => {
                let guess = self.found.get(key).copied().unwrap_or(1);
                self.delete(key, guess).await;
            }
            76..=82 => {
                let at = self.some_revision();
                self.get(key, Some(at)).await;
            }
            83..=88 => self.list(None).await,
            89..=94 => {
                let at = self.some_revision();
                self.list(Some(at)).await;
            }
            95..=96 => self.newest().await,
            _ => self.compact().await,
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.random_range(0..limit)
    }

    /// A recent revision, rarely a future one.
    fn some_revision(&mut self) -> Revision {
        let known = self.scene.recorder.newest_reported();
        match self.below(20) {
            0 => known + 1 + self.below(50),
            _ => known.saturating_sub(self.below(BACK_MAX)).max(1),
        }
    }

    async fn get(&mut self, key: &'static str, at: Option<Revision>) -> Option<Revision> {
        let recorder = &self.scene.recorder;
        let number = recorder.record_invocation(Operation::Get { key: key.to_owned(), at });
        let response = self.scene.storage.get(key, at).await;
        let found = response.as_ref().ok().and_then(|(_, found)| found.as_ref());
        let modified = found.map(|found| found.mod_revision);
        self.found.extend(modified.map(|modified| (key, modified)));
        let outcome = match response {
            Ok((revision, found)) => {
                Outcome::Found { revision, state: found.as_ref().map(State::from) }
            }
            Err(error) => error.into(),
        };
        self.scene.record_response(number, outcome).await;
        modified
    }

    /// Returns the revision that was found instead, when the write was refused.
    async fn put(
        &mut self,
        key: &'static str,
        expected: Option<Revision>,
    ) -> Option<Option<Revision>> {
        self.writes += 1;
        let text = format!("{}-{}", self.name, self.writes);
        let Scene { storage, recorder, .. } = &*self.scene;
        let operation = Operation::Put { key: key.to_owned(), value: text.clone(), expected };
        let number = recorder.record_invocation(operation);
        let outcome = match storage.put(key, value(&text), expect(expected), None).await {
            Ok(state) => Outcome::Put(State::from(&state)),
            Err(error) => error.into(),
        };
        let instead = match &outcome {
            Outcome::Refused(found) => Some(found.as_ref().map(|found| found.modified)),
            _ => None,
        };
        self.scene.record_response(number, outcome).await;
        instead
    }

    /// Writes whatever the current state is: retries while other writes come in between.
    async fn put_anyway(&mut self, key: &'static str) {
        let mut expected = self.get(key, None).await;
        for _ in 0..4 {
            match self.put(key, expected).await {
                None => return,
                Some(found) => expected = found,
            }
        }
    }

    async fn delete(&mut self, key: &'static str, expected: Revision) {
        let Scene { storage, recorder, .. } = &*self.scene;
        let number =
            recorder.record_invocation(Operation::Delete { key: key.to_owned(), expected });
        let outcome = match storage.delete(key, expected).await {
            Ok((revision, last)) => Outcome::Deleted { revision, last: State::from(&last) },
            Err(error) => error.into(),
        };
        self.scene.record_response(number, outcome).await;
    }

    async fn list(&mut self, at: Option<Revision>) {
        let prefix = PREFIXES[self.below(PREFIXES.len() as u64) as usize];
        let limit = (self.below(3) == 0).then(|| self.below(4) as usize);
        list(&self.scene, prefix, at, limit).await;
    }

    async fn newest(&mut self) {
        let number = self.scene.recorder.record_invocation(Operation::Newest);
        let response = self.scene.storage.revision().await;
        self.scene
            .record_response(number, response.map_or_else(Outcome::from, Outcome::Newest))
            .await;
    }

    async fn compact(&mut self) {
        let back = self.below(COMPACT_BACK_MAX);
        let to = self.scene.witnessed.load(Ordering::Relaxed).saturating_sub(back);
        let number = self.scene.recorder.record_invocation(Operation::Compact { to });
        let response = self.scene.storage.compact(to).await;
        self.scene
            .record_response(number, response.map_or_else(Outcome::from, |()| Outcome::Compacted))
            .await;
    }
}

/// Requests a list. Returns its revision.
pub(crate) async fn list(
    scene: &Scene,
    prefix: &str,
    at: Option<Revision>,
    limit: Option<usize>,
) -> Option<Revision> {
    let operation = Operation::List { prefix: prefix.to_owned(), at, limit };
    let number = scene.recorder.record_invocation(operation);
    let response = scene.storage.range(RangeRequest { at, limit, ..RangeRequest::prefix(prefix) });
    let response = response.await;
    let revision = response.as_ref().ok().map(|list| list.revision);
    let outcome = match response {
        Ok(list) => Outcome::from(&list),
        Err(error) => error.into(),
    };
    scene.record_response(number, outcome).await;
    revision
}
