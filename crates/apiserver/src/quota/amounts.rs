//! How much of each resource: names and quantities.

use std::collections::BTreeMap;

use api_meta::quantity::Quantity;
use serde_json::{Map, Value};

/// By resource name, such as `requests.cpu`.
pub type Amounts = BTreeMap<String, Quantity>;

pub const ZERO: &str = "0";

/// The amounts of a JSON map; what is no quantity is left out.
pub fn of(value: &Value) -> Amounts {
    let entries = value.as_object().into_iter().flatten();
    let parsed = entries.filter_map(|(name, value)| {
        let quantity = api_meta::quantity::canonical(value)?.parse().ok()?;
        Some((name.clone(), quantity))
    });
    parsed.collect()
}

pub fn to_json(amounts: &Amounts) -> Value {
    let entries = amounts.iter().map(|(name, amount)| (name.clone(), amount.to_string().into()));
    Value::Object(entries.collect::<Map<_, _>>())
}

pub fn is_zero(amount: &Quantity) -> bool {
    *amount == Quantity::from_whole(0)
}

/// The sum; a zero takes the other's form.
pub fn sum(left: &Quantity, right: &Quantity) -> Quantity {
    if is_zero(left) { *right } else { left.plus(right) }
}

pub fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        to.entry(name.clone()).and_modify(|old| *old = sum(old, amount)).or_insert(*amount);
    }
}

/// The larger of both for each name.
pub fn raise(to: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        to.entry(name.clone()).and_modify(|old| *old = (*old).max(*amount)).or_insert(*amount);
    }
}

/// What `new` has more than `old`.
pub fn increase(new: &Amounts, old: &Amounts) -> Amounts {
    let grown = new.iter().filter_map(|(name, amount)| {
        let more = old.get(name).map_or(*amount, |old| amount.minus(old));
        (!is_zero(&more) && !more.is_negative()).then(|| (name.clone(), more))
    });
    grown.collect()
}

/// `name=amount,name=amount` of these names, in their order.
pub fn told<'a>(amounts: &Amounts, names: impl Iterator<Item = &'a String>) -> String {
    let parts = names.map(|name| {
        let amount = amounts.get(name).map_or_else(|| ZERO.to_owned(), Quantity::to_string);
        format!("{name}={amount}")
    });
    parts.collect::<Vec<_>>().join(",")
}
