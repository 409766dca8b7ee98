//! The commits of a history, each following from the one before it and asked for.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::{Asked, History};
use crate::record::{Answer, Event, Object, Question, Scope};

/// One change of one object.
pub struct Commit {
    pub before: Option<Object>,
    /// Of a deletion: the last state in the deletion's version.
    pub object: Object,
    pub is_deletion: bool,
    /// The line of the history before which it cannot have happened.
    asked: usize,
}

#[derive(Default)]
pub struct Commits {
    commits: BTreeMap<u64, Commit>,
}

impl Commits {
    /// # Errors
    /// The first rule that does not hold.
    pub fn collect(history: &History<'_>) -> Result<Self, String> {
        let mut all = Self::default();
        let mut live = BTreeMap::new();
        let mut cursor = None;
        for (number, asked) in &history.asked {
            let Question::Watch { after, witness: true, .. } = asked.question else { continue };
            if cursor.is_some_and(|cursor| cursor != *after) {
                return Err(format!("the witness did not go on from {cursor:?} but from {after}"));
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
        all.acknowledged(history)?;
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
            Event::Gone { .. } => return Err("the witness was too late".to_owned()),
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
        let commit = Commit { before, object: object.clone(), is_deletion, asked: 0 };
        self.commits.insert(object.version, commit);
        Ok(())
    }

    /// Finds who asked for each commit.
    fn attribute(&mut self, history: &History<'_>) -> Result<(), String> {
        let mut by_value = BTreeMap::new();
        let mut deletions: BTreeMap<(&str, u64), Vec<&Asked<'_>>> = BTreeMap::new();
        let mut namespaces = BTreeMap::new();
        for asked in history.asked.values() {
            match asked.question {
                Question::Create { value, .. }
                | Question::Update { value, .. }
                | Question::Patch { value, .. } => drop(by_value.insert(value.as_str(), asked)),
                Question::Delete { key, expected } => {
                    deletions.entry((key, *expected)).or_default().push(asked);
                }
                // The first order counts.
                Question::DeleteNamespace { name } => {
                    namespaces.entry(name.as_str()).or_insert(asked);
                }
                _ => {}
            }
        }
        for (version, commit) in &mut self.commits {
            let key = commit.object.key.as_str();
            let asked = if commit.is_deletion {
                let last = commit.before.as_ref().map_or(0, |last| last.version);
                let may = |asked: &&&Asked<'_>| {
                    asked.is_open() || matches!(asked.answer, Some((Answer::Deleted, _)))
                };
                let clients =
                    deletions.get(&(key, last)).into_iter().flatten().filter(may).copied();
                let namespace = key.split('/').next().unwrap_or_default();
                clients.chain(namespaces.get(namespace).copied()).min_by_key(|asked| asked.line)
            } else {
                by_value.remove(commit.object.value.as_str()).filter(|asked| caused(asked, commit))
            };
            let asked = asked.ok_or_else(|| {
                format!("nobody asked for {:?} after {:?}, or not so", commit.object, commit.before)
            })?;
            if asked.floor >= *version {
                return Err(format!("{version} came when {} had been told", asked.floor));
            }
            commit.asked = asked.line;
        }
        Ok(())
    }

    /// Everything acknowledged is there.
    fn acknowledged(&self, history: &History<'_>) -> Result<(), String> {
        let deleted: BTreeSet<(&str, u64)> = self
            .commits
            .values()
            .filter(|commit| commit.is_deletion)
            .filter_map(|commit| {
                Some((commit.object.key.as_str(), commit.before.as_ref()?.version))
            })
            .collect();
        for asked in history.asked.values() {
            let is_there = match (asked.question, asked.answer) {
                (_, Some((Answer::Written(object), _))) => {
                    let commit = self.commits.get(&object.version);
                    commit.is_some_and(|commit| !commit.is_deletion && commit.object == *object)
                }
                (Question::Delete { key, expected }, Some((Answer::Deleted, _))) => {
                    deleted.contains(&(key.as_str(), *expected))
                }
                _ => true,
            };
            if !is_there {
                return Err(format!(
                    "acknowledged and lost: {:?} {:?}",
                    asked.question, asked.answer
                ));
            }
        }
        Ok(())
    }

    /// What `key` was between what was known as `floor` was and the line `until`.
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
            .take_while(|commit| commit.asked < until)
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

/// Whether what was asked, if it was done, is what happened.
fn caused(asked: &Asked<'_>, commit: &Commit) -> bool {
    let as_told = match asked.answer {
        None | Some((Answer::Unknown(_), _)) => true,
        Some((Answer::Written(object), _)) => *object == commit.object,
        Some(_) => false,
    };
    let before = commit.before.as_ref();
    as_told
        && match asked.question {
            Question::Create { key, label, .. } => {
                before.is_none() && *key == commit.object.key && *label == commit.object.label
            }
            Question::Update { key, label, expected, .. } => {
                before.is_some_and(|before| before.version == *expected)
                    && *key == commit.object.key
                    && *label == commit.object.label
            }
            Question::Patch { key, .. } => {
                before.is_some_and(|before| before.label == commit.object.label)
                    && *key == commit.object.key
            }
            _ => false,
        }
}
