//! Reads: one key, a range and a piece of the history, each from one snapshot of the database.
//!
//! A read at the newest revision scans `live` only, so its cost is proportional to the live keys. A
//! read at an older revision also corrects for later changes, so its cost also depends on their
//! number.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use super::checksum::Stored;
use crate::{Event, KeyValue, RangeRequest, RangeResponse, Revision, StorageError};

/// The revisions of a snapshot: states from `oldest` to `newest`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The compaction point. Events above it and states at or above it can be read.
    pub(super) oldest: Revision,
    pub(super) newest: Revision,
}

impl Bounds {
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare_cached(
            "SELECT (SELECT revision FROM compaction), (SELECT max(revision) FROM changes)",
        )?;
        statement.query_row([], |row| {
            let oldest = row.get::<_, i64>(0)? as Revision;
            let newest = row.get::<_, Option<i64>>(1)?.map_or(0, |newest| newest as Revision);
            Ok(Self { oldest, newest: newest.max(oldest) })
        })
    }

    /// Checks that the state at `requested`, and every event after it, is available.
    pub(super) fn check(&self, requested: Revision) -> Result<(), StorageError> {
        if requested < self.oldest {
            return Err(StorageError::Compacted { requested, oldest: self.oldest });
        }
        if requested > self.newest {
            return Err(StorageError::Future { requested, current: self.newest });
        }
        Ok(())
    }
}

/// A read transaction, the bounds of its snapshot, and the revision to read at.
struct Snapshot<'c> {
    transaction: Transaction<'c>,
    bounds: Bounds,
    at: Revision,
}

impl<'c> Snapshot<'c> {
    fn begin(connection: &'c Connection, at: Option<Revision>) -> Result<Self, StorageError> {
        let transaction = connection.unchecked_transaction()?;
        // The first statement fixes the snapshot.
        let bounds = Bounds::read(&transaction)?;
        if let Some(at) = at {
            bounds.check(at)?;
        }
        Ok(Self { transaction, bounds, at: at.unwrap_or(bounds.newest) })
    }

    fn is_newest(&self) -> bool {
        self.at == self.bounds.newest
    }
}

/// Reads one key. Also returns the bounds of the snapshot, so that the caller knows how new it is.
pub(super) fn get(
    connection: &Connection,
    key: &str,
    at: Option<Revision>,
) -> Result<(Revision, Option<KeyValue>, Bounds), StorageError> {
    let snapshot = Snapshot::begin(connection, at)?;
    let live = snapshot
        .transaction
        .prepare_cached(
            "SELECT l.key, l.revision, l.create_revision, d.value, d.checksum
             FROM live l LEFT JOIN data d ON d.revision = l.revision WHERE l.key = ?1",
        )?
        .query_row(params![key], stored_of)
        .optional()?;
    let unchanged = live.as_ref().is_some_and(|live| live.state.mod_revision <= snapshot.at);
    if unchanged || snapshot.is_newest() {
        let live = live.map(Stored::intact).transpose()?;
        return Ok((snapshot.at, live, snapshot.bounds));
    }
    let former = snapshot
        .transaction
        .prepare_cached(
            "SELECT key, create_revision, prev_revision FROM changes
             WHERE revision > ?1 AND key = ?2 ORDER BY revision LIMIT 1",
        )?
        .query_row(params![snapshot.at as i64, key], former_of)
        .optional()?;
    let found = match former {
        Some((key, Some(former))) => Some(former.state(key, &snapshot)?),
        _ => None,
    };
    Ok((snapshot.at, found, snapshot.bounds))
}

