//! Compares what each watch delivered with the commits.

use crate::check::{History, check_expired};
use crate::commits::{Commit, Commits};
use crate::record::{Event, Object, Operation, Scope};

/// # Errors
/// The first rule that watch `number` violates; other operations are skipped.
pub fn check(
    history: &History<'_>,
    number: usize,
    commits: &Commits,
    retained: u64,
) -> Result<(), String> {
    let invocation = &history.invocations[&number];
    let mut events = history.delivered.get(&number).into_iter().flatten().copied().peekable();
    let (scope, mut cursor) = match invocation.operation {
        Operation::Watch { scope, after, .. } => (scope, *after),
        Operation::WatchList { scope } => {
            let mut state = Vec::new();
            while let Some(Event::Added(object)) = events.peek() {
                state.push(object.clone());
                events.next();
            }
            match events.next() {
                Some(Event::Bookmark { version, is_end_of_state: true }) => {
                    if *version < invocation.floor {
                        return Err(format!(
                            "the state of {version}, when {} was reported",
                            invocation.floor
                        ));
                    }
                    state.sort_by(|one, other| one.key.cmp(&other.key));
                    commits.expect(scope, *version, &state)?;
                    (scope, *version)
                }
                // It was closed early.
                None => return Ok(()),
                Some(other) => return Err(format!("{other:?} within the initial state")),
            }
        }
        _ => return Ok(()),
    };
    let mut expected = commits.after(cursor).filter_map(|commit| event(scope, commit)).peekable();
    for delivered in events {
        match delivered {
            Event::Expired { newest } => check_expired(cursor, *newest, retained)?,
            Event::Bookmark { version, is_end_of_state } => {
                if *is_end_of_state || *version < cursor {
                    return Err(format!("{delivered:?} after {cursor}"));
                }
                let missed = expected.peek().and_then(Event::version);
                if missed.is_some_and(|missed| missed <= *version) {
                    return Err(format!("{delivered:?} before {:?}", expected.peek()));
                }
                cursor = *version;
            }
            change => {
                let next = expected.next();
                if next.as_ref() != Some(change) {
                    return Err(format!("{change:?} was delivered instead of {next:?}"));
                }
                cursor = change.version().unwrap_or(cursor);
            }
        }
    }
    Ok(())
}

/// The event of a commit for a watch of `scope`.
fn event(scope: &Scope, commit: &Commit) -> Option<Event> {
    let before = commit.before.as_ref().filter(|before| scope.takes(before));
    let now = !commit.is_deletion && scope.takes(&commit.object);
    let object = commit.object.clone();
    match (before, now) {
        (None, false) => None,
        (None, true) => Some(Event::Added(object)),
        (Some(_), true) => Some(Event::Modified(object)),
        // An object that leaves the selection is delivered in its last state there, with the
        // version of the change.
        (Some(before), false) => {
            Some(Event::Deleted(Object { version: object.version, ..before.clone() }))
        }
    }
}
