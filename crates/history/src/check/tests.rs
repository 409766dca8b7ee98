//! Small handwritten histories.

use super::{Rule, check};
use crate::record::{Change, Entry, Item, Operation, Outcome, State};

const KEY: &str = "/r/a";

fn state(value: &str, created: u64, modified: u64) -> State {
    State { key: KEY.to_owned(), value: value.to_owned(), created, modified }
}

fn put(number: u64, value: &str, expected: Option<u64>) -> Entry {
    let (key, value) = (KEY.to_owned(), value.to_owned());
    Entry::Invoked(number, Operation::Put { key, value, expected })
}

fn get(number: u64) -> Entry {
    Entry::Invoked(number, Operation::Get { key: KEY.to_owned(), at: None })
}

fn found(number: u64, revision: u64, state: Option<State>) -> Entry {
    Entry::Returned(number, Outcome::Found { revision, state })
}

fn acknowledged(number: u64, state: State) -> Entry {
    Entry::Returned(number, Outcome::Put(state))
}

/// A watch of everything, numbered 100, that delivered these states of the key.
fn watched(states: &[State]) -> Vec<Entry> {
    let operation = Operation::Watch { prefix: "/r/".to_owned(), after: 0 };
    let mut entries = vec![Entry::Invoked(100, operation), Entry::Returned(100, Outcome::Watching)];
    let mut previous = None;
    for state in states {
        let current = Some(state.clone());
        let previous = std::mem::replace(&mut previous, current.clone());
        let (revision, key) = (state.modified, KEY.to_owned());
        let change = Change { revision, key, previous, current };
        entries.push(Entry::Delivered(100, Item::Changes(vec![change])));
    }
    entries
}

fn rule(parts: &[&[Entry]]) -> Option<Rule> {
    check(&parts.concat()).err().map(|violation| violation.rule)
}

#[test]
fn a_write_without_a_response_may_have_happened_or_not() {
    let unacknowledged = [put(1, "x", None), Entry::Crashed];
    let done =
        check(&[&unacknowledged[..], &watched(&[state("x", 1, 1)])].concat()).expect("it is sound");
    assert_eq!((done.unknown, done.unknown_done, done.commits), (1, 1, 1));
    let undone = check(&[&unacknowledged[..], &watched(&[])].concat()).expect("it is sound");
    assert_eq!((undone.unknown, undone.unknown_done, undone.commits), (1, 0, 0));
}

#[test]
fn a_failed_write_must_not_have_happened() {
    let failed = Entry::Returned(1, Outcome::Failed("full".to_owned()));
    let history = [put(1, "x", None), failed];
    assert_eq!(rule(&[&history, &watched(&[])]), None);
    assert_eq!(rule(&[&history, &watched(&[state("x", 1, 1)])]), Some(Rule::Requested));
}

#[test]
fn an_acknowledged_write_must_be_seen() {
    let history = [put(1, "x", None), acknowledged(1, state("x", 1, 1))];
    assert_eq!(rule(&[&history, &watched(&[])]), Some(Rule::Complete));
    assert_eq!(rule(&[&history, &watched(&[state("x", 1, 1)])]), None);
}

#[test]
fn a_read_may_be_old_only_if_it_was_invoked_before_the_write() {
    let write = [put(1, "x", None), acknowledged(1, state("x", 1, 1))];
    let seen = watched(&[state("x", 1, 1)]);
    let late = [get(2), found(2, 0, None)];
    assert_eq!(rule(&[&write, &late, &seen]), Some(Rule::NeverBack));
    assert_eq!(rule(&[&late[..1], &write, &late[1..], &seen]), None);
}

#[test]
fn a_revision_is_not_used_again_after_a_crash() {
    let before = [put(1, "x", None), acknowledged(1, state("x", 1, 1)), get(2), found(2, 2, None)];
    // The read returned revision 2, so no later write can have that revision.
    let after = [Entry::Crashed, put(3, "y", Some(1)), acknowledged(3, state("y", 1, 2))];
    let seen = watched(&[state("x", 1, 1), state("y", 1, 2)]);
    assert_eq!(rule(&[&before, &after, &seen]), Some(Rule::NeverBack));
}

#[test]
fn a_refusal_needs_a_reason_that_was_there() {
    let write = [put(1, "x", None), acknowledged(1, state("x", 1, 1))];
    let seen = watched(&[state("x", 1, 1)]);
    let refused =
        |expected, found| [put(2, "y", expected), Entry::Returned(2, Outcome::Refused(found))];
    let there = Some(state("x", 1, 1));
    assert_eq!(rule(&[&write, &refused(None, there.clone()), &seen]), None);
    assert_eq!(rule(&[&write, &refused(Some(1), there), &seen]), Some(Rule::Compared));
    assert_eq!(rule(&[&write, &refused(Some(1), None), &seen]), Some(Rule::NeverBack));
}

#[test]
fn a_compacted_revision_is_refused_and_no_other_is() {
    let write = [put(1, "x", None), acknowledged(1, state("x", 1, 1))];
    let again = [put(2, "y", Some(1)), acknowledged(2, state("y", 1, 2))];
    let seen = watched(&[state("x", 1, 1), state("y", 1, 2)]);
    let compact =
        |response| [Entry::Invoked(3, Operation::Compact { to: 2 }), Entry::Returned(3, response)];
    let compacted = compact(Outcome::Compacted);
    let old = Entry::Invoked(4, Operation::Get { key: KEY.to_owned(), at: Some(1) });
    let too_old = [old.clone(), Entry::Returned(4, Outcome::TooOld { oldest: 2 })];
    let read = [old, found(4, 1, Some(state("x", 1, 1)))];
    assert_eq!(rule(&[&write, &again, &compacted, &too_old, &seen]), None);
    assert_eq!(rule(&[&write, &again, &too_old, &seen]), Some(Rule::Forgotten));
    assert_eq!(rule(&[&write, &again, &compacted, &read, &seen]), Some(Rule::Forgotten));
    let unknown = compact(Outcome::Unknown("crashed".to_owned()));
    assert_eq!(rule(&[&write, &again, &unknown, &read, &seen]), None);
    assert_eq!(rule(&[&write, &again, &unknown, &too_old, &seen]), None);
}

#[test]
fn progress_promises_no_more_than_was_delivered() {
    let write = [put(1, "x", None), acknowledged(1, state("x", 1, 1))];
    let mut seen = watched(&[state("x", 1, 1)]);
    seen.insert(2, Entry::Delivered(100, Item::Progress(1)));
    assert_eq!(rule(&[&write, &seen]), Some(Rule::Complete));
}
