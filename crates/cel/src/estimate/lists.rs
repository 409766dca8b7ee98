//! The cost of functions that build lists from other lists: the model of `cel-go/ext/lists.go`.

use super::calls::{Call, Cost};
use super::{Estimate, Estimator};
use crate::ast::{Expr, ExprKind, Literal};
use crate::limits::{CHARACTER_COST, LIST_COST};

/// Cost units per pair of items.
const PAIR_COST: f64 = 2.0;

impl<'a> Estimator<'a> {
    /// The cost of the call and the size of its result; `None` for other functions.
    pub(super) fn list_cost(&mut self, call: &Call<'_, 'a>, overload: &str) -> Option<Cost> {
        let [first, second] = [call.args.first(), call.args.get(1)];
        let (factor, size) = match (overload, call.target, first) {
            ("list_slice", Some(list), Some(start)) => {
                let most = self.library_size(list).max;
                let end = second.and_then(whole).unwrap_or(most);
                // Upstream's difference wraps around.
                (1.0, Estimate::exactly(end.wrapping_sub(whole(start).unwrap_or(0))))
            }
            ("lists_range", None, Some(count)) => {
                (1.0, Estimate::exactly(whole(count).unwrap_or(u64::MAX)))
            }
            ("list_reverse", Some(list), _) => (1.0, self.library_size(list)),
            ("list_flatten", Some(list), _) => (1.0, self.library_size(list)),
            ("list_flatten_int", Some(list), Some(depth)) => {
                let depth = whole(depth).unwrap_or(u64::MAX);
                (depth as f64, self.library_size(list))
            }
            ("list_distinct", Some(list), _) => (PAIR_COST, self.pairs(list)),
            (_, Some(list), None) if overload.ends_with("_sort") => {
                (pair_cost(overload), self.pairs(list))
            }
            (_, Some(_), Some(keys)) if overload.ends_with("_sortByAssociatedKeys") => {
                (pair_cost(overload), self.pairs(keys))
            }
            _ => return None,
        };
        let cost = size.scaled(factor).plus(Estimate::exactly(1 + LIST_COST));
        Some((cost, Some(size)))
    }

    fn pairs(&mut self, list: &'a Expr) -> Estimate {
        let size = self.library_size(list);
        size.times(size)
    }
}

fn pair_cost(overload: &str) -> f64 {
    let texts = overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
    if texts { PAIR_COST + CHARACTER_COST } else { PAIR_COST }
}

/// The number of a literal argument; a negative one counts as 0.
fn whole(arg: &Expr) -> Option<u64> {
    match arg.kind {
        ExprKind::Literal(Literal::Int(number)) => Some(u64::try_from(number).unwrap_or(0)),
        _ => None,
    }
}