/// Keys with a deadline, which is in milliseconds since 1970; soonest first.
pub(super) fn deadlines(connection: &Connection) -> Result<Vec<(String, i64)>, StorageError> {
    let mut statement = connection.prepare_cached("SELECT key, deadline FROM expiry")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Live keys of a range, sorted by key, at one revision.
pub(super) fn range(
    connection: &Connection,
    request: &RangeRequest,
) -> Result<(RangeResponse, Bounds), StorageError> {
    let snapshot = Snapshot::begin(connection, request.at)?;
    let changed =
        if snapshot.is_newest() { BTreeMap::new() } else { changed_since(&snapshot, request)? };
    let limit = request.limit.unwrap_or(usize::MAX);
    let mut items = Vec::new();
    let mut formers = changed.into_iter().filter_map(|(key, former)| Some((key, former?)));
    let mut former = formers.next();
    {
        let mut statement = snapshot.transaction.prepare_cached(
            "SELECT l.key, l.revision, l.create_revision, d.value, d.checksum
             FROM live l LEFT JOIN data d ON d.revision = l.revision
             WHERE l.key >= ?1 AND l.key < ?2 AND l.revision <= ?3 ORDER BY l.key",
        )?;
        let mut rows = statement.query(params![request.start, request.end, snapshot.at as i64])?;
        while items.len() < limit {
            let Some(row) = rows.next()? else { break };
            let live = stored_of(row)?.intact()?;
            while items.len() < limit
                && let Some((key, state)) = former.take_if(|(key, _)| **key < *live.key)
            {
                items.push(state.state(key, &snapshot)?);
                former = formers.next();
            }
            if items.len() < limit {
                items.push(live);
            }
        }
    }
    while items.len() < limit
        && let Some((key, state)) = former.take()
    {
        items.push(state.state(key, &snapshot)?);
        former = formers.next();
    }
    let remaining = if items.len() < limit {
        0
    } else {
        let formers_left = former.iter().count() + formers.count();
        formers_left as u64 + live_after(&snapshot, request, items.last())?
    };
    Ok((RangeResponse { revision: snapshot.at, items, remaining }, snapshot.bounds))
}

/// Live keys of the range, unchanged since the snapshot's revision, that come after `last`.
fn live_after(
    snapshot: &Snapshot<'_>,
    request: &RangeRequest,
    last: Option<&KeyValue>,
) -> rusqlite::Result<u64> {
    let sql = match last {
        Some(_) => "SELECT count(*) FROM live WHERE key > ?1 AND key < ?2 AND revision <= ?3",
        None => "SELECT count(*) FROM live WHERE key >= ?1 AND key < ?2 AND revision <= ?3",
    };
    let start = last.map_or(request.start.as_str(), |last| &last.key);
    let count = snapshot
        .transaction
        .prepare_cached(sql)?
        .query_row(params![start, request.end, snapshot.at as i64], |row| row.get::<_, i64>(0))?;
    Ok(count as u64)
}

/// The state that a key had before its first change after the snapshot's revision.
#[derive(Clone, Copy)]
struct Former {
    create_revision: Revision,
    mod_revision: Revision,
}

impl Former {
    fn state(self, key: Arc<str>, snapshot: &Snapshot<'_>) -> Result<KeyValue, StorageError> {
        let Self { create_revision, mod_revision } = self;
        let state = KeyValue { key, value: Bytes::new(), create_revision, mod_revision };
        let stored = snapshot
            .transaction
            .prepare_cached("SELECT value, checksum FROM data WHERE revision = ?1")?
            .query_row(params![mod_revision as i64], |row| Stored::read(row, 0, 1, state.clone()))
            .optional()?;
        stored.unwrap_or_else(|| Stored::with_lost_value(state)).intact()
    }
}

/// A change's key and what the key was before it, `None` if it did not exist.
fn former_of(row: &Row<'_>) -> rusqlite::Result<(Arc<str>, Option<Former>)> {
    let create_revision = row.get::<_, i64>(1)? as Revision;
    let mod_revision = row.get::<_, i64>(2)? as Revision;
    let former = (mod_revision > 0).then_some(Former { create_revision, mod_revision });
    Ok((row.get(0)?, former))
}

fn changed_since(
    snapshot: &Snapshot<'_>,
    request: &RangeRequest,
) -> rusqlite::Result<BTreeMap<Arc<str>, Option<Former>>> {
    let mut statement = snapshot.transaction.prepare_cached(
        "SELECT key, create_revision, prev_revision FROM changes
         WHERE revision > ?1 AND key >= ?2 AND key < ?3 ORDER BY revision",
    )?;
    let mut rows = statement.query(params![snapshot.at as i64, request.start, request.end])?;
    let mut changed = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (key, former) = former_of(row)?;
        // Only the first change has the state before all changes.
        if let Entry::Vacant(entry) = changed.entry(key) {
            entry.insert(former);
        }
    }
    Ok(changed)
}

