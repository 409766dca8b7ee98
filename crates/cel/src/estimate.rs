//! The minimum and maximum cost of an expression: the model of `cel-go/checker/cost.go` and of
//! `k8s.io/apiserver/pkg/cel/library/cost.go`, with sizes from the declared types of the inputs.

mod calls;
mod lists;
mod sizes;

use std::collections::HashMap;

use self::sizes::declared_size;
use crate::ast::{Expr, ExprKind, Fold, Id, operator};
use crate::check::Checked;
use crate::declared::{Declared, DeclaredKind};
use crate::limits::{LIST_COST, MAP_COST, MESSAGE_COST};
use crate::program::Input;
use crate::types::{Library, Type};

/// A minimum and a maximum, of cost units or of a size. `u64::MAX` is unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    pub min: u64,
    pub max: u64,
}

impl Estimate {
    const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    fn exactly(value: u64) -> Self {
        Self { min: value, max: value }
    }
    fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }
    fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }
    /// Rounded up.
    fn scaled(self, factor: f64) -> Self {
        // A cast of a float saturates.
        let scale = |value: u64| (value as f64 * factor).ceil() as u64;
        Self { min: scale(self.min), max: scale(self.max) }
    }
    fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// Sizes of the parts of a list or map.
#[derive(Clone, Copy, Debug)]
struct Inside {
    is_list: bool,
    key: Estimate,
    value: Estimate,
}

/// The declared type that a part of an expression comes from.
#[derive(Clone, Copy, Debug, Default)]
enum Origin<'a> {
    /// No declared type.
    #[default]
    None,
    Declared(&'a Declared),
    /// An unknown declared type.
    Lost,
}

/// The key of a map, which is a text of unknown length. Upstream has no type for it.
static KEY: Declared =
    Declared { kind: DeclaredKind::Text, size_max: 0, json_min: 2, nullable: false };

#[derive(Clone, Copy)]
enum PathStep<'s> {
    Field(&'s str),
    Items,
    Keys,
    Positions,
}

struct Local<'a> {
    name: &'a str,
    origin: Origin<'a>,
    size: Option<Estimate>,
    inside: Option<Inside>,
}

struct Estimator<'a> {
    checked: &'a Checked,
    inputs: &'a [Input],
    origins: Vec<Origin<'a>>,
    sizes: HashMap<Id, Estimate>,
    insides: HashMap<Id, Inside>,
    locals: Vec<Local<'a>>,
}

pub(crate) fn estimate(expr: &Expr, checked: &Checked, inputs: &[Input]) -> Estimate {
    let mut estimator = Estimator {
        checked,
        inputs,
        origins: vec![Origin::None; checked.types.len()],
        sizes: HashMap::new(),
        insides: HashMap::new(),
        locals: Vec::new(),
    };
    estimator.cost(expr)
}

impl<'a> Estimator<'a> {
    fn cost(&mut self, expr: &'a Expr) -> Estimate {
        match &expr.kind {
            ExprKind::Literal(_) => Estimate::default(),
            ExprKind::Ident(name) => {
                let name = name.trim_start_matches('.');
                let origin = self.local(name).map(|local| local.origin);
                let input = || self.inputs.iter().find(|input| input.name == name);
                // The name of a type counts as the first input, see `descend`.
                let origin = origin.unwrap_or_else(|| match input().or(self.inputs.first()) {
                    Some(input) => Origin::Declared(&input.declared),
                    None => Origin::Lost,
                });
                self.set_origin(expr, origin);
                Estimate::exactly(1)
            }
            ExprKind::Select { operand, field, test } => self.select(expr, operand, field, *test),
            ExprKind::Call { .. } => self.call(expr),
            ExprKind::List(elements) => {
                let mut sum = Estimate::exactly(LIST_COST);
                let mut item = Estimate { min: u64::MAX, max: 0 };
                for element in elements {
                    sum = sum.plus(self.cost(&element.value));
                    item = item.union(self.size_or_unknown(&element.value));
                }
                if elements.is_empty() {
                    item.min = 0;
                }
                let key = Estimate::exactly(1);
                self.insides.insert(expr.id, Inside { is_list: true, key, value: item });
                sum
            }
            ExprKind::Map(entries) => {
                let mut sum = Estimate::exactly(MAP_COST);
                let least = if entries.is_empty() { 0 } else { u64::MAX };
                let mut key = Estimate { min: least, max: 0 };
                let mut value = key;
                for entry in entries {
                    sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
                    key = key.union(self.size_or_unknown(&entry.key));
                    value = value.union(self.size_or_unknown(&entry.value));
                }
                self.insides.insert(expr.id, Inside { is_list: false, key, value });
                sum
            }
            ExprKind::Struct { fields, .. } => fields
                .iter()
                .map(|field| self.cost(&field.value))
                .fold(Estimate::exactly(MESSAGE_COST), Estimate::plus),
            ExprKind::Fold(fold) if fold.is_binding() => self.binding(expr, fold),
            ExprKind::Fold(fold) => self.fold(expr, fold),
        }
    }

