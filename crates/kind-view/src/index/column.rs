//! The values of one field of all objects.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::field_path::FieldPath;
use crate::query::SortValue;

/// Memory of a set of values, besides its text.
const CELL_BYTES: usize = 200;
/// Memory of a slot.
const SLOT_BYTES: usize = size_of::<Arc<Cell>>();

/// What one object has in the field.
#[derive(Debug)]
pub struct Cell {
    pub values: Vec<Value>,
    pub key: SortValue,
}

/// The values of a field by slot; equal ones are stored once.
#[derive(Debug)]
pub struct Column {
    pub path: FieldPath,
    cells: Vec<Arc<Cell>>,
    /// By their JSON.
    known: HashMap<String, Arc<Cell>>,
    nothing: Arc<Cell>,
    bytes: usize,
}

impl Column {
    /// A column without slots.
    pub fn new(path: FieldPath) -> Self {
        let nothing = Arc::new(Cell { values: Vec::new(), key: SortValue::Missing });
        Self { path, cells: Vec::new(), known: HashMap::new(), nothing, bytes: 0 }
    }

    /// What the slot has.
    pub fn cell(&self, slot: u32) -> &Cell {
        self.cells.get(slot as usize).unwrap_or(&self.nothing)
    }

    /// Sets a slot to what the object has in the field.
    pub fn set(&mut self, slot: u32, object: &Value) {
        let values = self.path.values(object);
        let cell = if values.is_empty() { self.nothing.clone() } else { self.intern(&values) };
        self.put(slot, cell);
    }

    /// Empties a slot.
    pub fn clear(&mut self, slot: u32) {
        self.put(slot, self.nothing.clone());
    }

    /// Bytes of memory, about.
    pub fn size(&self) -> usize {
        self.bytes + self.cells.len() * SLOT_BYTES
    }

    fn intern(&mut self, values: &[&Value]) -> Arc<Cell> {
        let text = text_of(values.iter().copied());
        if let Some(cell) = self.known.get(&text) {
            return cell.clone();
        }
        let key = SortValue::of(values);
        let values = values.iter().map(|value| (*value).clone()).collect();
        let cell = Arc::new(Cell { values, key });
        self.bytes += size_of_cell(&text);
        self.known.insert(text, cell.clone());
        cell
    }

    fn put(&mut self, slot: u32, cell: Arc<Cell>) {
        let slot = slot as usize;
        if slot >= self.cells.len() {
            self.cells.resize(slot + 1, self.nothing.clone());
        }
        let old = std::mem::replace(&mut self.cells[slot], cell);
        // This one, and that of `known`.
        if Arc::strong_count(&old) == 2 && !old.values.is_empty() {
            let text = text_of(&old.values);
            self.known.remove(&text);
            self.bytes -= size_of_cell(&text);
        }
    }
}

fn text_of<'v>(values: impl IntoIterator<Item = &'v Value>) -> String {
    let texts: Vec<String> = values.into_iter().map(Value::to_string).collect();
    texts.join(",")
}

fn size_of_cell(text: &str) -> usize {
    // The text as a key, as a value, and as what is sorted by.
    3 * text.len() + CELL_BYTES
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_values_are_stored_once_and_end_with_their_last_slot() {
        let mut column = Column::new(FieldPath::parse("a").unwrap());
        for (slot, value) in [(0, "x"), (1, "x"), (3, "y")] {
            column.set(slot, &json!({"a": value}));
        }
        assert_eq!(column.known.len(), 2);
        assert_eq!((&column.cell(1).values, &column.cell(2).values), (&vec![json!("x")], &vec![]));
        column.set(0, &json!({"a": ["p", "q"]}));
        assert_eq!(column.cell(0).values, [json!("p"), json!("q")]);
        column.clear(1);
        column.set(3, &json!({}));
        column.clear(0);
        assert!(column.known.is_empty() && column.bytes == 0);
    }
}
