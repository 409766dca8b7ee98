//! Random work against a model: every state at every revision, every watch, every response.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;

use super::{TestedStorage, list, newest, watch};
use crate::{Event, Expect, KeyValue, RangeRequest, Revision, StorageError};

/// Keys of the random work: few, so that steps collide, and on both sides of each other's prefix.
const KEYS: [&str; 8] = ["/m/a", "/m/a/1", "/m/a/2", "/m/a0", "/m/b/1", "/m/b/2", "/m/b/22", "/n"];
const PREFIXES: [&str; 5] = ["/", "/m/", "/m/a", "/m/b/2", "/none"];

/// What a write expects, relative to the current state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guess {
    /// The current state: the write succeeds.
    Right,
    /// That the key is absent.
    Absent,
    /// Some revision that is not the key's.
    Wrong,
}

/// One step of the random work. Numbers are indexes modulo the number of choices.
#[derive(Clone, Copy, Debug)]
pub enum ModelStep {
    Put {
        key: usize,
        value: u8,
        guess: Guess,
    },
    Delete {
        key: usize,
        guess: Guess,
    },
    /// Compacts to this many revisions before the newest.
    Compact {
        back: u64,
    },
}

/// A multi-version map in memory with the behaviour of a storage.
#[derive(Default)]
struct Model {
    /// The revision before the first step.
    base: Revision,
    compacted: Revision,
    revision: Revision,
    states: BTreeMap<Revision, BTreeMap<Arc<str>, KeyValue>>,
    events: Vec<Event>,
}

impl Model {
    fn new(base: Revision) -> Self {
        let states = BTreeMap::from([(base, BTreeMap::new())]);
        Self { base, compacted: base, revision: base, states, events: Vec::new() }
    }

    fn state(&self, at: Revision) -> &BTreeMap<Arc<str>, KeyValue> {
        self.states.range(..=at).next_back().expect("the base has a state").1
    }

    fn commit(&mut self, event: Event) {
        let mut state = self.state(self.revision).clone();
        assert!(event.revision > self.revision, "revisions rise");
        assert_eq!(event.previous.as_ref(), state.get(&event.key), "at {}", event.revision);
        match &event.current {
            Some(current) => {
                let created = event.previous.as_ref().map_or(event.revision, |p| p.create_revision);
                assert_eq!(current.create_revision, created);
                assert_eq!(current.mod_revision, event.revision);
                state.insert(Arc::clone(&event.key), current.clone());
            }
            None => drop(state.remove(&event.key)),
        }
        self.revision = event.revision;
        self.states.insert(event.revision, state);
        self.events.push(event);
    }

    fn list(&self, prefix: &str, at: Revision) -> Vec<KeyValue> {
        let state = self.state(at).values();
        state.filter(|item| item.key.starts_with(prefix)).cloned().collect()
    }
}

/// Runs `steps` one after another on `storage` and on the model, and compares the responses, then
/// every revision, page and watch.
///
/// # Panics
/// When they differ.
pub async fn check(storage: &TestedStorage, steps: &[ModelStep]) {
    let mut model = Model::new(newest(storage).await);
    for step in steps {
        apply(storage, &mut model, *step).await;
        assert_eq!(newest(storage).await, model.revision, "after {step:?}");
    }
    for at in model.base..=model.revision {
        check_revision(storage, &model, at).await;
    }
}

async fn apply(storage: &TestedStorage, model: &mut Model, step: ModelStep) {
    let found = |model: &Model, key: usize| {
        model.state(model.revision).get(KEYS[key % KEYS.len()]).cloned()
    };
    match step {
        ModelStep::Put { key, value, guess } => {
            let previous = found(model, key);
            let key = KEYS[key % KEYS.len()];
            let expect = match (guess, &previous) {
                (Guess::Right, Some(previous)) => Expect::Revision(previous.mod_revision),
                (Guess::Right, None) | (Guess::Absent, _) => Expect::Absent,
                (Guess::Wrong, _) => Expect::Revision(model.revision + 1),
            };
            let happens = guess == Guess::Right || guess == Guess::Absent && previous.is_none();
            let put = storage.put(key, Bytes::from(vec![value]), expect, None).await;
            match put {
                Ok(current) => {
                    assert!(happens, "{step:?} should have been refused");
                    assert_eq!(current.value[..], [value]);
                    let (revision, key) = (current.mod_revision, Arc::clone(&current.key));
                    model.commit(Event { revision, key, previous, current: Some(current) });
                }
                Err(error) => check_refused(error, happens, step, previous.as_ref()),
            }
        }
        ModelStep::Delete { key, guess } => {
            let previous = found(model, key);
            let expect = match (guess, &previous) {
                (Guess::Right, Some(previous)) => previous.mod_revision,
                _ => model.revision + 1,
            };
            let happens = guess == Guess::Right && previous.is_some();
            match storage.delete(KEYS[key % KEYS.len()], expect).await {
                Ok((revision, last)) => {
                    assert!(happens, "{step:?} should have been refused");
                    let key = Arc::clone(&last.key);
                    model.commit(Event { revision, key, previous: Some(last), current: None });
                }
                Err(error) => check_refused(error, happens, step, previous.as_ref()),
            }
        }
        ModelStep::Compact { back } => {
            let to = model.revision.saturating_sub(back);
            storage.compact(to).await.expect("the past can be compacted");
            model.compacted = model.compacted.max(to);
        }
    }
}

