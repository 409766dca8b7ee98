//! The files of an embedded storage as a power cut would leave them.
//!
//! The files of a running storage are copied. What was not synced to the disk is lost, torn or
//! garbled in the copy: the log behind the last commit that was acknowledged, and the pages
//! of the database that the log still holds (a checkpoint was writing them). What was acknowledged
//! must survive all of it.
//!
//! This trusts SQLite about which bytes were synced: it does not observe the system calls.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _};
use rusqlite::{Connection, OpenFlags};
use storage::Revision;

use crate::record::{self, Entry, Operation, Outcome};
use crate::wal::Log;

const DATABASE: &str = "storage.db";
const LOG: &str = "storage.db-wal";
/// The unit that a disk writes atomically.
const SECTOR_BYTES: usize = 512;
/// How often the copy is begun again because the log was started over meanwhile.
const COPIES_MAX: usize = 100;
/// First bytes of the log, which change when it is started over.
const LOG_HEAD_BYTES: usize = 32;

/// What was acknowledged, and so must survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// The newest revision.
    pub newest: Revision,
    /// The revision that compaction has certainly reached.
    pub compacted: Revision,
    /// The last response was that a key does not exist. That response has no revision, and any
    /// commit may be the one that it shows.
    pub unnamed: bool,
}

impl Acknowledged {
    /// By the end of `entries`.
    pub fn by(entries: &[Entry]) -> Self {
        let mut calls = BTreeMap::new();
        let mut absence = None;
        let mut all = Self::default();
        for (line, entry) in entries.iter().enumerate() {
            all.newest = all.newest.max(record::reported_revision(entry).unwrap_or(0));
            match entry {
                Entry::Invoked(number, operation) => drop(calls.insert(number, (line, operation))),
                Entry::Returned(_, Outcome::Refused(None)) => absence = Some(line),
                Entry::Returned(number, outcome) => {
                    let Some((since, operation)) = calls.get(number) else { continue };
                    if let (Operation::Compact { to }, Outcome::Compacted) = (operation, outcome) {
                        all.compacted = all.compacted.max(*to);
                    }
                    // No commit before this invocation has a newer revision.
                    if Some(*since) > absence && reports_the_newest(operation, outcome) {
                        absence = None;
                    }
                }
                _ => {}
            }
        }
        all.unnamed = absence.is_some();
        all
    }
}

/// Whether the revision of a response is at least that of every commit before its invocation.
fn reports_the_newest(operation: &Operation, outcome: &Outcome) -> bool {
    let is_of_now = !matches!(
        operation,
        Operation::Get { at: Some(_), .. } | Operation::List { at: Some(_), .. }
    );
    let has_revision = matches!(
        outcome,
        Outcome::Put(_)
            | Outcome::Deleted { .. }
            | Outcome::Found { .. }
            | Outcome::Listed { .. }
            | Outcome::Newest(_)
    );
    is_of_now && has_revision
}

