//! The queue, the runner and status patches, without a server.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::ensure::missing;
use crate::queue::{Next, Queue};
use crate::status::merge_difference;
use crate::{
    Change, ConditionState, Controllers, Key, Limits, Outcome, OwnedCondition, Reconcile,
    ReconcileError, Runner, StatusPatch,
};

fn key(lane: &str, name: &str) -> Key {
    Key::namespaced(lane, name)
}

fn queue() -> Queue {
    Queue::new(|key| key.namespace.clone(), 3, 1)
}

fn next_key(queue: &Queue) -> Option<Key> {
    match queue.next() {
        Next::Run(key) => Some(key),
        Next::Wait(_) => None,
    }
}

#[tokio::test]
async fn a_key_never_runs_twice_at_once_and_runs_again_when_it_was_added_meanwhile() {
    let queue = queue();
    queue.add(key("a", "1"));
    queue.add(key("a", "1"));
    assert_eq!(next_key(&queue), Some(key("a", "1")));
    assert_eq!(next_key(&queue), None);
    queue.add(key("a", "1"));
    assert_eq!(next_key(&queue), None);
    queue.finished(&key("a", "1"), None, false);
    assert_eq!(next_key(&queue), Some(key("a", "1")));
    queue.finished(&key("a", "1"), None, false);
    assert_eq!(next_key(&queue), None);
}

#[tokio::test]
async fn a_lane_that_hangs_delays_no_other_lane() {
    let queue = queue();
    for name in ["1", "2", "3", "4"] {
        queue.add(key("slow", name));
    }
    queue.add(key("quick", "1"));
    queue.add(key("quick", "2"));
    assert_eq!(next_key(&queue), Some(key("slow", "1")));
    assert_eq!(next_key(&queue), Some(key("quick", "1")));
    assert_eq!(next_key(&queue), None);
    queue.finished(&key("quick", "1"), None, false);
    assert_eq!(next_key(&queue), Some(key("quick", "2")));
}

#[tokio::test]
async fn a_failed_key_is_retried_later_each_time_and_a_change_ends_the_wait() {
    let queue = queue();
    queue.add(key("a", "1"));
    let mut waited = Vec::new();
    for _ in 0..4 {
        assert_eq!(next_key(&queue), Some(key("a", "1")));
        queue.finished(&key("a", "1"), None, true);
        let Next::Wait(Some(due)) = queue.next() else { panic!("must wait") };
        waited.push(due - tokio::time::Instant::now());
        queue.add(key("a", "1"));
    }
    assert!(waited.windows(2).all(|pair| pair[0] < pair[1]), "{waited:?}");
    assert_eq!(next_key(&queue), Some(key("a", "1")));
    queue.finished(&key("a", "1"), None, false);
    assert!(matches!(queue.next(), Next::Wait(None)));
}

proptest! {
    /// In any order of additions and ends, every added key runs, none runs twice at once, and the
    /// bounds per lane and in total hold.
    #[test]
    fn every_key_runs_within_the_bounds(steps in proptest::collection::vec((0..4u8, 0..3u8, any::<bool>()), 1..200)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let queue = queue();
            let (mut running, mut owed) = (HashSet::new(), HashSet::new());
            for (name, lane, finish) in steps {
                let added = key(&lane.to_string(), &name.to_string());
                queue.add(added.clone());
                owed.insert(added);
                if let Some(key) = next_key(&queue) {
                    owed.remove(&key);
                    assert!(running.insert(key), "ran twice at once");
                    assert!(running.len() <= 3);
                    let lanes: HashSet<_> = running.iter().map(|key| &key.namespace).collect();
                    assert_eq!(lanes.len(), running.len(), "two of one lane");
                }
                if finish && let Some(key) = running.iter().next().cloned() {
                    running.remove(&key);
                    queue.finished(&key, None, false);
                }
            }
            for key in running {
                queue.finished(&key, None, false);
            }
            while let Some(key) = next_key(&queue) {
                owed.remove(&key);
                queue.finished(&key, None, false);
            }
            assert!(owed.is_empty(), "never ran: {owed:?}");
        });
    }

    #[test]
    fn a_merge_difference_applied_gives_the_new_value(old in json_object(), new in json_object()) {
        let mut patched = old.clone();
        if let Some(patch) = merge_difference(&old, &new) {
            apply_merge(&mut patched, &patch);
        }
        prop_assert_eq!(patched, new);
    }
}

fn json_object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![any::<i8>().prop_map(Value::from), "[ab]{0,2}".prop_map(Value::from)];
    let node = leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[abc]", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    proptest::collection::btree_map("[abc]", node, 0..4)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

fn apply_merge(onto: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *onto = patch.clone();
        return;
    };
    if !onto.is_object() {
        *onto = json!({});
    }
    for (field, value) in patch {
        let map = onto.as_object_mut().unwrap();
        if value.is_null() {
            map.remove(field);
        } else {
            apply_merge(map.entry(field.clone()).or_insert(Value::Null), value);
        }
    }
}

const READY: OwnedCondition = OwnedCondition::of("Thing", "Ready");

