//! Flaky tests that runs have met are in the ledger, and few of its entries are open.

use anyhow::Result;

use super::{Complaint, Tree};
use crate::flaky::{self, Entry, LEDGER, OPEN_MAX, State};

pub fn check(tree: &Tree) -> Result<Vec<Complaint>> {
    let Some(ledger) = tree.files.iter().find(|source| source.path.ends_with(LEDGER)) else {
        return Ok(Vec::new());
    };
    let mut complaints = Vec::new();
    let mut entries: Vec<Entry> = Vec::new();
    for row in flaky::entries(&ledger.text) {
        match row {
            Ok(entry) => entries.push(entry),
            Err((line, problem)) => complaints.push(ledger.complain(line, problem)),
        }
    }
    let open: Vec<&Entry> = entries.iter().filter(|entry| entry.state == State::Open).collect();
    for entry in &open {
        let test = entry.test.rsplit("::").next().unwrap_or(entry.test);
        let mut sources =
            tree.files.iter().filter(|source| source.path.extension() != Some("md".as_ref()));
        if !sources.any(|source| source.text.contains(test)) {
            complaints.push(ledger.complain(entry.line, format!("there is no test '{test}'")));
        }
    }
    if open.len() > OPEN_MAX {
        let text = format!(
            "{} entries are open, at most {OPEN_MAX} may be: mend one before anything new",
            open.len()
        );
        complaints.push(ledger.complain(0, text));
    }
    for (test, day) in flaky::without_entry(&flaky::met(&tree.root)?, &entries) {
        let text = format!("'{test}' was flaky on {day}: add a row with the suspected cause");
        complaints.push(ledger.complain(0, text));
    }
    Ok(complaints)
}
