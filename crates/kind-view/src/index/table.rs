//! The objects of one kind, with the columns and orders that lists need. Pure.
//!
//! An object has a slot, a small number, for as long as it exists. Orders are vectors of slots.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use api_meta::fields::FieldSelector;
use api_meta::labels::LabelSelector;
use rest_view::{Key, Visible};
use serde_json::Value;

use super::column::{Cell, Column};
use super::packed::{PackedRow, Packing};
use crate::field_path::FieldPath;
use crate::query::{Beyond, Condition, Found, Query, SortField, SortValue};

/// Columns of one kind. A query that needs more has all others made again.
const COLUMNS_MAX: usize = 32;
/// Orders of one kind; the same holds.
const ORDERS_MAX: usize = 12;
/// Memory of an object, besides its names and its bytes.
const ROW_BYTES: usize = size_of::<Option<TableRow>>() + 64;
/// The field in which an object of a list over several clusters has its cluster.
const CLUSTER: [&str; 2] = ["metadata", "cluster"];
const LABELS: [&str; 2] = ["metadata", "labels"];

/// See the module.
#[derive(Debug, Default)]
pub struct KindTable {
    packing: Arc<Packing>,
    rows: Vec<Option<TableRow>>,
    free: Vec<u32>,
    /// Slots by namespace and name.
    by_id: Vec<u32>,
    columns: Vec<Column>,
    orders: Vec<Order>,
    /// Of rows, without columns and orders.
    bytes: usize,
}

#[derive(Debug)]
struct TableRow {
    namespace: Box<str>,
    name: Box<str>,
    version: Box<str>,
    packed: PackedRow,
}

/// Slots by the values of some columns, then by namespace and name.
#[derive(Debug)]
struct Order {
    /// As queries have it.
    text: String,
    /// Columns, and whether they go from high to low.
    fields: Vec<(usize, bool)>,
    slots: Vec<u32>,
}

/// What a table has for a list.
#[derive(Debug, Default)]
pub struct TableHead {
    pub found: Vec<Found<PackedRow>>,
    pub beyond: Beyond,
}

/// Where a condition or a key takes its values from.
enum Source<'t> {
    Column(&'t Column),
    /// The same for all objects.
    Constant(Cell),
}

/// A list that is being cut from a table.
struct Cutting<'t> {
    table: &'t KindTable,
    query: &'t Query,
    /// Id of the cluster in a list over several.
    cluster: &'t str,
    filters: Vec<Vec<(&'t Condition, Source<'t>)>>,
    keys: Vec<Source<'t>>,
    labels: Option<(LabelSelector, &'t Column)>,
    /// Selects by names and namespaces only.
    fields: Option<FieldSelector>,
    scope: Scope<'t>,
}

/// The objects that the caller may see.
#[derive(Default)]
struct Scope<'t> {
    is_everything: bool,
    namespaces: HashSet<&'t str>,
    objects: HashSet<(&'t str, &'t str)>,
}

impl KindTable {
    /// A table without objects.
    pub fn new(packing: Packing) -> Self {
        Self { packing: Arc::new(packing), ..Self::default() }
    }

    /// Bytes of memory, about.
    pub fn size(&self) -> usize {
        let slots = (self.orders.len() + 2) * self.by_id.len() * size_of::<u32>();
        self.bytes + slots + self.columns.iter().map(Column::size).sum::<usize>()
    }

    /// The resource version of an object.
    pub fn version(&self, key: &Key) -> Option<&str> {
        let at = self.position(&key.namespace, &key.name).ok()?;
        self.row(self.by_id[at]).map(|row| &*row.version)
    }

    /// Adds an object, or replaces it.
    pub fn set(&mut self, object: &Value) {
        let Key { namespace, name } = Key::of(object);
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let packed = PackedRow::new(&self.packing, object);
        let row = TableRow {
            namespace: namespace.into(),
            name: name.into(),
            version: version.into(),
            packed,
        };
        self.bytes += row.size();
        let slot = match self.position(&row.namespace, &row.name) {
            Ok(at) => {
                let slot = self.by_id[at];
                self.remove_from_orders(slot);
                let old = self.rows[slot as usize].replace(row);
                self.bytes -= old.as_ref().map_or(0, TableRow::size);
                slot
            }
            Err(at) => {
                let slot = self.free.pop().unwrap_or_else(|| {
                    self.rows.push(None);
                    u32::try_from(self.rows.len() - 1).expect("memory ends before")
                });
                self.rows[slot as usize] = Some(row);
                self.by_id.insert(at, slot);
                slot
            }
        };
        self.columns.iter_mut().for_each(|column| column.set(slot, object));
        self.insert_in_orders(slot);
    }

    /// Removes an object, if it is there.
    pub fn remove(&mut self, key: &Key) {
        let Ok(at) = self.position(&key.namespace, &key.name) else { return };
        let slot = self.by_id[at];
        self.remove_from_orders(slot);
        self.by_id.remove(at);
        let old = self.rows[slot as usize].take();
        self.bytes -= old.as_ref().map_or(0, TableRow::size);
        self.columns.iter_mut().for_each(|column| column.clear(slot));
        self.free.push(slot);
    }

