//! The cost of calls, and the sizes of their results.

use super::{
    Estimate, Estimator, Inside, PathStep, compares, compares_at_once, declared_size, is_junction,
};
use crate::ast::{Expr, ExprKind, Literal, operator};
use crate::limits::{AUTHORIZATION_CHECK_COST, CHARACTER_COST, PATTERN_COST};
use crate::types::{Library, Type};

/// Characters of the longest pattern of a named format.
const FORMAT_PATTERN: f64 = 128.0;
/// Characters of the longest name of a format.
const FORMAT_NAME: u64 = 64;
/// Bytes of an IP address.
const ADDRESS: Estimate = Estimate { min: 4, max: 16 };

/// One call.
pub(super) struct Call<'c, 'a> {
    pub expr: &'a Expr,
    pub function: &'c str,
    pub target: Option<&'a Expr>,
    pub args: &'a [Expr],
    /// The costs of the arguments.
    pub costs: &'c [Estimate],
}

impl Call<'_, '_> {
    fn arguments(&self) -> Estimate {
        self.costs.iter().fold(Estimate::default(), |sum, cost| sum.plus(*cost))
    }
}

/// A cost, and the size of the result if it is known.
pub(super) type Cost = (Estimate, Option<Estimate>);

fn characters(size: Estimate) -> Estimate {
    size.scaled(CHARACTER_COST)
}

fn pattern(text: Estimate, pattern: Estimate) -> Estimate {
    characters(text.plus(Estimate::exactly(1))).times(pattern.scaled(PATTERN_COST))
}

impl<'a> Estimator<'a> {
    /// The cost of one overload with its arguments, but without its receiver.
    pub(super) fn call_cost(&mut self, call: &Call<'_, 'a>, overload: &str) -> Cost {
        let arguments = call.arguments();
        let known = self.list_cost(call, overload).or_else(|| self.library_cost(call, overload));
        if let Some((cost, size)) = known {
            return (cost.plus(arguments), size);
        }
        let [first, rest @ ..] = call.args else {
            return self.receiver_cost(call, overload);
        };
        let second = rest.first();
        match (overload, second) {
            _ if is_junction(call.function) => {
                let (left, right) = (call.costs[0], call.costs[1]);
                (Estimate { min: left.min, max: left.plus(right).max }, None)
            }
            ("conditional", _) => self.conditional(call),
            ("string_to_bytes", _) => {
                let size = self.size_or_unknown(first);
                let result = Estimate { min: size.min, max: size.max.saturating_mul(4) };
                (characters(size).plus(arguments), Some(result))
            }
            ("bytes_to_string", _) => {
                let size = self.size_or_unknown(first);
                let result = Estimate { min: size.min / 4, max: size.max };
                (characters(size).plus(arguments), Some(result))
            }
            ("strings_quote", _) => {
                let size = self.size_or_unknown(first);
                let max = size.max.saturating_mul(2).saturating_add(2);
                let result = Estimate { min: size.min.saturating_add(2), max };
                (characters(size).plus(arguments), Some(result))
            }
            ("starts_with_string" | "ends_with_string", _) => {
                (characters(self.size_or_unknown(first)).plus(arguments), None)
            }
            ("in_list", Some(list)) => (self.size_or_unknown(list).plus(arguments), None),
            ("add_string" | "add_bytes" | "add_list", Some(second)) => {
                self.join_estimate(call.expr, first, second, overload == "add_list", arguments)
            }
            (_, Some(second)) if compares(overload) => {
                let max = self.size_or_unknown(first).max.min(self.size_or_unknown(second).max);
                let size = Estimate { min: u64::from(max > 0), max };
                (characters(size).plus(arguments), None)
            }
            _ => self.receiver_cost(call, overload),
        }
    }

    fn receiver_cost(&mut self, call: &Call<'_, 'a>, overload: &str) -> Cost {
        let one = Estimate::exactly(1);
        let arguments = call.arguments();
        let cost = match (overload, call.target, call.args) {
            ("string_format", Some(target), _) => characters(self.size_or_unknown(target)),
            ("matches_string", Some(target), [text]) => {
                pattern(self.size_or_unknown(target), self.size_or_unknown(text))
            }
            ("contains_string", Some(target), [text]) => characters(self.size_or_unknown(target))
                .times(characters(self.size_or_unknown(text))),
            _ => one,
        };
        (cost.plus(arguments), None)
    }

    fn conditional(&mut self, call: &Call<'_, 'a>) -> Cost {
        let [_, then, otherwise] = call.args else {
            return (Estimate::UNKNOWN, None);
        };
        let size = self.size_or_unknown(then).union(self.size_or_unknown(otherwise));
        if let Some(inside) = both(self.inside(then), self.inside(otherwise)) {
            self.insides.insert(call.expr.id, inside);
        }
        (call.costs[0].plus(call.costs[1].union(call.costs[2])), Some(size))
    }

    fn join_estimate(
        &mut self,
        expr: &Expr,
        first: &'a Expr,
        second: &'a Expr,
        lists: bool,
        arguments: Estimate,
    ) -> Cost {
        let size = self.size_or_unknown(first).plus(self.size_or_unknown(second));
        if let Some(inside) = both(self.inside(first), self.inside(second)) {
            self.insides.insert(expr.id, inside);
        }
        let cost = if lists { Estimate::exactly(1) } else { characters(size) };
        (cost.plus(arguments), Some(size))
    }