/// Why no copy was made.
#[derive(Debug, thiserror::Error)]
pub enum CutError {
    #[error("the files cannot be copied: {0}")]
    Files(#[from] io::Error),
    #[error("the copy cannot be read: {0}")]
    Copy(#[from] rusqlite::Error),
    #[error("the log was started over during each of {COPIES_MAX} copies")]
    Restless,
    /// What was acknowledged is not in the files, whatever the disk does.
    #[error("{acknowledged:?} was acknowledged, the files end at {found:?}")]
    Lost { acknowledged: Acknowledged, found: Acknowledged },
}

/// Copies the storage in `from`, which may be at work, to the new folder `into`, and damages what
/// was not acknowledged. `acknowledged` is what had been acknowledged before the call.
///
/// # Errors
/// `Lost` when the files do not hold `acknowledged`.
pub fn cut(
    from: &Path,
    into: &Path,
    acknowledged: Acknowledged,
    random: &mut StdRng,
) -> Result<(), CutError> {
    let (mut database, mut log) = copy(from)?;
    let synced = synced_length(&database, &log, acknowledged)?;
    if let Some(frames) = Log::read(&log[..synced]) {
        tear_pages(&mut database, &log, &frames, random);
    }
    damage_tail(&mut log, synced, random);
    fs::create_dir_all(into)?;
    fs::write(into.join(DATABASE), database)?;
    fs::write(into.join(LOG), log)?;
    Ok(())
}

/// Database and log of one point in time, except for pages that the log holds anyway.
fn copy(from: &Path) -> Result<(Vec<u8>, Vec<u8>), CutError> {
    let read_log = || match fs::read(from.join(LOG)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other,
    };
    let head = |log: &[u8]| log[..log.len().min(LOG_HEAD_BYTES)].to_vec();
    for _ in 0..COPIES_MAX {
        let before = head(&read_log()?);
        let database = fs::read(from.join(DATABASE))?;
        let log = read_log()?;
        if head(&log) == before && head(&read_log()?) == before {
            return Ok((database, log));
        }
    }
    Err(CutError::Restless)
}

/// The length of the log up to the commit after which it holds all of `acknowledged`.
fn synced_length(
    database: &[u8],
    log: &[u8],
    acknowledged: Acknowledged,
) -> Result<usize, CutError> {
    let commits: Vec<_> = Log::read(log).iter().flat_map(Log::commits).collect();
    let mut synced = None;
    let mut found = Acknowledged::default();
    for end in commits.into_iter().rev().chain([0]) {
        found = recoverable(database, &log[..end])?;
        if found.newest < acknowledged.newest || found.compacted < acknowledged.compacted {
            break;
        }
        synced = Some(end);
        if acknowledged.unnamed {
            break;
        }
    }
    synced.ok_or(CutError::Lost { acknowledged, found })
}

/// What a storage with these files would recover.
fn recoverable(database: &[u8], log: &[u8]) -> Result<Acknowledged, CutError> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join(DATABASE);
    fs::write(&file, database)?;
    fs::write(folder.path().join(LOG), log)?;
    let connection = Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let is_table = "SELECT count(*) FROM sqlite_schema WHERE name IN ('changes', 'compaction')";
    if connection.query_row(is_table, [], |row| row.get::<_, i64>(0))? < 2 {
        return Ok(Acknowledged::default());
    }
    let revision = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let compacted = revision("SELECT revision FROM compaction")? as Revision;
    let changed = revision("SELECT coalesce(max(revision), 0) FROM changes")? as Revision;
    Ok(Acknowledged { newest: changed.max(compacted), compacted, unnamed: false })
}

/// Pages that the log holds are of any age in the database, sector by sector.
fn tear_pages(database: &mut [u8], log: &[u8], frames: &Log, random: &mut StdRng) {
    for frame in &frames.frames {
        let start = (frame.page - 1) * frames.page_size;
        let Some(page) = database.get_mut(start..start + frames.page_size) else { continue };
        if random.random_range(0..2) == 0 {
            continue;
        }
        let content = &log[frame.content..frame.end];
        for (sector, other) in page.chunks_mut(SECTOR_BYTES).zip(content.chunks(SECTOR_BYTES)) {
            if random.random_range(0..3) == 0 {
                sector.copy_from_slice(other);
            }
        }
    }
}

/// Bytes behind `synced` may survive, be lost, survive in part, or be garbled.
fn damage_tail(log: &mut Vec<u8>, synced: usize, random: &mut StdRng) {
    let tail = log.len() - synced;
    match random.random_range(0..6) {
        0 => {}
        1 => log.truncate(synced),
        2 => log.truncate(synced + random.random_range(0..=tail)),
        3 => {
            log.truncate(synced + random.random_range(0..=tail));
            let mut garbage = vec![0; random.random_range(1..20_000)];
            random.fill_bytes(&mut garbage);
            log.extend(garbage);
        }
        4 => {
            for sector in log[synced..].chunks_mut(SECTOR_BYTES) {
                if random.random_range(0..3) == 0 {
                    sector.fill(0);
                }
            }
        }
        _ if tail > 0 => {
            for _ in 0..random.random_range(1..16) {
                let at = synced + random.random_range(0..tail);
                log[at] ^= 1 << random.random_range(0..8);
            }
        }
        _ => {}
    }
}