    /// Whether it has the columns and the order of the query.
    pub fn is_ready_for(&self, query: &Query) -> bool {
        let has_order = query.sort().is_empty() || self.order(query).is_some();
        has_order && paths_of(query).iter().all(|path| self.column(path).is_some())
    }

    /// Makes the columns and the order of the query. Reads all objects if a column is missing.
    pub fn prepare(&mut self, query: &Query) {
        let mut missing = paths_of(query);
        missing.retain(|path| self.column(path).is_none());
        if self.columns.len() + missing.len() > COLUMNS_MAX || self.orders.len() >= ORDERS_MAX {
            self.columns.clear();
            self.orders.clear();
            missing = paths_of(query);
        }
        let mut columns: Vec<Column> = missing.into_iter().map(Column::new).collect();
        if !columns.is_empty() {
            for slot in &self.by_id {
                let Some(row) = self.row(*slot) else { continue };
                let object = row.packed.unpack();
                columns.iter_mut().for_each(|column| column.set(*slot, &object));
            }
            self.columns.append(&mut columns);
        }
        if query.sort().is_empty() || self.order(query).is_some() {
            return;
        }
        let field = |field: &SortField| {
            let column = self.columns.iter().position(|column| column.path == field.path);
            column.map(|column| (column, field.is_descending))
        };
        let fields = query.sort().iter().filter_map(field).collect();
        let mut order = Order { text: query.sort_text(), fields, slots: Vec::new() };
        let mut slots = self.by_id.clone();
        // Stable: equal ones stay in the order of their ids.
        slots.sort_by(|a, b| self.compare_fields(&order, *a, *b));
        order.slots = slots;
        self.orders.push(order);
    }

    /// What the list needs of the objects that the caller may see. Call [`Self::prepare`] before.
    ///
    /// - `cluster`: what objects have at `metadata.cluster` in a list over several clusters, else
    ///   null.
    pub fn head(&self, query: &Query, visible: &[Visible], cluster: &Value) -> TableHead {
        let slots = match self.order(query) {
            Some(order) => &order.slots,
            None => &self.by_id,
        };
        let Some(cutting) = Cutting::new(self, query, visible, cluster) else {
            return TableHead::default();
        };
        let start = match query.has_marker() {
            true => slots.partition_point(|slot| !cutting.is_after_marker(*slot)),
            false => 0,
        };
        let window = query.window(cluster.is_null());
        let (mut found, mut count, mut passed) = (Vec::new(), 0, 0);
        for (position, slot) in slots.iter().enumerate() {
            let Some(row) = self.row(*slot).filter(|row| cutting.selects(*slot, row)) else {
                continue;
            };
            count += 1;
            if position < start {
                continue;
            }
            if passed >= window.skipped && found.len() < window.size {
                let (keys, id) = (cutting.keys(*slot), cutting.id(row));
                found.push(Found { keys, id, row: row.packed.clone() });
            }
            passed += 1;
        }
        let before = passed.min(window.skipped);
        TableHead { beyond: Beyond { count: count - found.len(), before }, found }
    }

    fn row(&self, slot: u32) -> Option<&TableRow> {
        self.rows.get(slot as usize).and_then(Option::as_ref)
    }

    /// Where the object is in `by_id`, or would be.
    fn position(&self, namespace: &str, name: &str) -> Result<usize, usize> {
        self.by_id.binary_search_by(|slot| {
            self.row(*slot).map_or(Ordering::Less, |row| row.id().cmp(&(namespace, name)))
        })
    }

    fn column(&self, path: &FieldPath) -> Option<&Column> {
        self.columns.iter().find(|column| column.path == *path)
    }

    fn order(&self, query: &Query) -> Option<&Order> {
        if query.sort().is_empty() {
            return None;
        }
        let text = query.sort_text();
        self.orders.iter().find(|order| order.text == text)
    }

    fn compare_fields(&self, order: &Order, a: u32, b: u32) -> Ordering {
        let compared = order.fields.iter().map(|(column, is_descending)| {
            let column = &self.columns[*column];
            let by_key = column.cell(a).key.compare(&column.cell(b).key);
            if *is_descending { by_key.reverse() } else { by_key }
        });
        compared.fold(Ordering::Equal, Ordering::then)
    }

    fn compare(&self, order: &Order, a: u32, b: u32) -> Ordering {
        let id = |slot: u32| self.row(slot).map(TableRow::id);
        self.compare_fields(order, a, b).then_with(|| id(a).cmp(&id(b)))
    }

    fn insert_in_orders(&mut self, slot: u32) {
        let mut orders = std::mem::take(&mut self.orders);
        for order in &mut orders {
            let at = order.slots.partition_point(|other| self.compare(order, *other, slot).is_lt());
            order.slots.insert(at, slot);
        }
        self.orders = orders;
    }

