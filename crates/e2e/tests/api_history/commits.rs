//! The commits of a history. Each follows from the one before it and was requested.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::{History, Invocation};
use crate::record::{Event, Object, Operation, Outcome, Scope};

/// One change of one object.
pub struct Commit {
    pub before: Option<Object>,
    /// Of a deletion: the last state, with the version of the deletion.
    pub object: Object,
    pub is_deletion: bool,
    /// The line of the history with its invocation: it cannot have happened before.
    invoked_line: usize,
}

#[derive(Default)]
pub struct Commits {
    commits: BTreeMap<u64, Commit>,
}

impl Commits {
    /// # Errors
    /// The first violated rule.
    pub fn collect(history: &History<'_>) -> Result<Self, String> {
        let mut all = Self::default();
        let mut live = BTreeMap::new();
        let mut cursor = None;
        for (number, invocation) in &history.invocations {
            let Operation::Watch { after, witness: true, .. } = invocation.operation else {
                continue;
            };
            if cursor.is_some_and(|cursor| cursor != *after) {
                return Err(format!(
                    "the watch of everything did not continue from {cursor:?} but from {after}"
                ));
            }
            let mut newest = *after;
            for event in history.delivered.get(number).into_iter().flatten() {
                let version = event.version().unwrap_or(newest);
                if version < newest || version == newest && !matches!(event, Event::Bookmark { .. })
                {
                    return Err(format!("{event:?} was delivered after {newest}"));
                }
                newest = version;
                all.add(event, &mut live)?;
            }
            cursor = Some(newest);
        }
        all.attribute(history)?;
        all.check_acknowledged(history)?;
        Ok(all)
    }

    pub fn len(&self) -> usize {
        self.commits.len()
    }

    fn add(&mut self, event: &Event, live: &mut BTreeMap<String, Object>) -> Result<(), String> {
        let (object, is_deletion) = match event {
            Event::Added(object) | Event::Modified(object) => (object, false),
            Event::Deleted(object) => (object, true),
            Event::Bookmark { .. } => return Ok(()),
            Event::Expired { .. } => return Err("the watch of everything expired".to_owned()),
        };
        let before = if is_deletion {
            live.remove(&object.key)
        } else {
            live.insert(object.key.clone(), object.clone())
        };
        let follows = match (event, &before) {
            (Event::Added(_), before) => before.is_none(),
            (_, None) => false,
            (Event::Deleted(_), Some(last)) => {
                Object { version: object.version, ..last.clone() } == *object
            }
            (_, Some(last)) => last.uid == object.uid,
        };
        if !follows {
            return Err(format!("{event:?} does not follow from {before:?}"));
        }
        let commit = Commit { before, object: object.clone(), is_deletion, invoked_line: 0 };
        self.commits.insert(object.version, commit);
        Ok(())
    }