#[test]
fn writing_a_condition_leaves_the_others_untouched_and_keeps_the_transition_time() {
    let other = json!({"type": "Other", "status": "False", "odd": 1});
    let current = json!({"phase": "x", "conditions": [other,
        {"type": "Ready", "status": "True", "lastTransitionTime": "t0", "lastUpdateTime": "t0"}]});
    let same = StatusPatch::new().condition(READY, ConditionState::yes());
    assert_eq!(same.difference(&current, "t1"), None);

    let mut reworded = ConditionState::yes();
    reworded.message = "m".to_owned();
    let patch = StatusPatch::new().condition(READY, reworded);
    let difference = patch.difference(&current, "t1").unwrap();
    assert_eq!(difference["conditions"][0], other);
    assert_eq!(difference["conditions"][1]["lastTransitionTime"], "t0");
    assert_eq!(difference["conditions"][1]["lastUpdateTime"], "t1");
    assert!(difference.get("phase").is_none());

    let patch = StatusPatch::new().condition(READY, ConditionState::no("Gone", ""));
    let difference = patch.difference(&current, "t1").unwrap();
    assert_eq!(difference["conditions"][1]["lastTransitionTime"], "t1");
}

#[test]
fn a_status_field_becomes_exactly_what_was_written() {
    let current = json!({"capacity": {"cpu": "1", "gpu": "1"}});
    let patch = StatusPatch::new().field("capacity", json!({"cpu": "2"}));
    let difference = patch.difference(&current, "t").unwrap();
    assert_eq!(difference, json!({"capacity": {"cpu": "2", "gpu": null}}));
    let removed = StatusPatch::new().field("capacity", Value::Null);
    assert_eq!(removed.difference(&current, "t").unwrap(), json!({"capacity": null}));
}

#[test]
fn fields_that_are_not_set_stay() {
    let current = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "data": {"x": "1"}});
    assert_eq!(missing(&json!({"metadata": {"labels": {"a": "1"}}}), &current), None);
    let desired = json!({"metadata": {"labels": {"a": "3"}}});
    assert_eq!(missing(&desired, &current), Some(desired));
}

/// A reconciler that acts by the name of the object: `panic`, `hang`, `fail`, `wait`, or else
/// succeeds.
#[derive(Default)]
struct Moody {
    seen: Mutex<Vec<String>>,
    tries: AtomicUsize,
}

impl Reconcile for Moody {
    fn name(&self) -> &'static str {
        "moody"
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        async move {
            self.seen.lock().push(key.name.clone());
            match key.name.as_str() {
                "panic" => panic!("as requested"),
                "hang" => std::future::pending().await,
                "fail" if self.tries.fetch_add(1, Ordering::Relaxed) < 2 => {
                    Err(ReconcileError::other("do it", "not yet"))
                }
                "wait" => Ok(Outcome::WaitingFor("the other".to_owned())),
                _ => Ok(Outcome::Done),
            }
        }
        .boxed()
    }
}

#[tokio::test]
async fn panics_hangs_and_failures_affect_only_their_key_and_are_recorded() {
    let moody = Arc::new(Moody::default());
    let limits = Limits { run_time_max: Duration::from_millis(50), ..Limits::default() };
    let runner = Runner::with_limits(moody.clone(), limits);
    let (queue, activity) = (runner.queue().clone(), runner.activity().clone());
    for name in ["panic", "hang", "fail", "wait", "good"] {
        queue.add(key("c-1", name));
    }
    let (controllers, stop) = (Controllers::default(), CancellationToken::new());
    let (listed, stopped) = (controllers.clone(), stop.clone());
    let run = tokio::spawn(async move { runner.run("", &controllers, stopped).await });
    let outcome = |name: &str| activity.last_run(&key("c-1", name)).map(|run| run.outcome);
    let expected = [("panic", "panic"), ("hang", "timeout"), ("fail", "done"), ("wait", "waiting")];
    tokio::time::timeout(Duration::from_secs(20), async {
        while !expected.iter().all(|(name, word)| outcome(name) == Some(word)) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("every key reaches its outcome");
    assert_eq!(outcome("good"), Some("done"));
    let waiting = activity.last_run(&key("c-1", "wait")).unwrap();
    assert_eq!(waiting.message, "the other");
    assert_eq!(listed.last_runs(&key("c-1", "good")).len(), 1);
    stop.cancel();
    run.await.unwrap();
    assert!(listed.all().is_empty());
}

#[test]
fn an_object_that_was_deleted_differs_from_before() {
    let (key, old, new) = (key("", "a"), Arc::new(1), Arc::new(2));
    let differs = |change: Change<'_, i32>| change.differs(PartialEq::eq);
    assert!(differs(Change::Deleted { key: &key, old: &old }));
    assert!(differs(Change::Applied { key: &key, new: &old, old: None }));
    assert!(differs(Change::Applied { key: &key, new: &new, old: Some(&old) }));
    assert!(!differs(Change::Applied { key: &key, new: &old, old: Some(&old) }));
}
