//! Whether one order of commits explains a history of the API.
//!
//! The resource version of a commit gives the order, so no search is needed. The commits are those
//! that the watch of everything delivered; after each kill it resumes at its last version. Every
//! response and every other watch is compared with them. See `commits` and `watches`.

use std::collections::BTreeMap;

use crate::commits::Commits;
use crate::record::{Entry, Event, Mode, Object, Operation, Outcome, Scope};
use crate::watches;

/// Counts of a sound history.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    pub invocations: usize,
    pub commits: usize,
    /// Writes with an unknown outcome.
    pub unknown: usize,
    pub delivered: usize,
    pub expired: usize,
    pub kills: usize,
}

impl std::ops::AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.invocations += other.invocations;
        self.commits += other.commits;
        self.unknown += other.unknown;
        self.delivered += other.delivered;
        self.expired += other.expired;
        self.kills += other.kills;
    }
}

/// One invocation, what was known when it was made, and its outcome.
pub struct Invocation<'h> {
    pub operation: &'h Operation,
    /// Line of the history.
    pub line: usize,
    /// Newest version reported before.
    pub floor: u64,
    pub outcome: Option<(&'h Outcome, usize)>,
}

impl Invocation<'_> {
    /// Whether it may have happened.
    pub fn is_open(&self) -> bool {
        matches!(self.outcome, None | Some((Outcome::Unknown(_), _)))
    }
}

pub struct History<'h> {
    pub invocations: BTreeMap<usize, Invocation<'h>>,
    pub delivered: BTreeMap<usize, Vec<&'h Event>>,
    kills: usize,
}

/// Decides whether every rule holds. `retained`: how many of the newest versions are retained at
/// least.
///
/// # Errors
/// The first violation found.
pub fn check(entries: &[Entry], retained: u64) -> Result<Summary, String> {
    let history = read(entries);
    let commits = Commits::collect(&history)?;
    for (number, invocation) in &history.invocations {
        check_outcome(invocation, &commits, retained).map_err(|error| {
            format!(
                "{error}; invocation {number}: {:?} returned {:?}",
                invocation.operation, invocation.outcome
            )
        })?;
    }
    for number in history.invocations.keys() {
        watches::check(&history, *number, &commits, retained).map_err(|error| {
            format!("{error}; watch {number}: {:?}", history.invocations[number].operation)
        })?;
    }
    let is_expired = |entry: &&Entry| {
        matches!(
            entry,
            Entry::Returned(_, Outcome::Expired { .. })
                | Entry::Delivered(_, Event::Expired { .. })
        )
    };
    let writes = history.invocations.values().filter(|invocation| is_write(invocation.operation));
    Ok(Summary {
        invocations: history.invocations.len(),
        commits: commits.len(),
        unknown: writes.filter(|invocation| invocation.is_open()).count(),
        delivered: history.delivered.values().map(Vec::len).sum(),
        expired: entries.iter().filter(is_expired).count(),
        kills: history.kills,
    })
}

fn is_write(operation: &Operation) -> bool {
    use Operation::{Create, Delete, DeleteNamespace, Patch, Update};
    matches!(
        operation,
        Create { .. } | Update { .. } | Patch { .. } | Delete { .. } | DeleteNamespace { .. }
    )
}

fn read(entries: &[Entry]) -> History<'_> {
    let mut history =
        History { invocations: BTreeMap::new(), delivered: BTreeMap::new(), kills: 0 };
    let mut floor = 0;
    for (line, entry) in entries.iter().enumerate() {
        match entry {
            Entry::Invoked(number, operation) => {
                let invocation = Invocation { operation, line, floor, outcome: None };
                history.invocations.insert(*number, invocation);
            }
            Entry::Returned(number, outcome) => {
                let invocation =
                    history.invocations.get_mut(number).expect("outcomes have invocations");
                invocation.outcome = Some((outcome, line));
            }
            Entry::Delivered(number, event) => {
                history.delivered.entry(*number).or_default().push(event);
            }
            Entry::Killed => history.kills += 1,
        }
        floor = floor.max(entry.version().unwrap_or(0));
    }
    history
}

/// Checks the outcome of an operation other than a watch.
fn check_outcome(
    invocation: &Invocation<'_>,
    commits: &Commits,
    retained: u64,
) -> Result<(), String> {
    let Some((outcome, returned_line)) = invocation.outcome else { return Ok(()) };
    // Whether the key had such a state at some time between invocation and response.
    let was = |key: &str, so: &dyn Fn(Option<&Object>) -> bool| {
        let mut states = commits.states(key, invocation.floor, returned_line);
        if states.any(so) { Ok(()) } else { Err("it never had such a state meanwhile".to_owned()) }
    };
    match (invocation.operation, outcome) {
        (_, Outcome::Unknown(_) | Outcome::Refused(_)) | (Operation::DeleteNamespace { .. }, _) => {
            Ok(())
        }
        (Operation::Get { key }, Outcome::Found(object)) => {
            was(key, &|state| state == Some(object))
        }
        (
            Operation::Get { key }
            | Operation::Update { key, .. }
            | Operation::Patch { key, .. }
            | Operation::Delete { key, .. },
            Outcome::Absent,
        ) => was(key, &|state| state.is_none()),
        (Operation::Create { key, .. }, Outcome::Conflict) => was(key, &|state| state.is_some()),
        (
            Operation::Update { key, expected, .. } | Operation::Delete { key, expected },
            Outcome::Conflict,
        ) => was(key, &|state| state.is_none_or(|state| state.version != *expected)),
        (Operation::List { scope, mode }, Outcome::Listed { version, items }) => {
            check_age(invocation.floor, scope, *mode, *version)?;
            commits.expect(scope, *version, items)
        }
        (Operation::List { mode: Mode::Exact(version), .. }, Outcome::Expired { newest }) => {
            check_expired(*version, *newest, retained)
        }
        // The version of the first page.
        (Operation::List { mode: Mode::Pages(_), .. }, Outcome::Expired { newest }) => {
            check_expired(invocation.floor, *newest, retained)
        }
        // Compared with the commits already.
        (_, Outcome::Written(_) | Outcome::Deleted) => Ok(()),
        _ => Err("no such outcome".to_owned()),
    }
}

fn check_age(floor: u64, scope: &Scope, mode: Mode, version: u64) -> Result<(), String> {
    let fresh = match mode {
        Mode::Latest | Mode::Pages(_) => version >= floor,
        Mode::Any => true,
        Mode::NotOlderThan(requested) => version >= requested,
        Mode::Exact(requested) => version == requested,
    };
    if fresh {
        Ok(())
    } else {
        Err(format!("{scope:?} at {version}, when {floor} had been reported"))
    }
}

/// Checks that `version` may be expired when the newest version is `newest` at most.
pub fn check_expired(version: u64, newest: Option<u64>, retained: u64) -> Result<(), String> {
    match newest {
        Some(newest) if version + retained > newest => {
            Err(format!("{version} has expired, while {newest} is the newest at most"))
        }
        // The newest version was not reported, because of a kill.
        _ => Ok(()),
    }
}
