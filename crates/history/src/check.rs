//! Whether one order of commits explains a history.
//!
//! Each commit has a revision, so the order of commits is recorded and needs no search. The check
//! only compares everything else with that order, in time proportional to the length of the
//! history:
//!
//! - [`commits`] reconstructs the commits from all responses and deliveries, and checks that each
//!   follows from the state before it and was requested;
//! - [`responses`] compares every response with the state at its revision, and its revision with
//!   those reported before the invocation (so responses are linearizable, across restarts too);
//! - [`watches`] compares what each watch delivered with the commits.
//!
//! The storage begins empty. A history must end with a watch of everything that was delivered up to
//! the newest revision: it shows the commits whose responses were lost. The check has no deadlines:
//! the caller that runs the work enforces them.

mod commits;
mod responses;
#[cfg(test)]
mod tests;
mod watches;

use std::collections::BTreeMap;
use std::fmt;

use storage::Revision;

use crate::record::{self, Entry, Item, Operation, Outcome};
use commits::Commits;

/// A property that every history must satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A revision identifies exactly one commit.
    RevisionOnce,
    /// No response is older than a revision reported before, and no commit has such a revision.
    NeverBack,
    /// Each commit follows from the state that the one before it left.
    Chain,
    /// Nothing happens that was not requested, nothing that was refused, and nothing twice.
    Requested,
    /// A write happens if, and only if, its comparison holds.
    Compared,
    /// A response is the state at its revision.
    State,
    /// A watch delivers every commit up to the revision that it reports as complete.
    Complete,
    /// A watch delivers commits in order, once, and of its prefix only.
    Order,
    /// Only compacted revisions are unavailable, and requests for them are refused as such.
    Forgotten,
}

/// A violated rule, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Violation {
    pub rule: Rule,
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.message)
    }
}

fn violated<T>(rule: Rule, message: impl Into<String>) -> Result<T, Violation> {
    Err(Violation { rule, message: message.into() })
}

/// Counts of a sound history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub invocations: usize,
    pub commits: usize,
    /// Writes without a response, or with an unknown outcome.
    pub unknown: usize,
    /// Of these, how many happened.
    pub unknown_done: usize,
    /// Changes that watches delivered.
    pub delivered: usize,
    pub crashes: usize,
}

impl std::ops::AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.invocations += other.invocations;
        self.commits += other.commits;
        self.unknown += other.unknown;
        self.unknown_done += other.unknown_done;
        self.delivered += other.delivered;
        self.crashes += other.crashes;
    }
}

/// One invocation, what was known when it was made, and its response.
struct Invocation<'h> {
    number: u64,
    operation: &'h Operation,
    /// Line of the history.
    invoked_line: usize,
    /// Newest revision reported before.
    floor: Revision,
    /// Newest revision that compaction had certainly reached before.
    compacted: Revision,
    /// `None` when there was no response.
    response: Option<Response<'h>>,
}

struct Response<'h> {
    outcome: &'h Outcome,
    /// Line of the history.
    responded_line: usize,
    /// Newest revision up to which compaction had been requested by then.
    compacting: Revision,
}

impl Invocation<'_> {
    fn outcome(&self) -> Option<&Outcome> {
        self.response.as_ref().map(|response| response.outcome)
    }

    /// Whether it may have happened without an acknowledgement.
    fn is_open(&self) -> bool {
        matches!(self.outcome(), None | Some(Outcome::Unknown(_)))
    }
}

/// A history, by invocation and by watch.
struct Read<'h> {
    invocations: BTreeMap<u64, Invocation<'h>>,
    /// What each watch delivered, with the newest compaction requested by then.
    watches: BTreeMap<u64, Vec<(&'h Item, Revision)>>,
    crashes: usize,
}

/// Decides whether every rule holds for `history`.
///
/// # Errors
/// The first violation found.
///
/// # Panics
/// When `history` is malformed: a response without its invocation.
pub fn check(history: &[Entry]) -> Result<Summary, Violation> {
    let read = read(history);
    let commits = Commits::collect(&read)?;
    responses::check(&read, &commits)?;
    let delivered = watches::check(history, &read, &commits)?;
    let open = read.invocations.values().filter(|one| one.operation.is_write() && one.is_open());
    Ok(Summary {
        invocations: read.invocations.len(),
        commits: commits.count(),
        unknown: open.count(),
        unknown_done: commits.unknown_done(),
        delivered,
        crashes: read.crashes,
    })
}

fn read(history: &[Entry]) -> Read<'_> {
    let mut read = Read { invocations: BTreeMap::new(), watches: BTreeMap::new(), crashes: 0 };
    let (mut known, mut compacted) = (0, 0);
    // A storage on a full disk compacts all history. A client may see that before any refusal
    // is recorded.
    let is_full = |entry: &Entry| matches!(entry, Entry::Returned(_, Outcome::Full(_)));
    let mut compacting = if history.iter().any(is_full) { Revision::MAX } else { 0 };
    for (line, entry) in history.iter().enumerate() {
        known = known.max(record::reported_revision(entry).unwrap_or(0));
        match entry {
            Entry::Invoked(number, operation) => {
                if let Operation::Compact { to } = operation {
                    compacting = compacting.max(*to);
                }
                let invocation = Invocation {
                    number: *number,
                    operation,
                    invoked_line: line,
                    floor: known,
                    compacted,
                    response: None,
                };
                read.invocations.insert(*number, invocation);
            }
            Entry::Returned(number, outcome) => {
                let invocation =
                    read.invocations.get_mut(number).expect("responses have invocations");
                if let (Operation::Compact { to }, Outcome::Compacted) =
                    (invocation.operation, outcome)
                {
                    compacted = compacted.max(*to);
                }
                invocation.response = Some(Response { outcome, responded_line: line, compacting });
            }
            Entry::Delivered(number, item) => {
                read.watches.entry(*number).or_default().push((item, compacting));
            }
            Entry::Crashed => read.crashes += 1,
        }
    }
    read
}