fn check_refused(error: StorageError, happens: bool, step: ModelStep, found: Option<&KeyValue>) {
    assert!(!happens, "{step:?} should have happened: {error}");
    let StorageError::Unexpected { current } = error else { panic!("{step:?} failed: {error}") };
    assert_eq!(current.as_ref(), found, "{step:?} should return the current state");
}

async fn check_revision(storage: &TestedStorage, model: &Model, at: Revision) {
    let compacted = |error: StorageError| {
        matches!(error, StorageError::Compacted { requested, oldest }
            if (requested, oldest) == (at, model.compacted))
    };
    if at < model.compacted {
        let request = RangeRequest { at: Some(at), ..RangeRequest::prefix("/") };
        assert!(storage.range(request).await.is_err_and(compacted));
        assert!(storage.get(KEYS[0], Some(at)).await.is_err_and(compacted));
        assert!(storage.watch("/", at).await.err().is_some_and(compacted));
        return;
    }
    for key in KEYS {
        let got = storage.get(key, Some(at)).await.expect("the revision is available");
        assert_eq!(got, (at, model.state(at).get(key).cloned()), "{key} at {at}");
    }
    for prefix in PREFIXES {
        let expected = model.list(prefix, at);
        assert_eq!(list(storage, prefix, Some(at)).await, expected, "{prefix} at {at}");
        for limit in 0..=expected.len() {
            let request =
                RangeRequest { limit: Some(limit), at: Some(at), ..RangeRequest::prefix(prefix) };
            let page = storage.range(request).await.expect("the revision is available");
            assert_eq!(page.items, expected[..limit], "{limit} of {prefix} at {at}");
            assert_eq!(page.remaining as usize, expected.len() - limit, "{prefix} at {at}");
        }
        let events = watch(storage, prefix, at).await.read_to(model.revision).await;
        let committed = model.events.iter();
        let committed: Vec<_> = committed
            .filter(|event| event.revision > at && event.key.starts_with(prefix))
            .collect();
        let events: Vec<_> = events.iter().map(|event| &**event).collect();
        assert_eq!(events, committed, "watch of {prefix} after {at}");
    }
}

/// Steps that depend on `seed` only.
pub fn steps(seed: u64, count: usize) -> Vec<ModelStep> {
    let mut random = Random(seed);
    let mut below = move |limit: u64| random.next() % limit;
    let step = |_| {
        let key = below(KEYS.len() as u64) as usize;
        let guess = match below(10) {
            0 => Guess::Wrong,
            1 => Guess::Absent,
            _ => Guess::Right,
        };
        match below(20) {
            0 => ModelStep::Compact { back: below(15) },
            1..=5 => ModelStep::Delete { key, guess },
            _ => ModelStep::Put { key, value: below(256) as u8, guess },
        }
    };
    (0..count).map(step).collect()
}

/// Marsaglia's xorshift with a multiplication (xorshift64*): small, and the same on all platforms.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.max(1);
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }
}

/// The storage and the model agree on responses, events and states.
pub async fn random_work_agrees_with_the_model(storage: TestedStorage) {
    check(&storage, &steps(7, 100)).await;
}

/// Writers on the same keys: the acknowledged writes, and no others, form one history in which
/// every event follows from the state before it.
pub async fn concurrent_work_is_one_history(storage: TestedStorage) {
    let base = newest(&storage).await;
    let mut live = watch(&storage, "/", base).await;
    let writers = (1..=6).map(|seed| {
        let storage = Arc::clone(&storage);
        tokio::spawn(async move { write_concurrently(&storage, &steps(seed * 1001, 80)).await })
    });
    let mut acknowledged = BTreeMap::new();
    for writer in join_all(writers).await {
        for (revision, current) in writer.expect("no panic") {
            let twice = acknowledged.insert(revision, current);
            assert_eq!(twice, None, "revision {revision} was given to two writes");
        }
    }
    let last = newest(&storage).await;
    let mut model = Model::new(base);
    for event in live.read_to(last).await {
        model.commit(Event::clone(&event));
    }
    let events = model.events.iter().map(|event| (event.revision, event.current.clone()));
    assert_eq!(events.collect::<BTreeMap<_, _>>(), acknowledged);
    for at in base..=last {
        assert_eq!(list(&storage, "/", Some(at)).await, model.list("/", at));
    }
}

/// The acknowledged writes: revision and state after.
async fn write_concurrently(
    storage: &TestedStorage,
    steps: &[ModelStep],
) -> Vec<(Revision, Option<KeyValue>)> {
    let mut acknowledged = Vec::new();
    for step in steps {
        let (ModelStep::Put { key, .. } | ModelStep::Delete { key, .. }) = step else { continue };
        let key = KEYS[*key];
        let found = storage.get(key, None).await.expect("reads work").1;
        let outcome = match (step, found) {
            (ModelStep::Put { value, .. }, found) => {
                let expect =
                    found.map_or(Expect::Absent, |found| Expect::Revision(found.mod_revision));
                let put = storage.put(key, Bytes::from(vec![*value]), expect, None).await;
                put.map(|current| (current.mod_revision, Some(current)))
            }
            (_, Some(found)) => {
                storage.delete(key, found.mod_revision).await.map(|(revision, _)| (revision, None))
            }
            (_, None) => continue,
        };
        match outcome {
            Ok(write) => acknowledged.push(write),
            Err(StorageError::Unexpected { .. }) => {}
            Err(error) => panic!("a write failed: {error}"),
        }
    }
    acknowledged
}
