//! Whether one order of commits explains a history of the API.
//!
//! The resource version of a commit is the witness: it tells the order, which needs no search. The
//! commits are those that the watch of everything delivered, resumed after each kill where it was;
//! every answer and every other watch is compared with them. See `commits` and `watches`.

use std::collections::BTreeMap;

use crate::commits::Commits;
use crate::record::{Answer, Entry, Event, Mode, Object, Question, Scope};
use crate::watches;

/// What a sound history holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    pub questions: usize,
    pub commits: usize,
    /// Writes without an answer.
    pub unknown: usize,
    pub delivered: usize,
    pub gone: usize,
    pub kills: usize,
}

impl std::ops::AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.questions += other.questions;
        self.commits += other.commits;
        self.unknown += other.unknown;
        self.delivered += other.delivered;
        self.gone += other.gone;
        self.kills += other.kills;
    }
}

/// One question, what was known when it was asked, and its answer.
pub struct Asked<'h> {
    pub question: &'h Question,
    /// Line of the history.
    pub line: usize,
    /// Newest version told to anybody before.
    pub floor: u64,
    pub answer: Option<(&'h Answer, usize)>,
}

impl Asked<'_> {
    /// Whether it may have happened.
    pub fn is_open(&self) -> bool {
        matches!(self.answer, None | Some((Answer::Unknown(_), _)))
    }
}

pub struct History<'h> {
    pub asked: BTreeMap<usize, Asked<'h>>,
    pub delivered: BTreeMap<usize, Vec<&'h Event>>,
    kills: usize,
}

/// Decides whether every rule holds. `kept`: how many of the newest versions are history at least.
///
/// # Errors
/// The first violation found.
pub fn check(entries: &[Entry], kept: u64) -> Result<Summary, String> {
    let history = read(entries);
    let commits = Commits::collect(&history)?;
    for (number, asked) in &history.asked {
        answer(asked, &commits, kept).map_err(|error| {
            format!("{error}; question {number}: {:?} was told {:?}", asked.question, asked.answer)
        })?;
    }
    for number in history.asked.keys() {
        watches::check(&history, *number, &commits, kept).map_err(|error| {
            format!("{error}; watch {number}: {:?}", history.asked[number].question)
        })?;
    }
    let is_gone = |entry: &&Entry| {
        matches!(
            entry,
            Entry::Told(_, Answer::Gone { .. }) | Entry::Delivered(_, Event::Gone { .. })
        )
    };
    let writes = history.asked.values().filter(|asked| is_write(asked.question));
    Ok(Summary {
        questions: history.asked.len(),
        commits: commits.len(),
        unknown: writes.filter(|asked| asked.is_open()).count(),
        delivered: history.delivered.values().map(Vec::len).sum(),
        gone: entries.iter().filter(is_gone).count(),
        kills: history.kills,
    })
}

fn is_write(question: &Question) -> bool {
    use Question::{Create, Delete, DeleteNamespace, Patch, Update};
    matches!(
        question,
        Create { .. } | Update { .. } | Patch { .. } | Delete { .. } | DeleteNamespace { .. }
    )
}

fn read(entries: &[Entry]) -> History<'_> {
    let mut history = History { asked: BTreeMap::new(), delivered: BTreeMap::new(), kills: 0 };
    let mut floor = 0;
    for (line, entry) in entries.iter().enumerate() {
        match entry {
            Entry::Asked(number, question) => {
                let asked = Asked { question, line, floor, answer: None };
                history.asked.insert(*number, asked);
            }
            Entry::Told(number, answer) => {
                let asked = history.asked.get_mut(number).expect("answers have questions");
                asked.answer = Some((answer, line));
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

/// What was told to a question that is no watch.
fn answer(asked: &Asked<'_>, commits: &Commits, kept: u64) -> Result<(), String> {
    let Some((answer, told)) = asked.answer else { return Ok(()) };
    // Whether the key was so at some time between question and answer.
    let was = |key: &str, so: &dyn Fn(Option<&Object>) -> bool| {
        let mut states = commits.states(key, asked.floor, told);
        if states.any(so) { Ok(()) } else { Err("it was never so meanwhile".to_owned()) }
    };
    match (asked.question, answer) {
        (_, Answer::Unknown(_) | Answer::Refused(_)) | (Question::DeleteNamespace { .. }, _) => {
            Ok(())
        }
        (Question::Get { key }, Answer::Found(object)) => was(key, &|state| state == Some(object)),
        (
            Question::Get { key }
            | Question::Update { key, .. }
            | Question::Patch { key, .. }
            | Question::Delete { key, .. },
            Answer::Absent,
        ) => was(key, &|state| state.is_none()),
        (Question::Create { key, .. }, Answer::Conflict) => was(key, &|state| state.is_some()),
        (
            Question::Update { key, expected, .. } | Question::Delete { key, expected },
            Answer::Conflict,
        ) => was(key, &|state| state.is_none_or(|state| state.version != *expected)),
        (Question::List { scope, mode }, Answer::Listed { version, items }) => {
            list(asked.floor, scope, *mode, *version)?;
            commits.expect(scope, *version, items)
        }
        (Question::List { mode: Mode::Exact(version), .. }, Answer::Gone { newest }) => {
            gone(*version, *newest, kept)
        }
        // The version of the first page.
        (Question::List { mode: Mode::Pages(_), .. }, Answer::Gone { newest }) => {
            gone(asked.floor, *newest, kept)
        }
        // Compared with the commits already.
        (_, Answer::Written(_) | Answer::Deleted) => Ok(()),
        _ => Err("no such answer".to_owned()),
    }
}

fn list(floor: u64, scope: &Scope, mode: Mode, version: u64) -> Result<(), String> {
    let fresh = match mode {
        Mode::Latest | Mode::Pages(_) => version >= floor,
        Mode::Any => true,
        Mode::NotOlderThan(wanted) => version >= wanted,
        Mode::Exact(wanted) => version == wanted,
    };
    if fresh { Ok(()) } else { Err(format!("{scope:?} at {version}, when {floor} had been told")) }
}

/// Whether `version` may be forgotten when `newest` is the newest at the latest.
pub fn gone(version: u64, newest: Option<u64>, kept: u64) -> Result<(), String> {
    match newest {
        Some(newest) if version + kept > newest => {
            Err(format!("{version} is gone, while {newest} is the newest at most"))
        }
        // Nobody was told, because of a kill.
        _ => Ok(()),
    }
}
