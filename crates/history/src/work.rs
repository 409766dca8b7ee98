//! Clients that ask everything a storage answers, on a few keys, so that they meet.
//!
//! What a client does follows from the seed and from what it finds; when it meets the others does
//! not, since they run at once.

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
/// On both sides of each other's prefix.
const KEYS: [&str; 7] = ["/r/a", "/r/a/1", "/r/a/2", "/r/a0", "/r/b/1", "/r/b/11", "/r/c"];
/// What is listed and watched.
pub(crate) const PREFIXES: [&str; 5] = [ROOT, "/r/a", "/r/a/", "/r/b/1", "/r/none/"];
/// How far behind the newest revision reads at a revision go.
pub(crate) const BACK_MAX: u64 = 30;
/// How far behind what was delivered compaction stays, at most.
const COMPACT_BACK_MAX: u64 = 15;

/// Pause after a question that failed.
const RECOVERY: Duration = Duration::from_millis(5);

/// What clients and watchers share.
pub struct Scene {
    pub storage: Arc<dyn Storage>,
    pub recorder: Arc<Recorder>,
    /// Delivered to the watch of everything. Compaction goes no further, so that this watch tells
    /// all commits.
    pub witnessed: AtomicU64,
}

impl Scene {
    /// Writes an answer down. One that is none gives the storage some time to recover.
    pub(crate) async fn tell(&self, number: u64, outcome: Outcome) {
        let failed = matches!(outcome, Outcome::Failed(_) | Outcome::Full(_) | Outcome::Unknown(_));
        self.recorder.tell(number, outcome);
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

/// One client.
pub struct Client {
    scene: Arc<Scene>,
    random: StdRng,
    name: String,
    writes: u64,
    /// The newest state that it found of each key, to guess wrong with.
    found: BTreeMap<&'static str, Revision>,
}

impl Client {
    /// `name` is like no other's in the whole history: values begin with it.
    pub fn new(scene: Arc<Scene>, name: String, seed: u64, number: u64) -> Self {
        let random = random(seed, number);
        Self { scene, random, name, writes: 0, found: BTreeMap::new() }
    }

    /// Does `steps` steps of one to six questions each.
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

    /// Of late, rarely one that is to come.
    fn some_revision(&mut self) -> Revision {
        let known = self.scene.recorder.known();
        match self.below(20) {
            0 => known + 1 + self.below(50),
            _ => known.saturating_sub(self.below(BACK_MAX)).max(1),
        }
    }

    async fn get(&mut self, key: &'static str, at: Option<Revision>) -> Option<Revision> {
        let recorder = &self.scene.recorder;
        let number = recorder.ask(Operation::Get { key: key.to_owned(), at });
        let answer = self.scene.storage.get(key, at).await;
        let found = answer.as_ref().ok().and_then(|(_, found)| found.as_ref());
        let modified = found.map(|found| found.mod_revision);
        self.found.extend(modified.map(|modified| (key, modified)));
        let outcome = match answer {
            Ok((revision, found)) => {
                Outcome::Found { revision, state: found.as_ref().map(State::from) }
            }
            Err(error) => error.into(),
        };
        self.scene.tell(number, outcome).await;
        modified
    }

    /// What was there instead, when it was refused.
    async fn put(
        &mut self,
        key: &'static str,
        expected: Option<Revision>,
    ) -> Option<Option<Revision>> {
        self.writes += 1;
        let text = format!("{}-{}", self.name, self.writes);
        let Scene { storage, recorder, .. } = &*self.scene;
        let operation = Operation::Put { key: key.to_owned(), value: text.clone(), expected };
        let number = recorder.ask(operation);
        let outcome = match storage.put(key, value(&text), expect(expected), None).await {
            Ok(state) => Outcome::Put(State::from(&state)),
            Err(error) => error.into(),
        };
        let instead = match &outcome {
            Outcome::Refused(found) => Some(found.as_ref().map(|found| found.modified)),
            _ => None,
        };
        self.scene.tell(number, outcome).await;
        instead
    }

    /// A write that does not care what is there: tried again until nobody is in between.
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
        let number = recorder.ask(Operation::Delete { key: key.to_owned(), expected });
        let outcome = match storage.delete(key, expected).await {
            Ok((revision, last)) => Outcome::Deleted { revision, last: State::from(&last) },
            Err(error) => error.into(),
        };
        self.scene.tell(number, outcome).await;
    }

    async fn list(&mut self, at: Option<Revision>) {
        let prefix = PREFIXES[self.below(PREFIXES.len() as u64) as usize];
        let limit = (self.below(3) == 0).then(|| self.below(4) as usize);
        list(&self.scene, prefix, at, limit).await;
    }

    async fn newest(&mut self) {
        let number = self.scene.recorder.ask(Operation::Newest);
        let answer = self.scene.storage.revision().await;
        self.scene.tell(number, answer.map_or_else(Outcome::from, Outcome::Newest)).await;
    }

    async fn compact(&mut self) {
        let back = self.below(COMPACT_BACK_MAX);
        let to = self.scene.witnessed.load(Ordering::Relaxed).saturating_sub(back);
        let number = self.scene.recorder.ask(Operation::Compact { to });
        let answer = self.scene.storage.compact(to).await;
        self.scene.tell(number, answer.map_or_else(Outcome::from, |()| Outcome::Compacted)).await;
    }
}

/// Asks for a list. Answers its revision.
pub(crate) async fn list(
    scene: &Scene,
    prefix: &str,
    at: Option<Revision>,
    limit: Option<usize>,
) -> Option<Revision> {
    let operation = Operation::List { prefix: prefix.to_owned(), at, limit };
    let number = scene.recorder.ask(operation);
    let answer = scene.storage.range(RangeRequest { at, limit, ..RangeRequest::prefix(prefix) });
    let answer = answer.await;
    let revision = answer.as_ref().ok().map(|response| response.revision);
    let outcome = match answer {
        Ok(response) => Outcome::from(&response),
        Err(error) => error.into(),
    };
    scene.tell(number, outcome).await;
    revision
}
