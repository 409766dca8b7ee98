//! The objects of one type, by columns. Independent of the caller: each request states what its
//! caller may see.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::column::{FieldColumn, Sieve};
use crate::collection;
use crate::collection::listing::{Page, cut};
use crate::collection::query::ListQuery;
use crate::journal::{ObjectChange, Recorded};
use crate::state;
use crate::types::context::{Caller, Presentation};
use crate::types::descriptor::Descriptor;
use crate::types::registry::Registry;
use crate::types::store::{Key, Visible};
use crate::types::urls::Urls;

/// The fields that lists are filtered by, each with whether lists are also sorted by it.
pub(super) type Columns = BTreeMap<String, bool>;

struct Row {
    id: Box<str>,
    object: Bytes,
    /// See [`ObjectTable::unsettled`].
    settles_at: Option<Timestamp>,
}

/// See the module.
pub(super) struct ObjectTable {
    descriptor: Arc<Descriptor>,
    registry: Registry,
    /// By slot. Empty slots are in `free`.
    rows: Vec<Option<Row>>,
    free: Vec<u32>,
    /// Invariant: the slots in use, sorted by id. The order of each sorted column holds the same
    /// slots, by text and id.
    by_id: Vec<u32>,
    columns: Vec<FieldColumn>,
    /// Slots whose columns may change with time alone, by the time at which to evaluate them again.
    unsettled: BTreeSet<(Timestamp, u32)>,
}

/// A page whose resources are not rendered yet.
pub(super) struct FoundPage {
    pub page: Page,
    /// As JSON, in order.
    pub objects: Vec<Bytes>,
}

/// The values of the columns of one object.
struct ColumnValues {
    fields: Map<String, Value>,
    settles_at: Option<Timestamp>,
}