    fn local(&self, name: &str) -> Option<&Local<'a>> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn kind(&self, expr: &Expr) -> &'a Type {
        &self.checked.types[expr.id as usize]
    }

    fn set_origin(&mut self, expr: &Expr, origin: Origin<'a>) {
        self.origins[expr.id as usize] = origin;
    }

    fn origin(&self, expr: &Expr) -> Origin<'a> {
        if let ExprKind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.origin;
        }
        self.origins[expr.id as usize]
    }

    /// The origin of a part of a value. A part of a value without an origin counts as the first
    /// input, because upstream cuts the first step off every path.
    fn descend(&self, origin: Origin<'a>, step: PathStep<'_>) -> Origin<'a> {
        let declared = match origin {
            Origin::Declared(declared) => declared,
            Origin::Lost => return Origin::Lost,
            Origin::None => {
                return self.inputs.first().map_or(Origin::Lost, |i| Origin::Declared(&i.declared));
            }
        };
        let found = match (step, &declared.kind) {
            (PathStep::Items, DeclaredKind::List(inner, _) | DeclaredKind::Map(inner)) => {
                Some(&**inner)
            }
            (PathStep::Keys, DeclaredKind::Map(_)) => Some(&KEY),
            (PathStep::Field(name), DeclaredKind::Object(object)) => {
                object.fields.get(name).map(|field| &*field.declared)
            }
            _ => None,
        };
        found.map_or(Origin::Lost, Origin::Declared)
    }

    fn select(&mut self, expr: &'a Expr, operand: &'a Expr, field: &str, test: bool) -> Estimate {
        if self.checked.qualified[expr.id as usize].is_some() {
            // The name of a type, see `descend`.
            let origin =
                self.inputs.first().map_or(Origin::Lost, |i| Origin::Declared(&i.declared));
            self.set_origin(expr, origin);
            return Estimate::exactly(1);
        }
        let mut sum = self.cost(operand);
        if test {
            return sum;
        }
        if matches!(self.kind(operand), Type::Map(_) | Type::Object(_) | Type::Message(_)) {
            sum = sum.plus(Estimate::exactly(1));
        }
        let origin = self.descend(self.origin(operand), PathStep::Field(field));
        self.set_origin(expr, origin);
        sum
    }

    fn call(&mut self, expr: &'a Expr) -> Estimate {
        let ExprKind::Call { function, target, args } = &expr.kind else {
            return Estimate::default();
        };
        let qualified = self.checked.qualified[expr.id as usize].as_deref();
        let target = if qualified.is_some() { None } else { target.as_deref() };
        let function = qualified.unwrap_or(function.trim_start_matches('.'));
        if function == "dyn" && args.len() == 1 {
            let cost = self.cost(&args[0]).plus(Estimate::exactly(1));
            self.copy_sizes(expr, &args[0]);
            return cost;
        }
        let costs: Vec<Estimate> = args.iter().map(|arg| self.cost(arg)).collect();
        let target_cost = target.map_or_else(Estimate::default, |target| self.cost(target));
        let overloads = &self.checked.overloads[expr.id as usize];
        if overloads.is_empty() {
            return Estimate::default();
        }
        let call = calls::Call { expr, function, target, args, costs: &costs };
        let mut total = Estimate { min: u64::MAX, max: 0 };
        let mut result: Option<Estimate> = None;
        for overload in overloads {
            let (cost, size) = self.call_cost(&call, overload);
            total = total.union(cost);
            result = match (result, size) {
                (Some(before), Some(size)) => Some(before.union(size)),
                (before, size) => before.or(size),
            };
            if matches!(*overload, "index_list" | "index_map") {
                result = self.inside(&args[0]).map(|inside| inside.value);
                let origin = self.descend(self.origin(&args[0]), PathStep::Items);
                self.set_origin(expr, origin);
            }
            if result.is_none() {
                result = self.size(expr);
            }
        }
        if let Some(size) = result {
            self.sizes.insert(expr.id, size);
        }
        target_cost.plus(total)
    }

    fn copy_sizes(&mut self, to: &Expr, from: &'a Expr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(to.id, size);
        }
        if let Some(inside) = self.inside(from) {
            self.insides.insert(to.id, inside);
        }
    }

    fn binding(&mut self, expr: &'a Expr, fold: &'a Fold) -> Estimate {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.push_accumulator(fold);
        sum = sum.plus(self.cost(&fold.result));
        self.locals.pop();
        self.copy_sizes(expr, &fold.result);
        sum
    }

    fn push_accumulator(&mut self, fold: &'a Fold) {
        let local = Local {
            name: &fold.accumulator,
            origin: self.origin(&fold.init),
            size: self.size(&fold.init),
            inside: self.inside(&fold.init),
        };
        self.locals.push(local);
    }

    fn fold(&mut self, expr: &'a Expr, fold: &'a Fold) -> Estimate {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.push_accumulator(fold);
        let outer = self.locals.len();
        let inside = self.inside(&fold.range);
        let is_list = match inside {
            Some(inside) => inside.is_list,
            None => matches!(self.kind(&fold.range), Type::List(_)),
        };
        let origin = self.origin(&fold.range);
        let push = |estimator: &mut Self, name: &'a str, step: PathStep<'_>, size| {
            let origin = estimator.descend(origin, step);
            estimator.locals.push(Local { name, origin, size, inside: None });
        };
        let (key, value) = (inside.map(|i| i.key), inside.map(|i| i.value));
        match &fold.second {
            Some(second) => {
                let first = if is_list { PathStep::Positions } else { PathStep::Keys };
                push(self, &fold.variable, first, key);
                push(self, second, PathStep::Items, value);
            }
            None if is_list => push(self, &fold.variable, PathStep::Items, value),
            None => push(self, &fold.variable, PathStep::Keys, key),
        }
        let each = self.cost(&fold.condition).plus(self.cost(&fold.step));
        self.locals.truncate(outer);
        sum = sum.plus(self.cost(&fold.result));
        self.locals.truncate(outer - 1);
        let times = self.size_or_unknown(&fold.range);
        sum = sum.plus(times.times(each));
        match &fold.init.kind {
            ExprKind::Literal(_) => {
                if let Some(size) = self.size(&fold.init) {
                    self.sizes.insert(expr.id, size);
                }
            }
            ExprKind::List(_) | ExprKind::Map(_) => {
                self.sizes.insert(expr.id, times);
                if let Some(inside) = self.inside(&fold.step) {
                    self.insides.insert(expr.id, inside);
                }
            }
            _ => {}
        }
        sum
    }
}

/// Whether values of a library type compare in one step.
fn compares_at_once(library: Library) -> bool {
    !matches!(library, Library::Format | Library::Url)
}

/// Whether an operator compares texts.
fn compares(overload: &str) -> bool {
    const ORDERS: [&str; 4] = ["less_", "less_equals_", "greater_", "greater_equals_"];
    let ordered = |suffix: &str| {
        ORDERS.iter().any(|prefix| overload.strip_prefix(prefix).is_some_and(|kind| kind == suffix))
    };
    matches!(overload, "equals" | "not_equals") || ordered("string") || ordered("bytes")
}

/// Whether a function is an operator with its own cost rules.
fn is_junction(function: &str) -> bool {
    matches!(function, operator::AND | operator::OR)
}