    /// Finds the invocation of each commit.
    fn attribute(&mut self, history: &History<'_>) -> Result<(), String> {
        let mut writes = BTreeMap::new();
        let mut deletions: BTreeMap<(&str, u64), Vec<&Invocation<'_>>> = BTreeMap::new();
        let mut namespaces = BTreeMap::new();
        for invocation in history.invocations.values() {
            match invocation.operation {
                Operation::Create { value, .. }
                | Operation::Update { value, .. }
                | Operation::Patch { value, .. } => drop(writes.insert(value.as_str(), invocation)),
                Operation::Delete { key, expected } => {
                    deletions.entry((key, *expected)).or_default().push(invocation);
                }
                // The first request counts.
                Operation::DeleteNamespace { name } => {
                    namespaces.entry(name.as_str()).or_insert(invocation);
                }
                _ => {}
            }
        }
        for (version, commit) in &mut self.commits {
            let key = commit.object.key.as_str();
            let invocation = if commit.is_deletion {
                let last = commit.before.as_ref().map_or(0, |last| last.version);
                let may = |invocation: &&&Invocation<'_>| {
                    invocation.is_open()
                        || matches!(invocation.outcome, Some((Outcome::Deleted, _)))
                };
                let clients =
                    deletions.get(&(key, last)).into_iter().flatten().filter(may).copied();
                let namespace = key.split('/').next().unwrap_or_default();
                clients
                    .chain(namespaces.get(namespace).copied())
                    .min_by_key(|invocation| invocation.line)
            } else {
                writes
                    .remove(commit.object.value.as_str())
                    .filter(|invocation| is_cause_of(invocation, commit))
            };
            let invocation = invocation.ok_or_else(|| {
                format!("no invocation matches {:?} after {:?}", commit.object, commit.before)
            })?;
            if invocation.floor >= *version {
                return Err(format!(
                    "{version} was committed when {} had been reported",
                    invocation.floor
                ));
            }
            commit.invoked_line = invocation.line;
        }
        Ok(())
    }

    /// Checks that every acknowledged write exists.
    fn check_acknowledged(&self, history: &History<'_>) -> Result<(), String> {
        let deleted: BTreeSet<(&str, u64)> = self
            .commits
            .values()
            .filter(|commit| commit.is_deletion)
            .filter_map(|commit| {
                Some((commit.object.key.as_str(), commit.before.as_ref()?.version))
            })
            .collect();
        for invocation in history.invocations.values() {
            let is_there = match (invocation.operation, invocation.outcome) {
                (_, Some((Outcome::Written(object), _))) => {
                    let commit = self.commits.get(&object.version);
                    commit.is_some_and(|commit| !commit.is_deletion && commit.object == *object)
                }
                (Operation::Delete { key, expected }, Some((Outcome::Deleted, _))) => {
                    deleted.contains(&(key.as_str(), *expected))
                }
                _ => true,
            };
            if !is_there {
                return Err(format!(
                    "acknowledged and lost: {:?} {:?}",
                    invocation.operation, invocation.outcome
                ));
            }
        }
        Ok(())
    }

    /// The states of `key` between the version `floor` and the line `until`.
    pub fn states<'c>(
        &'c self,
        key: &str,
        floor: u64,
        until: usize,
    ) -> impl Iterator<Item = Option<&'c Object>> {
        let of_key = |range: std::ops::RangeInclusive<u64>| {
            self.commits
                .range(range)
                .map(|(_, commit)| commit)
                .filter(|commit| commit.object.key == key)
        };
        let after = |commit: &'c Commit| (!commit.is_deletion).then_some(&commit.object);
        let at_floor = of_key(0..=floor).next_back().and_then(after);
        let later: Vec<_> = of_key(floor + 1..=u64::MAX)
            .take_while(|commit| commit.invoked_line < until)
            .map(after)
            .collect();
        std::iter::once(at_floor).chain(later)
    }

    /// Compares a list with the state at `version`.
    ///
    /// # Errors
    /// They differ.
    pub fn expect(&self, scope: &Scope, version: u64, items: &[Object]) -> Result<(), String> {
        let mut state = BTreeMap::new();
        for commit in self.commits.range(..=version).map(|(_, commit)| commit) {
            state.remove(&commit.object.key);
            if !commit.is_deletion && scope.takes(&commit.object) {
                state.insert(commit.object.key.clone(), &commit.object);
            }
        }
        if state.values().copied().eq(items) {
            return Ok(());
        }
        Err(format!("at {version} there was {state:?}"))
    }

    /// The commits after `version`, first to last.
    pub fn after(&self, version: u64) -> impl Iterator<Item = &Commit> {
        self.commits.range(version + 1..).map(|(_, commit)| commit)
    }
}

/// Whether the invocation, if it took effect, made this commit.
fn is_cause_of(invocation: &Invocation<'_>, commit: &Commit) -> bool {
    let fits_outcome = match invocation.outcome {
        None | Some((Outcome::Unknown(_), _)) => true,
        Some((Outcome::Written(object), _)) => *object == commit.object,
        Some(_) => false,
    };
    let before = commit.before.as_ref();
    fits_outcome
        && match invocation.operation {
            Operation::Create { key, label, .. } => {
                before.is_none() && *key == commit.object.key && *label == commit.object.label
            }
            Operation::Update { key, label, expected, .. } => {
                before.is_some_and(|before| before.version == *expected)
                    && *key == commit.object.key
                    && *label == commit.object.label
            }
            Operation::Patch { key, .. } => {
                before.is_some_and(|before| before.label == commit.object.label)
                    && *key == commit.object.key
            }
            _ => false,
        }
}
