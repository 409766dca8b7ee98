//! Compares what each watch delivered with the commits.

use std::collections::BTreeSet;

use storage::Revision;

use super::commits::Commits;
use super::{Read, Rule, Violation, violated};
use crate::record::{self, Entry, Item, Operation, Outcome};

/// Returns the number of delivered changes.
pub(super) fn check(
    history: &[Entry],
    read: &Read<'_>,
    commits: &Commits,
) -> Result<usize, Violation> {
    let mut delivered = 0;
    let mut watched = BTreeSet::new();
    for (number, items) in &read.watches {
        let Some(Operation::Watch { prefix, after }) =
            read.invocations.get(number).map(|invocation| invocation.operation)
        else {
            return violated(Rule::Requested, format!("{number} is no watch and delivers"));
        };
        let mut watch = Watch { prefix, cursor: *after, delivered: 0, commits };
        for (item, compacting) in items {
            watch.take(item, *compacting).map_err(|violation| Violation {
                message: format!(
                    "{} (watch {number} of {prefix} after {after})",
                    violation.message
                ),
                ..violation
            })?;
        }
        delivered += watch.delivered;
        if commits.are_all_of(prefix) {
            watched.insert(prefix);
        }
    }
    // Otherwise the check would miss a lost commit that no watch covered.
    let covered = watched.into_iter().map(|prefix| record::covered_revision(history, prefix)).max();
    let covered = covered.unwrap_or(0);
    if covered < commits.newest() {
        let message = format!("no watch saw all up to {}, only to {covered}", commits.newest());
        return violated(Rule::Complete, message);
    }
    Ok(delivered)
}

struct Watch<'c> {
    prefix: &'c str,
    /// Everything up to this was delivered.
    cursor: Revision,
    delivered: usize,
    commits: &'c Commits,
}

impl Watch<'_> {
    fn take(&mut self, item: &Item, compacting: Revision) -> Result<(), Violation> {
        match item {
            Item::Changes(changes) => {
                if changes.is_empty() {
                    return violated(Rule::Order, "nothing was delivered");
                }
                for change in changes {
                    let revision = change.revision;
                    if revision <= self.cursor {
                        let message = format!("{revision} after {}", self.cursor);
                        return violated(Rule::Order, message);
                    }
                    if !change.key.starts_with(self.prefix) {
                        return violated(Rule::Order, format!("{} was delivered", change.key));
                    }
                    self.complete_to(revision - 1)?;
                    self.cursor = revision;
                    self.delivered += 1;
                }
            }
            Item::Progress(revision) => {
                if *revision < self.cursor {
                    let message = format!("progress {revision} after {}", self.cursor);
                    return violated(Rule::Order, message);
                }
                self.complete_to(*revision)?;
                self.cursor = *revision;
            }
            Item::Ended(Outcome::TooOld { oldest })
                if *oldest <= self.cursor || *oldest > compacting =>
            {
                let message =
                    format!("{oldest} is the oldest, compaction was requested up to {compacting}");
                return violated(Rule::Forgotten, message);
            }
            Item::Ended(_) => {}
        }
        Ok(())
    }

    fn complete_to(&self, revision: Revision) -> Result<(), Violation> {
        match self.commits.between(self.prefix, self.cursor, revision).next() {
            Some(missed) => violated(
                Rule::Complete,
                format!("{missed} was not delivered, after {} comes {revision}", self.cursor),
            ),
            None => Ok(()),
        }
    }
}
