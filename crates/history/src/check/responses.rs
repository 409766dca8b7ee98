//! Compares every response with the commits.

use storage::Revision;

use super::commits::Commits;
use super::{Invocation, Read, Response, Rule, Violation, violated};
use crate::record::{Operation, Outcome, State};

pub(super) fn check(read: &Read<'_>, commits: &Commits) -> Result<(), Violation> {
    for invocation in read.invocations.values() {
        let Some(response) = &invocation.response else { continue };
        let checked = match response.outcome {
            Outcome::Put(state) => check_put(invocation, state),
            Outcome::Deleted { last, .. } => check_deleted(invocation, last),
            Outcome::Refused(found) => check_refused(invocation, response, found.as_ref(), commits),
            Outcome::Found { revision, state } => {
                check_found(invocation, *revision, state.as_ref(), commits)
            }
            Outcome::Listed { revision, items, remaining } => {
                check_listed(invocation, *revision, (items, *remaining), commits)
            }
            Outcome::Newest(revision) => check_age(invocation, *revision),
            Outcome::TooOld { oldest } => check_compacted(invocation, response, *oldest),
            Outcome::Future { newest } => check_future(invocation, *newest),
            Outcome::Watching
            | Outcome::Compacted
            | Outcome::Failed(_)
            | Outcome::Full(_)
            | Outcome::Unknown(_) => Ok(()),
        };
        checked.map_err(|violation| Violation {
            message: format!(
                "{} (invocation {}: {:?})",
                violation.message, invocation.number, invocation.operation
            ),
            ..violation
        })?;
    }
    Ok(())
}

fn check_put(invocation: &Invocation<'_>, returned: &State) -> Result<(), Violation> {
    let Operation::Put { key, value, .. } = invocation.operation else {
        return violated(Rule::Requested, format!("the response was {returned:?}"));
    };
    if (key, value) != (&returned.key, &returned.value) {
        return violated(Rule::State, format!("the response was {returned:?}"));
    }
    Ok(())
}

fn check_deleted(invocation: &Invocation<'_>, last: &State) -> Result<(), Violation> {
    match invocation.operation {
        Operation::Delete { key, .. } if *key == last.key => Ok(()),
        _ => violated(Rule::Requested, format!("the response was the deletion of {last:?}")),
    }
}

/// The state that was found must differ from the expected one, and must have existed at some time
/// between the invocation and the response.
fn check_refused(
    invocation: &Invocation<'_>,
    response: &Response<'_>,
    found: Option<&State>,
    commits: &Commits,
) -> Result<(), Violation> {
    let (key, expected) = match invocation.operation {
        Operation::Put { key, expected, .. } => (key, *expected),
        Operation::Delete { key, expected } => (key, Some(*expected)),
        _ => return violated(Rule::Requested, "nothing was compared"),
    };
    if found.map(|found| found.modified) == expected {
        return violated(Rule::Compared, format!("it was refused on {found:?}"));
    }
    let floor = invocation.floor;
    let was_there = match found {
        Some(found) => commits.end_of(key, found.modified) > floor,
        None => {
            let fits = |(since, until): &(Revision, Revision)| {
                *until > floor && commits.invoked_line(*since) < response.responded_line
            };
            commits.absences(key).iter().any(fits)
        }
    };
    if !was_there {
        let message = format!("{found:?} was found, which had ended by {floor}");
        return violated(Rule::NeverBack, message);
    }
    Ok(())
}

fn check_found(
    invocation: &Invocation<'_>,
    revision: Revision,
    state: Option<&State>,
    commits: &Commits,
) -> Result<(), Violation> {
    check_age(invocation, revision)?;
    let Operation::Get { key, .. } = invocation.operation else {
        return violated(Rule::Requested, "it was no get");
    };
    let there = commits.state_at(key, revision);
    if there != state {
        return violated(Rule::State, format!("{state:?} at {revision}, where {there:?} was"));
    }
    Ok(())
}

fn check_listed(
    invocation: &Invocation<'_>,
    revision: Revision,
    (items, remaining): (&[State], u64),
    commits: &Commits,
) -> Result<(), Violation> {
    check_age(invocation, revision)?;
    let Operation::List { prefix, limit, .. } = invocation.operation else {
        return violated(Rule::Requested, "it was no list");
    };
    let there = commits.list(prefix, revision);
    let shown = limit.unwrap_or(usize::MAX).min(there.len());
    if there[..shown].iter().copied().ne(items) || remaining != (there.len() - shown) as u64 {
        let message = format!("{items:?} and {remaining} more at {revision}, where {there:?} was");
        return violated(Rule::State, message);
    }
    Ok(())
}

/// A response at the newest revision is not older than any revision reported before. A response at
/// a given revision is of that revision, which is not compacted.
fn check_age(invocation: &Invocation<'_>, revision: Revision) -> Result<(), Violation> {
    match requested_revision(invocation.operation) {
        None if revision < invocation.floor => {
            let message =
                format!("the response is of {revision}, {} was reported before", invocation.floor);
            violated(Rule::NeverBack, message)
        }
        Some(at) if at != revision => {
            violated(Rule::State, format!("the response is of {revision}"))
        }
        Some(at) if at < invocation.compacted => {
            violated(Rule::Forgotten, format!("{} was compacted before", invocation.compacted))
        }
        _ => Ok(()),
    }
}

fn requested_revision(operation: &Operation) -> Option<Revision> {
    match operation {
        Operation::Get { at, .. } | Operation::List { at, .. } => *at,
        Operation::Watch { after, .. } => Some(*after),
        Operation::Compact { to } => Some(*to),
        _ => None,
    }
}

fn check_compacted(
    invocation: &Invocation<'_>,
    response: &Response<'_>,
    oldest: Revision,
) -> Result<(), Violation> {
    let at = requested_revision(invocation.operation);
    if at.is_none_or(|at| at >= oldest) || oldest > response.compacting {
        let message = format!(
            "{oldest} is the oldest, compaction was requested up to {}",
            response.compacting
        );
        return violated(Rule::Forgotten, message);
    }
    Ok(())
}

fn check_future(invocation: &Invocation<'_>, newest: Revision) -> Result<(), Violation> {
    if requested_revision(invocation.operation).is_none_or(|at| at <= newest)
        || newest < invocation.floor
    {
        let message = format!("{newest} is the newest, {} was reported before", invocation.floor);
        return violated(Rule::NeverBack, message);
    }
    Ok(())
}