impl ObjectTable {
    /// An empty table of the type, with these columns.
    pub fn new(descriptor: Arc<Descriptor>, registry: Registry, columns: &Columns) -> Self {
        let column = |(name, is_sorted): (&String, &bool)| {
            let default = descriptor.fields.get(name).and_then(|field| field.default.clone());
            FieldColumn::new(name, default, *is_sorted)
        };
        let columns = columns.iter().map(column).collect();
        let (rows, free, by_id) = (Vec::new(), Vec::new(), Vec::new());
        Self { descriptor, registry, rows, free, by_id, columns, unsettled: BTreeSet::new() }
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Inserts all objects into an empty table.
    pub fn fill(&mut self, objects: Vec<Recorded>, now: Timestamp) {
        for Recorded { key, bytes } in objects {
            if let Some(shown) = self.column_values(&bytes, now) {
                self.add(self.id_of(&key), bytes, &shown);
            }
        }
        let mut by_id: Vec<u32> = (0..).take(self.rows.len()).collect();
        by_id.sort_by(|a, b| id(&self.rows, *a).cmp(id(&self.rows, *b)));
        self.columns.iter_mut().for_each(|column| column.sort(&by_id));
        self.by_id = by_id;
    }

    /// Applies changes in order.
    pub fn apply(&mut self, changes: Vec<ObjectChange>, now: Timestamp) {
        for change in changes {
            match change {
                ObjectChange::Stored(Recorded { key, bytes }) => {
                    self.put(self.id_of(&key), bytes, now)
                }
                ObjectChange::Deleted(key) => self.remove(&self.id_of(&key)),
            }
        }
    }

    /// Evaluates the slots again whose columns may have changed with time.
    pub fn settle(&mut self, now: Timestamp) {
        let later = self.unsettled.split_off(&(now, u32::MAX));
        for (_, slot) in std::mem::replace(&mut self.unsettled, later) {
            if let Some(Row { id, object, .. }) = &self.rows[slot as usize] {
                self.put(id.to_string(), object.clone(), now);
            }
        }
    }

    fn put(&mut self, id: String, bytes: Bytes, now: Timestamp) {
        let Some(shown) = self.column_values(&bytes, now) else {
            self.remove(&id);
            return;
        };
        match self.position_of(&id) {
            Ok(at) => self.replace(self.by_id[at], bytes, &shown),
            Err(at) => {
                let slot = self.add(id, bytes, &shown);
                self.by_id.insert(at, slot);
                for column in &mut self.columns {
                    column.insert_in_order(slot, |slot| self::id(&self.rows, slot));
                }
            }
        }
    }

    /// Inserts the object into a slot, but not into the orders.
    fn add(&mut self, id: String, object: Bytes, shown: &ColumnValues) -> u32 {
        let row = Some(Row { id: id.into(), object, settles_at: shown.settles_at });
        let slot = match self.free.pop() {
            Some(slot) => {
                self.rows[slot as usize] = row;
                slot
            }
            None => {
                self.rows.push(row);
                u32::try_from(self.rows.len() - 1).expect("an index is smaller than that")
            }
        };
        for column in &mut self.columns {
            column.set(slot, shown.fields.get(&column.name));
        }
        self.unsettled.extend(shown.settles_at.map(|at| (at, slot)));
        slot
    }

    fn replace(&mut self, slot: u32, object: Bytes, shown: &ColumnValues) {
        let id = |slot| self::id(&self.rows, slot);
        for column in &mut self.columns {
            let value = shown.fields.get(&column.name);
            if !column.has(slot, value) {
                column.remove_from_order(slot, id);
                column.clear(slot);
                column.set(slot, value);
                column.insert_in_order(slot, id);
            }
        }
        if let Some(row) = &mut self.rows[slot as usize] {
            row.object = object;
            if let Some(at) = std::mem::replace(&mut row.settles_at, shown.settles_at) {
                self.unsettled.remove(&(at, slot));
            }
            self.unsettled.extend(shown.settles_at.map(|at| (at, slot)));
        }
    }

    fn remove(&mut self, id: &str) {
        let Ok(at) = self.position_of(id) else { return };
        let slot = self.by_id.remove(at);
        for column in &mut self.columns {
            column.remove_from_order(slot, |slot| self::id(&self.rows, slot));
            column.clear(slot);
        }
        let row = self.rows[slot as usize].take();
        if let Some(at) = row.and_then(|row| row.settles_at) {
            self.unsettled.remove(&(at, slot));
        }
        self.free.push(slot);
    }

    /// The position of the id in `by_id`, or where it would be inserted.
    fn position_of(&self, id: &str) -> Result<usize, usize> {
        self.by_id.binary_search_by(|slot| self::id(&self.rows, *slot).cmp(id))
    }

    fn id_of(&self, key: &Key) -> String {
        match self.descriptor.namespaced {
            true => format!("{}:{}", key.namespace, key.name),
            false => key.name.clone(),
        }
    }

    /// `None`: lists leave the object out.
    fn column_values(&self, bytes: &[u8], now: Timestamp) -> Option<ColumnValues> {
        let stored: Value = serde_json::from_slice(bytes).ok()?;
        if !self.descriptor.store.is_listed(&stored) {
            return None;
        }
        if self.columns.is_empty() {
            return Some(ColumnValues { fields: Map::new(), settles_at: None });
        }
        // No column depends on the caller or the request: `Descriptor::personal`.
        let (caller, urls) = (Caller::anonymous(), Urls::new(""));
        let (registry, action_links) = (&self.registry, false);
        let presentation =
            Presentation { caller: &caller, urls: &urls, registry, now, action_links };
        let fields = collection::shown_fields(&presentation, &self.descriptor, &stored);
        let has_time = self.descriptor.has_state || self.descriptor.formatter.is_some();
        let settles_at = state::settles_at(&stored, now).filter(|_| has_time);
        Some(ColumnValues { fields, settles_at })
    }

    /// The page for a caller who may see these parts. The columns that the query names must exist.
    pub fn page(&self, query: &ListQuery, visible: &[Visible]) -> FoundPage {
        let column = |name: &str| self.columns.iter().find(|column| column.name == name);
        let order = query.sort.as_deref().and_then(|name| column(name)?.order.as_ref());
        let filters = query.filters.iter();
        let sieves: Vec<Sieve<'_>> =
            filters.filter_map(|filter| Some(column(&filter.field)?.sieve(filter))).collect();
        let seen = self.visible_slots(visible);
        let matches = |slot: &u32| {
            seen.as_ref().is_none_or(|seen| seen[*slot as usize])
                && sieves.iter().all(|sieve| sieve.lets_through(*slot))
        };
        let order = order.unwrap_or(&self.by_id).iter().copied();
        let slots: Vec<u32> = match query.descending {
            true => order.rev().filter(matches).collect(),
            false => order.filter(matches).collect(),
        };
        let ids: Vec<&str> = slots.iter().map(|slot| id(&self.rows, *slot)).collect();
        let (range, page) = cut(&ids, query);
        let rows = slots[range].iter().filter_map(|slot| self.rows[*slot as usize].as_ref());
        FoundPage { page, objects: rows.map(|row| row.object.clone()).collect() }
    }

    /// By slot, whether the object belongs to the parts; `None`: all do.
    fn visible_slots(&self, visible: &[Visible]) -> Option<Vec<bool>> {
        let mut seen = vec![false; self.rows.len()];
        for part in visible {
            match part {
                Visible::Everything => return None,
                Visible::Namespace(namespace) => {
                    let prefix = format!("{namespace}:");
                    let begin = self.position_of(&prefix).unwrap_or_else(|position| position);
                    let slots = self.by_id[begin..].iter();
                    for slot in slots.take_while(|slot| id(&self.rows, **slot).starts_with(&prefix))
                    {
                        seen[*slot as usize] = true;
                    }
                }
                Visible::Object(key) => {
                    if let Ok(at) = self.position_of(&self.id_of(key)) {
                        seen[self.by_id[at] as usize] = true;
                    }
                }
            }
        }
        Some(seen)
    }
}

fn id(rows: &[Option<Row>], slot: u32) -> &str {
    rows[slot as usize].as_ref().map_or("", |row| &row.id)
}

#[cfg(test)]
mod tests;