/// A piece of the history of a prefix.
pub(super) struct Chunk {
    pub(super) events: Vec<Arc<Event>>,
    /// Every event of the prefix up to and including this revision is in `events` or in an earlier
    /// chunk.
    pub(super) through: Revision,
    pub(super) bounds: Bounds,
}

/// Events of the keys that begin with `prefix`, above `after` and not above `until`, in order.
/// Stops early at about `events_max` events or `bytes_max` bytes of values.
pub(super) fn history(
    connection: &Connection,
    prefix: &str,
    after: Revision,
    until: Option<Revision>,
    (events_max, bytes_max): (usize, usize),
) -> Result<Chunk, StorageError> {
    let snapshot = Snapshot::begin(connection, None)?;
    let bounds = snapshot.bounds;
    if after < bounds.oldest {
        return Err(StorageError::Compacted { requested: after, oldest: bounds.oldest });
    }
    let until = until.unwrap_or(bounds.newest);
    let mut statement = snapshot.transaction.prepare_cached(
        "SELECT c.revision, c.key, c.create_revision, c.prev_revision, c.deleted, d.value, p.value,
                d.checksum, p.checksum
         FROM changes c
         LEFT JOIN data d ON d.revision = c.revision
         LEFT JOIN data p ON p.revision = c.prev_revision
         WHERE c.revision > ?1 AND c.revision <= ?2 AND c.key >= ?3 AND c.key < ?4
         ORDER BY c.revision",
    )?;
    let end = crate::prefix_end(prefix);
    let mut rows = statement.query(params![after as i64, until as i64, prefix, end])?;
    let (mut events, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let event = event_of(row)?;
        bytes += event_size(&event);
        let revision = event.revision;
        events.push(Arc::new(event));
        if events.len() >= events_max || bytes >= bytes_max {
            return Ok(Chunk { events, through: revision, bounds });
        }
    }
    Ok(Chunk { events, through: until, bounds })
}

/// Approximate bytes of an event in memory.
pub(super) fn event_size(event: &Event) -> usize {
    let states = event.previous.iter().chain(&event.current);
    size_of::<Event>() + event.key.len() + states.map(|state| state.value.len()).sum::<usize>()
}

fn event_of(row: &Row<'_>) -> Result<Event, StorageError> {
    let revision = row.get::<_, i64>(0)? as Revision;
    let key: Arc<str> = row.get(1)?;
    let create_revision = row.get::<_, i64>(2)? as Revision;
    let prev_revision = row.get::<_, i64>(3)? as Revision;
    let deleted: bool = row.get(4)?;
    let state = |(value, checksum), mod_revision| {
        let key = Arc::clone(&key);
        let state = KeyValue { key, value: Bytes::new(), create_revision, mod_revision };
        Stored::read(row, value, checksum, state)?.intact()
    };
    let previous = if prev_revision > 0 { Some(state((6, 8), prev_revision)?) } else { None };
    let current = if deleted { None } else { Some(state((5, 7), revision)?) };
    Ok(Event { revision, key, previous, current })
}

fn stored_of(row: &Row<'_>) -> rusqlite::Result<Stored> {
    let state = KeyValue {
        key: row.get(0)?,
        value: Bytes::new(),
        create_revision: row.get::<_, i64>(2)? as Revision,
        mod_revision: row.get::<_, i64>(1)? as Revision,
    };
    Stored::read(row, 3, 4, state)
}
