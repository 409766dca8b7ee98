//! Whether one order of commits explains a history.
//!
//! The revisions are the witness: each commit has one, so the order in which commits happened is
//! told and needs no search. What remains is to look whether everything agrees with it, in time
//! that follows the length of the history:
//!
//! - [`commits`] puts the commits together from all that was told, and looks whether each follows
//!   from the state before it and was asked for;
//! - [`answers`] compares every answer with the state at its revision, and its revision with what
//!   had been told when it was asked (so answers are linearizable, across restarts too);
//! - [`watches`] compares what each watch delivered with the commits.
//!
//! The storage begins empty. A history must end with a watch of everything that was delivered up to
//! the newest revision: it tells the commits whose answers were lost. What the check cannot know is
//! when something should have happened by: that is for whoever runs the work.

mod answers;
mod commits;
#[cfg(test)]
mod tests;
mod watches;

use std::collections::BTreeMap;
use std::fmt;

use storage::Revision;

use crate::record::{self, Entry, Item, Operation, Outcome};
use commits::Commits;

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A revision is one commit.
    RevisionOnce,
    /// No answer is older than what had been told, and no commit takes a revision from before.
    NeverBack,
    /// Each commit follows from the state that the one before it left.
    Chain,
    /// Nothing happens that was not asked for, nothing that was refused, and nothing twice.
    Asked,
    /// A write happens if, and only if, its comparison holds.
    Compared,
    /// An answer is the state at its revision.
    State,
    /// A watch delivers every commit up to what it says is complete.
    Complete,
    /// A watch delivers commits in order, once, and of its prefix only.
    Order,
    /// What is forgotten is what compaction was asked to forget, and asking for it says so.
    Forgotten,
}

/// A rule that does not hold, and where.
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

/// What a sound history holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub questions: usize,
    pub commits: usize,
    /// Writes without an answer, or with one that does not know.
    pub unknown: usize,
    /// Of these, how many happened.
    pub unknown_done: usize,
    /// Changes that watches delivered.
    pub delivered: usize,
    pub crashes: usize,
}

impl std::ops::AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.questions += other.questions;
        self.commits += other.commits;
        self.unknown += other.unknown;
        self.unknown_done += other.unknown_done;
        self.delivered += other.delivered;
        self.crashes += other.crashes;
    }
}

/// One question, what was known when it was asked, and its answer.
struct Question<'h> {
    number: u64,
    operation: &'h Operation,
    /// Line of the history.
    asked: usize,
    /// Newest revision told to anybody before.
    floor: Revision,
    /// Newest revision that compaction had certainly reached before.
    compacted: Revision,
    /// `None` without an answer.
    answer: Option<Answer<'h>>,
}

struct Answer<'h> {
    outcome: &'h Outcome,
    /// Line of the history.
    told: usize,
    /// Newest revision that compaction had been asked for by then.
    compacting: Revision,
}

impl Question<'_> {
    fn outcome(&self) -> Option<&Outcome> {
        self.answer.as_ref().map(|answer| answer.outcome)
    }

    /// Whether it may have happened without being told.
    fn is_open(&self) -> bool {
        matches!(self.outcome(), None | Some(Outcome::Unknown(_)))
    }
}

/// A history, by question and by watch.
struct Read<'h> {
    questions: BTreeMap<u64, Question<'h>>,
    /// What each watch delivered, with the newest compaction asked for by then.
    watches: BTreeMap<u64, Vec<(&'h Item, Revision)>>,
    crashes: usize,
}

/// Decides whether every rule holds for `history`.
///
/// # Errors
/// The first violation found.
///
/// # Panics
/// When `history` is not one: an answer without its question.
pub fn check(history: &[Entry]) -> Result<Summary, Violation> {
    let read = read(history);
    let commits = Commits::collect(&read)?;
    answers::check(&read, &commits)?;
    let delivered = watches::check(history, &read, &commits)?;
    let open = read.questions.values().filter(|one| one.operation.is_write() && one.is_open());
    Ok(Summary {
        questions: read.questions.len(),
        commits: commits.count(),
        unknown: open.count(),
        unknown_done: commits.unknown_done(),
        delivered,
        crashes: read.crashes,
    })
}

fn read(history: &[Entry]) -> Read<'_> {
    let mut read = Read { questions: BTreeMap::new(), watches: BTreeMap::new(), crashes: 0 };
    let (mut known, mut compacted) = (0, 0);
    // A storage without room lets go of all history, and who asks may learn of that before anybody is told.
    let is_full = |entry: &Entry| matches!(entry, Entry::Told(_, Outcome::Full(_)));
    let mut compacting = if history.iter().any(is_full) { Revision::MAX } else { 0 };
    for (line, entry) in history.iter().enumerate() {
        known = known.max(record::told(entry).unwrap_or(0));
        match entry {
            Entry::Asked(number, operation) => {
                if let Operation::Compact { to } = operation {
                    compacting = compacting.max(*to);
                }
                let question = Question {
                    number: *number,
                    operation,
                    asked: line,
                    floor: known,
                    compacted,
                    answer: None,
                };
                read.questions.insert(*number, question);
            }
            Entry::Told(number, outcome) => {
                let question = read.questions.get_mut(number).expect("answers have questions");
                if let (Operation::Compact { to }, Outcome::Compacted) =
                    (question.operation, outcome)
                {
                    compacted = compacted.max(*to);
                }
                question.answer = Some(Answer { outcome, told: line, compacting });
            }
            Entry::Delivered(number, item) => {
                read.watches.entry(*number).or_default().push((item, compacting));
            }
            Entry::Crashed => read.crashes += 1,
        }
    }
    read
}
