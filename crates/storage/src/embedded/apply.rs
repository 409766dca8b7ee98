//! One write inside the writer's open transaction: compare, then change the tables.
//!
//! Nothing here commits, and no other connection sees a change until the writer commits.

use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use super::checksum::{self, Stored};
use crate::{Event, Expect, KeyValue, Revision};

/// Result of one write: the change, or the current state when the precondition failed.
pub(super) type Applied = Result<Event, Option<KeyValue>>;

/// The statements of the write path, taken from the connection's cache once per batch.
pub(super) struct Statements<'c> {
    find: CachedStatement<'c>,
    insert_data: CachedStatement<'c>,
    insert_change: CachedStatement<'c>,
    insert_live: CachedStatement<'c>,
    update_live: CachedStatement<'c>,
    delete_live: CachedStatement<'c>,
    insert_expiry: CachedStatement<'c>,
    delete_expiry: CachedStatement<'c>,
}

struct FoundState {
    state: KeyValue,
    deadline: Option<i64>,
}

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            // An outer join, so that a key whose value is lost can still be deleted.
            find: connection.prepare_cached(
                "SELECT l.revision, l.create_revision, l.deadline, d.value, d.checksum
                 FROM live l LEFT JOIN data d ON d.revision = l.revision WHERE l.key = ?1",
            )?,
            insert_data: connection.prepare_cached(
                "INSERT INTO data (revision, value, checksum) VALUES (?1, ?2, ?3)",
            )?,
            insert_change: connection.prepare_cached(
                "INSERT INTO changes (revision, key, create_revision, prev_revision, deleted)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?,
            insert_live: connection.prepare_cached(
                "INSERT INTO live (key, revision, create_revision, deadline)
                 VALUES (?1, ?2, ?2, ?3)",
            )?,
            update_live: connection
                .prepare_cached("UPDATE live SET revision = ?2, deadline = ?3 WHERE key = ?1")?,
            delete_live: connection.prepare_cached("DELETE FROM live WHERE key = ?1")?,
            insert_expiry: connection
                .prepare_cached("INSERT INTO expiry (deadline, key) VALUES (?1, ?2)")?,
            delete_expiry: connection
                .prepare_cached("DELETE FROM expiry WHERE deadline = ?1 AND key = ?2")?,
        })
    }

    /// Writes `value` as `revision`. `deadline`: milliseconds since 1970.
    pub(super) fn put(
        &mut self,
        revision: Revision,
        key: &Arc<str>,
        value: &Bytes,
        expect: Expect,
        deadline: Option<i64>,
    ) -> rusqlite::Result<Applied> {
        let found = self.find(key)?;
        let as_expected = match (expect, &found) {
            (Expect::Absent, found) => found.is_none(),
            (Expect::Revision(expected), Some(found)) => found.state.mod_revision == expected,
            (Expect::Revision(_), None) => false,
        };
        if !as_expected {
            return Ok(Err(found.map(|found| found.state)));
        }
        let row = revision as i64;
        let previous = match found {
            Some(found) => {
                if found.deadline != deadline {
                    self.remove_deadline(&found)?;
                }
                self.update_live.execute(params![key, row, deadline])?;
                if let Some(at) = deadline.filter(|_| found.deadline != deadline) {
                    self.insert_expiry.execute(params![at, key])?;
                }
                Some(found.state)
            }
            None => {
                self.insert_live.execute(params![key, row, deadline])?;
                if let Some(at) = deadline {
                    self.insert_expiry.execute(params![at, key])?;
                }
                None
            }
        };
        let create_revision = previous.as_ref().map_or(revision, |state| state.create_revision);
        let prev_revision = previous.as_ref().map_or(0, |state| state.mod_revision);
        self.insert_change.execute(params![
            row,
            key,
            create_revision as i64,
            prev_revision as i64,
            false
        ])?;
        let current = KeyValue {
            key: Arc::clone(key),
            value: value.clone(),
            create_revision,
            mod_revision: revision,
        };
        self.insert_data.execute(params![row, &value[..], checksum::of(&current)])?;
        Ok(Ok(Event { revision, key: Arc::clone(key), previous, current: Some(current) }))
    }

    /// Deletes the key as `revision`. With `expect` of `None`, its newest write does not matter.
    pub(super) fn delete(
        &mut self,
        revision: Revision,
        key: &Arc<str>,
        expect: Option<Revision>,
    ) -> rusqlite::Result<Applied> {
        let Some(found) = self.find(key)? else { return Ok(Err(None)) };
        if expect.is_some_and(|expected| expected != found.state.mod_revision) {
            return Ok(Err(Some(found.state)));
        }
        self.remove_deadline(&found)?;
        self.delete_live.execute(params![key])?;
        self.insert_change.execute(params![
            revision as i64,
            key,
            found.state.create_revision as i64,
            found.state.mod_revision as i64,
            true
        ])?;
        let key = Arc::clone(key);
        Ok(Ok(Event { revision, key, previous: Some(found.state), current: None }))
    }

    fn find(&mut self, key: &Arc<str>) -> rusqlite::Result<Option<FoundState>> {
        let found = self.find.query_row(params![key], |row| {
            let state = KeyValue {
                key: Arc::clone(key),
                value: Bytes::new(),
                create_revision: row.get::<_, i64>(1)? as Revision,
                mod_revision: row.get::<_, i64>(0)? as Revision,
            };
            let state = Stored::read(row, 3, 4, state)?.or_empty();
            Ok(FoundState { state, deadline: row.get(2)? })
        });
        found.optional()
    }

    fn remove_deadline(&mut self, found: &FoundState) -> rusqlite::Result<()> {
        if let Some(deadline) = found.deadline {
            self.delete_expiry.execute(params![deadline, found.state.key])?;
        }
        Ok(())
    }
}

/// The soonest deadline in the storage, in milliseconds since 1970.
pub(super) fn soonest_deadline(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT min(deadline) FROM expiry")?
        .query_row([], |row| row.get::<_, Option<i64>>(0))
}

/// Keys whose deadline has passed, soonest first, at most `limit`.
pub(super) fn expired_keys(
    connection: &Connection,
    now: i64,
    limit: usize,
) -> rusqlite::Result<Vec<Arc<str>>> {
    let mut statement = connection
        .prepare_cached("SELECT key FROM expiry WHERE deadline <= ?1 ORDER BY deadline LIMIT ?2")?;
    let keys = statement.query_map(params![now, limit as i64], |row| row.get::<_, Arc<str>>(0))?;
    keys.collect()
}