    /// Call it before a value of the slot changes.
    fn remove_from_orders(&mut self, slot: u32) {
        let mut orders = std::mem::take(&mut self.orders);
        for order in &mut orders {
            let found = order.slots.binary_search_by(|other| self.compare(order, *other, slot));
            if let Ok(at) = found {
                order.slots.remove(at);
            }
        }
        self.orders = orders;
    }
}

impl TableRow {
    fn id(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }
    fn size(&self) -> usize {
        let names = self.namespace.len() + self.name.len() + self.version.len();
        ROW_BYTES + names + self.packed.size()
    }
}

impl<'t> Cutting<'t> {
    /// `None`: the selector selects nothing.
    fn new(
        table: &'t KindTable,
        query: &'t Query,
        visible: &'t [Visible],
        cluster: &'t Value,
    ) -> Option<Self> {
        let of_cluster = serde_json::json!({"metadata": {"cluster": cluster}});
        let source = |path: &FieldPath| match table.column(path) {
            Some(column) if !path.begins_with(&CLUSTER) => Source::Column(column),
            _ => {
                let values = path.values(&of_cluster);
                let key = SortValue::of(&values);
                Source::Constant(Cell { values: values.into_iter().cloned().collect(), key })
            }
        };
        let filters = query
            .filters()
            .iter()
            .map(|any| any.iter().map(|condition| (condition, source(&condition.path))).collect());
        let labels = match &query.selectors.labels {
            None => None,
            Some(text) => {
                Some((LabelSelector::parse(text).ok()?, table.column(&FieldPath::of(&LABELS))?))
            }
        };
        let fields = match &query.selectors.fields {
            None => None,
            Some(text) => Some(FieldSelector::parse(text).ok()?),
        };
        Some(Self {
            table,
            query,
            fields,
            cluster: cluster["id"].as_str().unwrap_or_default(),
            filters: filters.collect(),
            keys: query.sort().iter().map(|field| source(&field.path)).collect(),
            labels,
            scope: Scope::of(visible),
        })
    }

    fn selects(&self, slot: u32, row: &TableRow) -> bool {
        if !self.scope.has(row) {
            return false;
        }
        let fulfils = |any: &Vec<(&Condition, Source<'_>)>| {
            any.iter().any(|(condition, source)| condition.holds_for(&source.cell(slot).values))
        };
        self.filters.iter().all(fulfils) && self.is_selected(slot, row)
    }

    /// Whether the selectors of the Kubernetes API select the object.
    fn is_selected(&self, slot: u32, row: &TableRow) -> bool {
        let by_labels = self.labels.as_ref().is_none_or(|(selector, column)| {
            let labels = column.cell(slot).values.first();
            selector.matches_labels(labels.unwrap_or(&Value::Null))
        });
        let by_fields = self.fields.as_ref().is_none_or(|selector| {
            selector.matches(|field| match field {
                "metadata.namespace" => &row.namespace,
                _ => &row.name,
            })
        });
        by_labels && by_fields
    }

    fn keys(&self, slot: u32) -> Vec<SortValue> {
        self.keys.iter().map(|source| source.cell(slot).key.clone()).collect()
    }

    fn id(&self, row: &TableRow) -> [String; 3] {
        [self.cluster, &row.namespace, &row.name].map(str::to_owned)
    }

    fn is_after_marker(&self, slot: u32) -> bool {
        let Some(row) = self.table.row(slot) else { return false };
        self.query.is_after_marker(&self.keys(slot), &self.id(row))
    }
}

impl Source<'_> {
    fn cell(&self, slot: u32) -> &Cell {
        match self {
            Self::Column(column) => column.cell(slot),
            Self::Constant(cell) => cell,
        }
    }
}

impl<'t> Scope<'t> {
    fn of(visible: &'t [Visible]) -> Self {
        let mut scope = Self::default();
        for part in visible {
            match part {
                Visible::Everything => scope.is_everything = true,
                Visible::Namespace(namespace) => drop(scope.namespaces.insert(namespace)),
                Visible::Object(key) => {
                    scope.objects.insert((&key.namespace, &key.name));
                }
            }
        }
        scope
    }

    fn has(&self, row: &TableRow) -> bool {
        self.is_everything
            || self.namespaces.contains(&*row.namespace)
            || self.objects.contains(&row.id())
    }
}

/// The fields that the query needs columns of.
fn paths_of(query: &Query) -> Vec<FieldPath> {
    let conditions = query.filters().iter().flatten().map(|condition| condition.path.clone());
    let sorted = query.sort().iter().map(|field| field.path.clone());
    let labels = query.selectors.labels.iter().map(|_| FieldPath::of(&LABELS));
    let mut paths: Vec<FieldPath> = Vec::new();
    for path in conditions.chain(sorted).chain(labels) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

#[cfg(test)]
mod tests;
