//! Amounts of resources: names and quantities.

use std::collections::BTreeMap;

use api_meta::quantity::Quantity;
use serde_json::{Map, Value};

/// Quantities by resource name, such as `requests.cpu`.
pub type Amounts = BTreeMap<String, Quantity>;

/// A missing amount, as text.
pub const ZERO: &str = "0";

/// The amounts of a JSON map; values that are no quantities are omitted.
pub fn of(value: &Value) -> Amounts {
    let entries = value.as_object().into_iter().flatten();
    let parsed = entries.filter_map(|(name, value)| {
        let quantity = api_meta::quantity::canonical(value)?.parse().ok()?;
        Some((name.clone(), quantity))
    });
    parsed.collect()
}

/// A JSON map of the amounts.
pub fn to_json(amounts: &Amounts) -> Value {
    let entries = amounts.iter().map(|(name, amount)| (name.clone(), amount.to_string().into()));
    Value::Object(entries.collect::<Map<_, _>>())
}

/// Whether the amount is zero, in any format.
pub fn is_zero(amount: &Quantity) -> bool {
    *amount == Quantity::from_whole(0)
}

/// The sum. A zero has the format of the other amount.
pub fn sum(left: &Quantity, right: &Quantity) -> Quantity {
    if is_zero(left) { *right } else { left.plus(right) }
}

/// Adds each amount of `more` to `to`.
pub fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        to.entry(name.clone()).and_modify(|old| *old = sum(old, amount)).or_insert(*amount);
    }
}

/// Raises each amount of `to` to at least that of `least`.
pub fn raise(to: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        to.entry(name.clone()).and_modify(|old| *old = (*old).max(*amount)).or_insert(*amount);
    }
}

/// By how much `new` exceeds `old`, for each name where it does.
pub fn increase(new: &Amounts, old: &Amounts) -> Amounts {
    let grown = new.iter().filter_map(|(name, amount)| {
        let more = old.get(name).map_or(*amount, |old| amount.minus(old));
        (!is_zero(&more) && !more.is_negative()).then(|| (name.clone(), more))
    });
    grown.collect()
}

/// `name=amount,name=amount` for these names, in their order; a missing amount is 0.
pub fn format_amounts<'a>(amounts: &Amounts, names: impl Iterator<Item = &'a String>) -> String {
    let parts = names.map(|name| {
        let amount = amounts.get(name).map_or_else(|| ZERO.to_owned(), Quantity::to_string);
        format!("{name}={amount}")
    });
    parts.collect::<Vec<_>>().join(",")
}
