//! Invariant: an object whose owners are all deleted is deleted, too. An owner that waits for its
//! dependents is deleted after them. An owner that orphans its dependents is removed from their
//! references first.
//!
//! [`graph`] is the index of owners and dependents. It contains only objects with owners, and
//! objects that wait for their dependents. The watch caches of all stored resources feed it.
//! [`collect`] decides and acts. It trusts neither the index nor a cache about absence: it reads
//! again at the newest revision, compares UIDs, and does not touch what it cannot resolve.

mod collect;
mod graph;
mod other_namespace;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use apiserver::registry::{Registry, Subscription, Update};
use apiserver::resource::{Backend, Resource};
use apiserver::retry::RETRY;
use futures::FutureExt;

use self::collect::CollectResult;
use self::graph::{Graph, ObjectKey, Work};

/// The number of work items between two updates from the caches.
const BATCH_MAX: usize = 256;
/// The number of attempts of one work item before it waits for the next change of its object.
const ATTEMPTS_MAX: u32 = 12;

/// Runs until the registry is dropped. Failures are retried with backoff.
pub async fn run(registry: Arc<Registry>) {
    let mut generation = registry.generation();
    let mut progress = registry.progress();
    let mut collector = Collector::new(registry.clone());
    let mut followed = None;
    loop {
        progress.borrow_and_update();
        // Compared here, since one wake-up may stand for several changes.
        let now = Some(*generation.borrow_and_update());
        if followed != now {
            collector.follow_catalog();
            followed = now;
        }
        // The caches are complete as of now: only then is an absent dependent really absent.
        let complete = registry.fresh().await.is_ok();
        collector.drain();
        if complete {
            collector.process_queue().await;
        }
        if collector.has_work_now() {
            continue;
        }
        let pause = if complete { collector.pause() } else { Some(RETRY.delay(4)) };
        let rest = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = progress.changed() => if changed.is_err() { return },
            changed = generation.changed() => if changed.is_err() { return },
            () = rest => {}
        }
    }
}

struct Collector {
    registry: Arc<Registry>,
    graph: Graph,
    /// The subscriptions by storage prefix.
    followed: BTreeMap<String, (Arc<Resource>, Subscription)>,
    queue: BTreeSet<Work>,
    /// Failed work by the time of its next attempt.
    delayed: BTreeMap<(tokio::time::Instant, Work), u32>,
    /// Objects with an owner of a kind that is not served: checked again when the served kinds
    /// change.
    unresolved: HashSet<ObjectKey>,
}

impl Collector {
    fn new(registry: Arc<Registry>) -> Self {
        Self {
            registry,
            graph: Graph::default(),
            followed: BTreeMap::new(),
            queue: BTreeSet::new(),
            delayed: BTreeMap::new(),
            unresolved: HashSet::new(),
        }
    }

    /// Follows every stored resource, each storage prefix once, and drops those that are no longer
    /// served.
    fn follow_catalog(&mut self) {
        let mut served = BTreeMap::new();
        for resource in self.registry.catalog().all() {
            if let Backend::Stored { prefix } = &resource.backend
                && !is_ignored(resource)
            {
                served.entry(prefix.clone()).or_insert_with(|| resource.clone());
            }
        }
        let graph = &mut self.graph;
        self.followed.retain(|prefix, _| {
            let is_served = served.contains_key(prefix);
            if !is_served {
                graph.forget_prefix(prefix);
            }
            is_served
        });
        for (prefix, resource) in served {
            match self.followed.get_mut(&prefix) {
                Some((followed, _)) => *followed = resource,
                None => {
                    let subscription = self.registry.subscribe(&resource);
                    self.followed.insert(prefix, (resource, subscription));
                }
            }
        }
        self.queue.extend(self.unresolved.drain().map(Work::Check));
    }

    /// Applies all pending updates of the caches.
    fn drain(&mut self) {
        for (prefix, (_, subscription)) in &mut self.followed {
            while let Some(Some(update)) = subscription.next().now_or_never() {
                match update {
                    Update::Reset(objects) => {
                        self.graph.reset(prefix, &objects, &mut self.queue);
                    }
                    Update::Events(events) => {
                        for event in events {
                            if event.deleted {
                                self.graph.remove(&event.current, &mut self.queue);
                            } else {
                                self.graph.insert(&event.current, &mut self.queue);
                            }
                        }
                    }
                }
            }
        }
        let now = tokio::time::Instant::now();
        while let Some(entry) = self.delayed.first_entry()
            && entry.key().0 <= now
        {
            let ((_, work), _) = entry.remove_entry();
            self.queue.insert(work);
        }
    }

    async fn process_queue(&mut self) {
        for _ in 0..BATCH_MAX {
            let Some(work) = self.queue.pop_first() else { return };
            let key = work.key().clone();
            let Some(resource) = self.resource_of(&key) else { continue };
            let is_first = self.graph.mark_checked(&key);
            let graph = &self.graph;
            match collect::perform(&self.registry, &resource, graph, &work, is_first).await {
                Ok(CollectResult::Done) => {}
                Ok(CollectResult::Unresolved) => {
                    self.unresolved.insert(key);
                }
                Ok(CollectResult::Check(keys)) => {
                    self.queue.extend(keys.into_iter().map(Work::Check))
                }
                Err(status) => {
                    tracing::debug!(%key, %status, "cannot collect yet");
                    self.delay(work);
                }
            }
        }
    }

    fn delay(&mut self, work: Work) {
        let attempts = self.graph.count_failure(work.key());
        if attempts > ATTEMPTS_MAX {
            tracing::warn!(key = %work.key(), "gave up collecting until the object changes");
            return;
        }
        let at = tokio::time::Instant::now() + RETRY.delay(attempts);
        self.delayed.insert((at, work), attempts);
    }

    fn resource_of(&self, key: &ObjectKey) -> Option<Arc<Resource>> {
        let up_to = (Bound::Unbounded, Bound::Included(&**key));
        let (prefix, (resource, _)) = self.followed.range::<str, _>(up_to).next_back()?;
        key.starts_with(prefix.as_str()).then(|| resource.clone())
    }

    fn has_work_now(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The time until the next delayed attempt.
    fn pause(&self) -> Option<Duration> {
        let ((at, _), _) = self.delayed.first_key_value()?;
        Some(at.saturating_duration_since(tokio::time::Instant::now()))
    }
}

/// Events expire by age, and there are many of them.
fn is_ignored(resource: &Resource) -> bool {
    resource.plural == "events" && matches!(resource.group.as_str(), "" | "events.k8s.io")
}
