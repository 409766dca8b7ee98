//! One field of all objects, as numbers: each distinct text is stored once.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::collection::query::{Filter, as_text};

/// The number of a field that is absent or null. Sorts like empty text, and counts as the default
/// of the field in filters.
const ABSENT: u32 = 0;

/// The texts of one field, by slot of the object.
pub(super) struct FieldColumn {
    /// Name of the field.
    pub name: String,
    default: Option<Value>,
    /// By slot: index into `texts`.
    numbers: Vec<u32>,
    /// Each text with the number of slots that have it. Entries with zero slots are free.
    texts: Vec<(Arc<str>, u32)>,
    known: HashMap<Arc<str>, u32>,
    free: Vec<u32>,
    /// The slots sorted by text and id; only for fields that lists are sorted by.
    pub order: Option<Vec<u32>>,
}

/// A filter in terms of a column.
pub(super) struct Sieve<'a> {
    numbers: &'a [u32],
    /// Numbers of the texts that the filter names, if some slot has them.
    named: Vec<u32>,
    is_positive: bool,
}

impl Sieve<'_> {
    /// Whether the slot matches the filter.
    pub fn lets_through(&self, slot: u32) -> bool {
        self.named.contains(&self.numbers[slot as usize]) == self.is_positive
    }
}

impl FieldColumn {
    /// An empty column. `default`: the default of the field. `is_sorted`: it has an order.
    pub fn new(name: &str, default: Option<Value>, is_sorted: bool) -> Self {
        Self {
            name: name.to_owned(),
            default,
            numbers: Vec::new(),
            texts: vec![(Arc::from(""), 0)],
            known: HashMap::new(),
            free: Vec::new(),
            order: is_sorted.then(Vec::new),
        }
    }

    /// The text of the slot; empty when absent.
    pub fn text(&self, slot: u32) -> &str {
        &self.texts[self.numbers[slot as usize] as usize].0
    }

    /// Whether the slot has this value.
    pub fn has(&self, slot: u32, value: Option<&Value>) -> bool {
        let number = self.numbers[slot as usize];
        match value.filter(|value| !value.is_null()) {
            None => number == ABSENT,
            Some(Value::String(text)) => number != ABSENT && self.text(slot) == text,
            value => number != ABSENT && self.text(slot) == as_text(value),
        }
    }

    /// Sets the value of a slot: the next new slot, or one that was cleared.
    pub fn set(&mut self, slot: u32, value: Option<&Value>) {
        let number = match value.filter(|value| !value.is_null()) {
            None => ABSENT,
            value => self.number_of(&as_text(value)),
        };
        let slot = slot as usize;
        if slot == self.numbers.len() {
            self.numbers.push(number);
        } else {
            self.numbers[slot] = number;
        }
    }

    fn number_of(&mut self, text: &str) -> u32 {
        if let Some(number) = self.known.get(text) {
            self.texts[*number as usize].1 += 1;
            return *number;
        }
        let text: Arc<str> = text.into();
        let number = match self.free.pop() {
            Some(number) => {
                self.texts[number as usize] = (text.clone(), 1);
                number
            }
            None => {
                self.texts.push((text.clone(), 1));
                u32::try_from(self.texts.len() - 1).expect("there are not more texts than slots")
            }
        };
        self.known.insert(text, number);
        number
    }

    /// Removes the value of the slot.
    pub fn clear(&mut self, slot: u32) {
        let number = std::mem::replace(&mut self.numbers[slot as usize], ABSENT);
        if number == ABSENT {
            return;
        }
        let (text, uses) = &mut self.texts[number as usize];
        *uses -= 1;
        if *uses == 0 {
            self.known.remove(text);
            *text = Arc::from("");
            self.free.push(number);
        }
    }

    /// Inserts the slot into the order, if the column has one. `id` returns the id of any slot.
    pub fn insert_in_order<'i>(&mut self, slot: u32, id: impl Fn(u32) -> &'i str) {
        let position = self.position_of(slot, id);
        if let (Some(order), Err(at)) = (&mut self.order, position) {
            order.insert(at, slot);
        }
    }

    /// Removes the slot from the order. Call it before the text of the slot changes.
    pub fn remove_from_order<'i>(&mut self, slot: u32, id: impl Fn(u32) -> &'i str) {
        let position = self.position_of(slot, id);
        if let (Some(order), Ok(at)) = (&mut self.order, position) {
            order.remove(at);
        }
    }

    fn position_of<'i>(&self, slot: u32, id: impl Fn(u32) -> &'i str) -> Result<usize, usize> {
        let key = |slot: u32| (self.text(slot), id(slot));
        let order = self.order.as_deref().unwrap_or_default();
        order.binary_search_by(|other| key(*other).cmp(&key(slot)))
    }

    /// The filter in terms of this column.
    pub fn sieve(&self, filter: &Filter) -> Sieve<'_> {
        let texts = filter.texts();
        let known = texts.iter().filter_map(|text| self.known.get(text.as_str()).copied());
        let mut named: Vec<u32> = known.collect();
        if texts.contains(&as_text(self.default.as_ref())) {
            named.push(ABSENT);
        }
        Sieve { numbers: &self.numbers, named, is_positive: filter.is_positive() }
    }

    /// Rebuilds the order from the slots in the order of their ids.
    pub fn sort(&mut self, by_id: &[u32]) {
        if self.order.is_none() {
            return;
        }
        let mut texts: Vec<u32> = (0..).take(self.texts.len()).collect();
        texts.sort_by(|a, b| self.texts[*a as usize].0.cmp(&self.texts[*b as usize].0));
        // Equal texts have one rank. Only the empty text can be there twice: once as absent.
        let mut ranks = vec![0_u32; self.texts.len()];
        let mut rank = 0;
        for pair in texts.windows(2) {
            let [before, text] = [pair[0] as usize, pair[1] as usize];
            rank += u32::from(self.texts[before].0 != self.texts[text].0);
            ranks[text] = rank;
        }
        let mut order = by_id.to_vec();
        order.sort_by_key(|slot| ranks[self.numbers[*slot as usize] as usize]);
        self.order = Some(order);
    }
}
