//! What each watch delivered against the commits.

use crate::check::{History, gone};
use crate::commits::{Commit, Commits};
use crate::record::{Event, Object, Question, Scope};

/// # Errors
/// The first rule that does not hold of watch `number`, if it is one.
pub fn check(
    history: &History<'_>,
    number: usize,
    commits: &Commits,
    kept: u64,
) -> Result<(), String> {
    let asked = &history.asked[&number];
    let mut events = history.delivered.get(&number).into_iter().flatten().copied().peekable();
    let (scope, mut cursor) = match asked.question {
        Question::Watch { scope, after, .. } => (scope, *after),
        Question::WatchList { scope } => {
            let mut state = Vec::new();
            while let Some(Event::Added(object)) = events.peek() {
                state.push(object.clone());
                events.next();
            }
            match events.next() {
                Some(Event::Bookmark { version, is_end_of_state: true }) => {
                    if *version < asked.floor {
                        return Err(format!(
                            "the state of {version}, when {} was told",
                            asked.floor
                        ));
                    }
                    state.sort_by(|one, other| one.key.cmp(&other.key));
                    commits.expect(scope, *version, &state)?;
                    (scope, *version)
                }
                // It was cut off.
                None => return Ok(()),
                Some(other) => return Err(format!("{other:?} within the initial state")),
            }
        }
        _ => return Ok(()),
    };
    let mut expected = commits.after(cursor).filter_map(|commit| event(scope, commit)).peekable();
    for delivered in events {
        match delivered {
            Event::Gone { newest } => gone(cursor, *newest, kept)?,
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
                let wanted = expected.next();
                if wanted.as_ref() != Some(change) {
                    return Err(format!("{change:?} was delivered instead of {wanted:?}"));
                }
                cursor = change.version().unwrap_or(cursor);
            }
        }
    }
    Ok(())
}

/// What a commit means to a watch of `scope`.
fn event(scope: &Scope, commit: &Commit) -> Option<Event> {
    let before = commit.before.as_ref().filter(|before| scope.takes(before));
    let now = !commit.is_deletion && scope.takes(&commit.object);
    let object = commit.object.clone();
    match (before, now) {
        (None, false) => None,
        (None, true) => Some(Event::Added(object)),
        (Some(_), true) => Some(Event::Modified(object)),
        // What left the selection is told in its last state there, in the version of the change.
        (Some(before), false) => {
            Some(Event::Deleted(Object { version: object.version, ..before.clone() }))
        }
    }
}
