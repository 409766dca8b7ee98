//! The commits, reconstructed from every response and every delivery.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use storage::Revision;

use super::{Invocation, Read, Rule, Violation, violated};
use crate::record::{Item, Operation, Outcome, State};

/// What is known of one commit.
#[derive(Clone, Debug)]
struct Commit {
    key: String,
    /// The state before, where a watcher received it.
    previous: Option<Option<State>>,
    current: Option<State>,
}

/// All commits, and the state of each key at each revision.
#[derive(Default)]
pub(super) struct Commits {
    commits: BTreeMap<Revision, Commit>,
    /// By key: its state from a revision on.
    states: BTreeMap<String, BTreeMap<Revision, Option<State>>>,
    /// The line of the history with the invocation that made a commit.
    invoked_lines: BTreeMap<Revision, usize>,
    unknown_done: usize,
}

impl Commits {
    pub(super) fn collect(read: &Read<'_>) -> Result<Self, Violation> {
        let mut all = Self::default();
        all.add_responses(read)?;
        for (item, _) in read.watches.values().flatten() {
            let Item::Changes(changes) = item else { continue };
            for change in changes {
                let previous = Some(change.previous.clone());
                all.add(change.revision, &change.key, previous, change.current.clone())?;
            }
        }
        all.replay()?;
        all.attribute(read)?;
        Ok(all)
    }

    fn add_responses(&mut self, read: &Read<'_>) -> Result<(), Violation> {
        let mut given = BTreeMap::new();
        for invocation in read.invocations.values() {
            let written = match invocation.outcome() {
                Some(Outcome::Put(state)) => {
                    self.see(state)?;
                    state.modified
                }
                Some(Outcome::Deleted { revision, last }) => {
                    self.see(last)?;
                    self.add(*revision, &last.key, Some(Some(last.clone())), None)?;
                    *revision
                }
                Some(Outcome::Refused(Some(state)))
                | Some(Outcome::Found { state: Some(state), .. }) => {
                    self.see(state)?;
                    continue;
                }
                Some(Outcome::Listed { items, .. }) => {
                    for item in items {
                        self.see(item)?;
                    }
                    continue;
                }
                _ => continue,
            };
            if let Some(other) = given.insert(written, invocation.number) {
                let number = invocation.number;
                let message =
                    format!("revision {written} was given to the writes {other} and {number}");
                return violated(Rule::RevisionOnce, message);
            }
        }
        Ok(())
    }

    /// A reported state is what its revision wrote.
    fn see(&mut self, state: &State) -> Result<(), Violation> {
        self.add(state.modified, &state.key, None, Some(state.clone()))
    }

    fn add(
        &mut self,
        revision: Revision,
        key: &str,
        previous: Option<Option<State>>,
        current: Option<State>,
    ) -> Result<(), Violation> {
        match self.commits.entry(revision) {
            Entry::Vacant(vacant) => {
                vacant.insert(Commit { key: key.to_owned(), previous, current });
            }
            Entry::Occupied(mut occupied) => {
                let known = occupied.get_mut();
                let same_previous = match (&known.previous, &previous) {
                    (Some(known), Some(reported)) => known == reported,
                    _ => true,
                };
                if known.key != key || known.current != current || !same_previous {
                    let message = format!(
                        "revision {revision} was reported as {known:?} and as {key}: \
                         {previous:?} to {current:?}"
                    );
                    return violated(Rule::RevisionOnce, message);
                }
                known.previous = previous.or(known.previous.take());
            }
        }
        Ok(())
    }

    fn replay(&mut self) -> Result<(), Violation> {
        for (revision, commit) in &self.commits {
            let before = self.state(&commit.key, *revision);
            if commit.previous.as_ref().is_some_and(|previous| previous.as_ref() != before) {
                let message = format!("before {revision} was {before:?}, it reports {commit:?}");
                return violated(Rule::Chain, message);
            }
            match &commit.current {
                Some(current) => {
                    let created = before.map_or(*revision, |before| before.created);
                    if (current.created, current.modified) != (created, *revision)
                        || current.key != commit.key
                    {
                        let message = format!("{current:?} at {revision}, created at {created}");
                        return violated(Rule::Chain, message);
                    }
                }
                None if before.is_none() => {
                    let message = format!("{revision} deletes {}, which is not there", commit.key);
                    return violated(Rule::Chain, message);
                }
                None => {}
            }
            let states = self.states.entry(commit.key.clone()).or_default();
            states.insert(*revision, commit.current.clone());
        }
        Ok(())
    }