    /// The cost of a function in Kubernetes' own model.
    fn library_cost(&mut self, call: &Call<'_, 'a>, overload: &str) -> Option<Cost> {
        let one = Estimate::exactly(1);
        let first = call.args.first();
        let cost = match call.function {
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                self.traversal(call.target?)
            }
            "url" | "jsonpatch.escapeKey" if call.args.len() == 1 => {
                let size = self.library_size(first?);
                return Some((characters(size), Some(size)));
            }
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                let size = self.library_size(call.target?);
                return Some((characters(size), Some(size)));
            }
            "replace" => return self.replace_estimate(call),
            "split" => return self.split(call),
            "join" => return self.join(call),
            "find" | "findAll" => {
                let text = self.library_size(call.target?);
                let cost = pattern(text, self.library_size(first?));
                return Some((cost, Some(Estimate { min: 0, max: text.max })));
            }
            "ip" if overload == "cidr_ip" => one,
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver"
            | "isSemver" => characters(self.library_size(first?)),
            "ip.isCanonical" => self.library_size(first?).scaled(2.0 * CHARACTER_COST),
            "containsIP" | "containsCIDR" => self.contains(call, overload)?,
            "validate" => {
                let text = characters(self.library_size(first?));
                text.scaled(FORMAT_PATTERN * PATTERN_COST)
            }
            "check" => Estimate::exactly(AUTHORIZATION_CHECK_COST),
            "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery" => one,
            "sets.contains" | "sets.intersects" => self.product(call)?.plus(one),
            "sets.equivalent" => self.product(call)?.scaled(2.0).plus(one),
            operator::EQUALS => self.library_equality(call)?,
            _ => return None,
        };
        Some((cost, None))
    }

    fn product(&mut self, call: &Call<'_, 'a>) -> Option<Estimate> {
        let [first, second] = call.args else {
            return None;
        };
        Some(self.library_size(first).times(self.library_size(second)))
    }

    fn traversal(&mut self, list: &'a Expr) -> Estimate {
        let size = self.library_size(list);
        match self.kind(list) {
            Type::List(item) => {
                let mut each = Estimate::exactly(1);
                if matches!(**item, Type::Text | Type::Bytes) {
                    each = each.plus(characters(self.item_size(list)));
                }
                size.times(each)
            }
            _ => characters(size),
        }
    }

    /// The size of the items of a declared list.
    fn item_size(&mut self, list: &'a Expr) -> Estimate {
        match self.origin(list) {
            super::Origin::None => Estimate::UNKNOWN,
            origin => match self.descend(origin, PathStep::Items) {
                super::Origin::Declared(declared) => declared_size(declared),
                _ => Estimate::UNKNOWN,
            },
        }
    }

    fn contains(&mut self, call: &Call<'_, 'a>, overload: &str) -> Option<Estimate> {
        let text = call.args.first()?;
        let mut cost = characters(ADDRESS.plus(ADDRESS));
        if call.function == "containsCIDR" {
            cost = cost.plus(characters(ADDRESS)).plus(Estimate::exactly(1));
        }
        if overload.ends_with("_string") {
            cost = cost.plus(characters(self.library_size(text)));
        }
        Some(cost)
    }

    fn replace_estimate(&mut self, call: &Call<'_, 'a>) -> Option<Cost> {
        let (Some(target), [from, to, ..]) = (call.target, call.args) else {
            return None;
        };
        let text = self.library_size(target);
        let (from, to) = (self.library_size(from), self.library_size(to));
        let mut times = Estimate::default();
        let mut rest = Estimate::default();
        let count = |size: u64, each: u64| (size as f64 / each as f64).ceil() as u64;
        if from.min == 0 {
            (times.max, rest.max) = (text.max.saturating_add(1), text.max);
        } else if to.max <= from.min {
            rest.max = text.max;
        } else {
            times.max = count(text.max, from.min);
        }
        if from.max == 0 {
            (times.min, rest.min) = (text.min.saturating_add(1), text.min);
        } else if from.max <= to.min {
            rest.min = text.min;
        } else {
            times.min = count(text.min, from.max);
        }
        Some((text.scaled(2.0 * CHARACTER_COST), Some(times.times(to).plus(rest))))
    }

    fn split(&mut self, call: &Call<'_, 'a>) -> Option<Cost> {
        let text = self.library_size(call.target?);
        let max = match call.args.get(1).map(|arg| &arg.kind) {
            // A negative number is no limit, like a large one.
            Some(ExprKind::Literal(Literal::Int(most))) => *most as u64,
            _ => text.max,
        };
        Some((text.scaled(2.0 * CHARACTER_COST), Some(Estimate { min: 0, max })))
    }

    fn join(&mut self, call: &Call<'_, 'a>) -> Option<Cost> {
        let target = call.target?;
        let list = self.library_size(target);
        let mut size = Estimate::default();
        if matches!(self.kind(target), Type::List(_)) {
            size = list.times(self.item_size(target));
        }
        if let Some(between) = call.args.first() {
            let between = self.library_size(between);
            let places =
                Estimate { min: list.min.saturating_sub(1), max: list.max.saturating_sub(1) };
            size = size.plus(between.times(places));
        }
        Some((characters(size), Some(size)))
    }

    fn library_equality(&mut self, call: &Call<'_, 'a>) -> Option<Estimate> {
        let [first, second] = call.args else {
            return None;
        };
        match (self.kind(first), self.kind(second)) {
            (Type::Library(a), Type::Library(b)) if a == b => Some(match a {
                library if compares_at_once(*library) => Estimate::exactly(1),
                Library::Format => characters(Estimate { min: 1, max: FORMAT_NAME }),
                _ => Estimate::exactly(1),
            }),
            _ => None,
        }
    }
}

fn both(a: Option<Inside>, b: Option<Inside>) -> Option<Inside> {
    let (a, b) = (a?, b?);
    Some(Inside { is_list: a.is_list, key: a.key.union(b.key), value: a.value.union(b.value) })
}
