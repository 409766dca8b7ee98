//! Every answer against the commits.

use storage::Revision;

use super::commits::Commits;
use super::{Answer, Question, Read, Rule, Violation, violated};
use crate::record::{Operation, Outcome, State};

pub(super) fn check(read: &Read<'_>, commits: &Commits) -> Result<(), Violation> {
    for question in read.questions.values() {
        let Some(answer) = &question.answer else { continue };
        let checked = match answer.outcome {
            Outcome::Put(state) => check_put(question, state),
            Outcome::Deleted { last, .. } => check_deleted(question, last),
            Outcome::Refused(found) => check_refused(question, answer, found.as_ref(), commits),
            Outcome::Found { revision, state } => {
                check_found(question, *revision, state.as_ref(), commits)
            }
            Outcome::Listed { revision, items, remaining } => {
                check_listed(question, *revision, (items, *remaining), commits)
            }
            Outcome::Newest(revision) => check_age(question, *revision),
            Outcome::Gone { oldest } => check_gone(question, answer, *oldest),
            Outcome::Future { newest } => check_future(question, *newest),
            Outcome::Watching
            | Outcome::Compacted
            | Outcome::Failed(_)
            | Outcome::Full(_)
            | Outcome::Unknown(_) => Ok(()),
        };
        checked.map_err(|violation| Violation {
            message: format!(
                "{} (question {}: {:?})",
                violation.message, question.number, question.operation
            ),
            ..violation
        })?;
    }
    Ok(())
}

fn check_put(question: &Question<'_>, told: &State) -> Result<(), Violation> {
    let Operation::Put { key, value, .. } = question.operation else {
        return violated(Rule::Asked, format!("it was told {told:?}"));
    };
    if (key, value) != (&told.key, &told.value) {
        return violated(Rule::State, format!("it was told {told:?}"));
    }
    Ok(())
}

fn check_deleted(question: &Question<'_>, last: &State) -> Result<(), Violation> {
    match question.operation {
        Operation::Delete { key, .. } if *key == last.key => Ok(()),
        _ => violated(Rule::Asked, format!("it was told of the deletion of {last:?}")),
    }
}

/// What was found must not be what was expected, and must have been there at some time between the
/// question and the answer.
fn check_refused(
    question: &Question<'_>,
    answer: &Answer<'_>,
    found: Option<&State>,
    commits: &Commits,
) -> Result<(), Violation> {
    let (key, expected) = match question.operation {
        Operation::Put { key, expected, .. } => (key, *expected),
        Operation::Delete { key, expected } => (key, Some(*expected)),
        _ => return violated(Rule::Asked, "nothing was compared"),
    };
    if found.map(|found| found.modified) == expected {
        return violated(Rule::Compared, format!("it was refused on {found:?}"));
    }
    let floor = question.floor;
    let was_there = match found {
        Some(found) => commits.end_of(key, found.modified) > floor,
        None => {
            let fits = |(since, until): &(Revision, Revision)| {
                *until > floor && commits.asked(*since) < answer.told
            };
            commits.absences(key).iter().any(fits)
        }
    };
    if !was_there {
        let message = format!("{found:?} was found, which {floor} had ended");
        return violated(Rule::NeverBack, message);
    }
    Ok(())
}

fn check_found(
    question: &Question<'_>,
    revision: Revision,
    state: Option<&State>,
    commits: &Commits,
) -> Result<(), Violation> {
    check_age(question, revision)?;
    let Operation::Get { key, .. } = question.operation else {
        return violated(Rule::Asked, "nothing was got");
    };
    let there = commits.state_at(key, revision);
    if there != state {
        return violated(Rule::State, format!("{state:?} at {revision}, where {there:?} was"));
    }
    Ok(())
}

fn check_listed(
    question: &Question<'_>,
    revision: Revision,
    (items, remaining): (&[State], u64),
    commits: &Commits,
) -> Result<(), Violation> {
    check_age(question, revision)?;
    let Operation::List { prefix, limit, .. } = question.operation else {
        return violated(Rule::Asked, "nothing was listed");
    };
    let there = commits.list(prefix, revision);
    let shown = limit.unwrap_or(usize::MAX).min(there.len());
    if there[..shown].iter().copied().ne(items) || remaining != (there.len() - shown) as u64 {
        let message = format!("{items:?} and {remaining} more at {revision}, where {there:?} was");
        return violated(Rule::State, message);
    }
    Ok(())
}

/// An answer at the newest revision is not older than anything told before; one at a revision is of
/// that revision, which is not forgotten.
fn check_age(question: &Question<'_>, revision: Revision) -> Result<(), Violation> {
    match asked_at(question.operation) {
        None if revision < question.floor => {
            let message = format!("it was answered at {revision}, {} was told", question.floor);
            violated(Rule::NeverBack, message)
        }
        Some(at) if at != revision => {
            violated(Rule::State, format!("it was answered at {revision}"))
        }
        Some(at) if at < question.compacted => {
            violated(Rule::Forgotten, format!("{} was compacted before", question.compacted))
        }
        _ => Ok(()),
    }
}

fn asked_at(operation: &Operation) -> Option<Revision> {
    match operation {
        Operation::Get { at, .. } | Operation::List { at, .. } => *at,
        Operation::Watch { after, .. } => Some(*after),
        Operation::Compact { to } => Some(*to),
        _ => None,
    }
}

fn check_gone(
    question: &Question<'_>,
    answer: &Answer<'_>,
    oldest: Revision,
) -> Result<(), Violation> {
    let at = asked_at(question.operation);
    if at.is_none_or(|at| at >= oldest) || oldest > answer.compacting {
        let message = format!("{oldest} is the oldest, {} was asked", answer.compacting);
        return violated(Rule::Forgotten, message);
    }
    Ok(())
}

fn check_future(question: &Question<'_>, newest: Revision) -> Result<(), Violation> {
    if asked_at(question.operation).is_none_or(|at| at <= newest) || newest < question.floor {
        let message = format!("{newest} is the newest, {} was told", question.floor);
        return violated(Rule::NeverBack, message);
    }
    Ok(())
}