    /// Finds for each commit the write that made it.
    fn attribute(&mut self, read: &Read<'_>) -> Result<(), Violation> {
        let mut puts = BTreeMap::new();
        let mut deletes: BTreeMap<_, Vec<&Invocation<'_>>> = BTreeMap::new();
        for invocation in read.invocations.values() {
            match invocation.operation {
                Operation::Put { value, .. } => drop(puts.insert(value.as_str(), invocation)),
                Operation::Delete { key, expected } => {
                    deletes.entry((key.as_str(), *expected)).or_default().push(invocation);
                }
                _ => {}
            }
        }
        let (mut done, mut lines, mut unknown_done) = (BTreeSet::new(), BTreeMap::new(), 0);
        for (revision, commit) in &self.commits {
            let before = self.state(&commit.key, *revision);
            let write = match &commit.current {
                Some(current) => puts.get(current.value.as_str()).copied(),
                None => {
                    let before = before.map_or(0, |before| before.modified);
                    let candidates = deletes.get(&(commit.key.as_str(), before));
                    // The acknowledged one, or else any that may have done it.
                    candidates.and_then(|candidates| {
                        let did = |one: &&&Invocation<'_>| wrote(one) == Some(*revision);
                        let may = |one: &&&Invocation<'_>| one.is_open() && one.floor < *revision;
                        candidates.iter().find(did).or_else(|| candidates.iter().find(may)).copied()
                    })
                }
            };
            let Some(write) = write else {
                return violated(
                    Rule::Requested,
                    format!("nobody requested {revision}: {commit:?}"),
                );
            };
            if !done.insert(write.number) {
                return violated(Rule::Requested, format!("write {} happened twice", write.number));
            }
            unknown_done += usize::from(write.is_open());
            lines.insert(*revision, write.invoked_line);
            justify(*revision, commit, before, write)?;
        }
        self.invoked_lines = lines;
        self.unknown_done = unknown_done;
        Ok(())
    }

    /// The key's state after every commit below `before`.
    fn state(&self, key: &str, before: Revision) -> Option<&State> {
        self.states.get(key)?.range(..before).next_back()?.1.as_ref()
    }

    /// The key's state at `revision`.
    pub(super) fn state_at(&self, key: &str, revision: Revision) -> Option<&State> {
        self.state(key, revision + 1)
    }

    /// Live keys that begin with `prefix`, at `revision`, in order.
    pub(super) fn list(&self, prefix: &str, revision: Revision) -> Vec<&State> {
        let keys = self.states.keys().filter(|key| key.starts_with(prefix));
        keys.filter_map(|key| self.state_at(key, revision)).collect()
    }

    /// The ranges of revisions in which the key did not exist, each as its first revision and the
    /// one after its last.
    pub(super) fn absences(&self, key: &str) -> Vec<(Revision, Revision)> {
        let Some(states) = self.states.get(key) else { return vec![(0, Revision::MAX)] };
        let mut absences = Vec::new();
        let mut since = Some(0);
        for (revision, state) in states {
            match state {
                Some(_) => absences.extend(since.take().map(|since| (since, *revision))),
                None => since = Some(*revision),
            }
        }
        absences.extend(since.map(|since| (since, Revision::MAX)));
        absences
    }

    /// The revision that ended the state that `key` had from `revision` on.
    pub(super) fn end_of(&self, key: &str, revision: Revision) -> Revision {
        let next = self.states.get(key).and_then(|states| states.range(revision + 1..).next());
        next.map_or(Revision::MAX, |(revision, _)| *revision)
    }

    /// Revisions above `after` and not above `until`, which is not smaller, of keys that begin with
    /// `prefix`.
    pub(super) fn between(
        &self,
        prefix: &str,
        after: Revision,
        until: Revision,
    ) -> impl Iterator<Item = Revision> {
        let commits = self.commits.range((Bound::Excluded(after), Bound::Included(until)));
        let of_prefix = move |(_, commit): &(&Revision, &Commit)| commit.key.starts_with(prefix);
        commits.filter(of_prefix).map(|(revision, _)| *revision)
    }

    /// The line of the invocation that made the commit of `revision`; 0 when there is none.
    pub(super) fn invoked_line(&self, revision: Revision) -> usize {
        self.invoked_lines.get(&revision).copied().unwrap_or(0)
    }

    /// Whether all keys begin with `prefix`.
    pub(super) fn are_all_of(&self, prefix: &str) -> bool {
        self.states.keys().all(|key| key.starts_with(prefix))
    }

    pub(super) fn newest(&self) -> Revision {
        self.commits.last_key_value().map_or(0, |(revision, _)| *revision)
    }

    pub(super) fn count(&self) -> usize {
        self.commits.len()
    }

    pub(super) fn unknown_done(&self) -> usize {
        self.unknown_done
    }
}

/// The revision in the response to a write.
pub(super) fn wrote(invocation: &Invocation<'_>) -> Option<Revision> {
    match invocation.outcome()? {
        Outcome::Put(state) => Some(state.modified),
        Outcome::Deleted { revision, .. } => Some(*revision),
        _ => None,
    }
}

/// Checks that the write to which a commit is attributed could make it.
fn justify(
    revision: Revision,
    commit: &Commit,
    before: Option<&State>,
    write: &Invocation<'_>,
) -> Result<(), Violation> {
    let number = write.number;
    let (key, expected) = match write.operation {
        Operation::Put { key, expected, .. } => (key, *expected),
        Operation::Delete { key, expected } => (key, Some(*expected)),
        other => unreachable!("{other:?} does not write"),
    };
    if *key != commit.key {
        return violated(Rule::Requested, format!("write {number} of {key} became {commit:?}"));
    }
    if wrote(write).is_none() && !write.is_open() {
        let message = format!("write {number} returned {:?}, and is {revision}", write.outcome());
        return violated(Rule::Requested, message);
    }
    if before.map(|before| before.modified) != expected {
        let message = format!("{revision}: write {number} expected {expected:?} on {before:?}");
        return violated(Rule::Compared, message);
    }
    if wrote(write).is_some_and(|wrote| wrote != revision) {
        let message = format!("write {number} returned another revision than {revision}");
        return violated(Rule::RevisionOnce, message);
    }
    if revision <= write.floor {
        let message = format!("write {number} took {revision}, {} was there", write.floor);
        return violated(Rule::NeverBack, message);
    }
    Ok(())
}
