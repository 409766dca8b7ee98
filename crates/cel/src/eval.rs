//! Evaluation of checked expressions, within a cost limit.
//!
//! Costs are those of upstream. Two of its ways show in them: a chain of selections is one thing
//! (an attribute), whose branches in a conditional cost one unit less; and what consists of
//! constants is computed once and free.

mod attributes;
mod folds;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use regex::Regex;

use self::attributes::has_base_cost;
use self::folds::is_accumulator;
use crate::ast::{Element, Entry, Expr, Field, Id, Kind, Literal, operator};
use crate::equality::Work;
use crate::library;
use crate::limits::{LIST_COST, MAP_COST, MESSAGE_COST};
use crate::message::{self, Message};
use crate::pattern;
use crate::program::Program;
use crate::runtime_cost;
use crate::value::{Failure, Key, List, Made, Map, Outcome, Value, fail, no_such_overload};

/// Patterns that one evaluation keeps compiled.
const PATTERNS_MAX: usize = 64;

pub(crate) struct Evaluator<'a> {
    program: &'a Program,
    /// Names and what they stand for, innermost last.
    scopes: Vec<(&'a str, Outcome<'a>)>,
    pub cost: u64,
    limit: u64,
    pub work: Work,
    constants: HashMap<Id, Outcome<'a>>,
    sets: HashMap<Id, Rc<Option<HashSet<Key>>>>,
    patterns: HashMap<Box<str>, Rc<Regex>>,
}

impl<'a> Evaluator<'a> {
    pub fn new(program: &'a Program, variables: Vec<(&'a str, Outcome<'a>)>, limit: u64) -> Self {
        Self {
            program,
            scopes: variables,
            cost: 0,
            limit,
            work: Work::default(),
            constants: HashMap::new(),
            sets: HashMap::new(),
            patterns: HashMap::new(),
        }
    }

    fn charge(&mut self, units: u64) -> Result<(), Failure> {
        self.cost = self.cost.saturating_add(units);
        if self.cost > self.limit { Err(Failure::Cost) } else { Ok(()) }
    }

    pub fn expr(&mut self, expr: &'a Expr) -> Outcome<'a> {
        if self.program.is_constant(expr.id) {
            return self.constant(expr);
        }
        match &expr.kind {
            Kind::Literal(literal) => Ok(literal_value(literal)),
            Kind::Ident(name) => self.ident(name),
            Kind::Select { operand, field, test } => self.select(expr, operand, field, *test),
            Kind::Call { function, target, args } => {
                self.call(expr, function, target.as_deref(), args)
            }
            Kind::List(elements) => self.list(elements),
            Kind::Map(entries) => self.map(entries),
            Kind::Struct { name, fields } => self.message(name, fields),
            Kind::Fold(fold) => self.fold(fold),
        }
    }

    /// Computed once, and free.
    fn constant(&mut self, expr: &'a Expr) -> Outcome<'a> {
        if let Some(known) = self.constants.get(&expr.id) {
            return known.clone();
        }
        let cost = self.cost;
        let value = match &expr.kind {
            Kind::Literal(literal) => Ok(literal_value(literal)),
            Kind::List(elements) => self.list(elements),
            Kind::Map(entries) => self.map(entries),
            Kind::Call { args, .. } if self.program.overload(expr.id) == "in_list" => {
                // Nothing is in an empty list.
                let _ = args;
                Ok(Value::Bool(false))
            }
            Kind::Call { function, args, .. } => self.convert(function, args),
            Kind::Ident(name) => named_type(name),
            Kind::Select { .. } => named_type(self.program.qualified(expr.id).unwrap_or_default()),
            _ => no_such_overload(),
        };
        self.cost = cost;
        self.constants.insert(expr.id, value.clone());
        value
    }

    fn convert(&mut self, function: &str, args: &'a [Expr]) -> Outcome<'a> {
        let value = self.expr(&args[0])?;
        library::call(self, function, vec![value])
    }

    fn ident(&mut self, name: &str) -> Outcome<'a> {
        self.charge(1)?;
        let name = name.trim_start_matches('.');
        match self.scopes.iter().rev().find(|(known, _)| *known == name) {
            Some((_, value)) => value.clone(),
            None => fail(format!("no such attribute(s): {name}")),
        }
    }

    fn call(
        &mut self,
        expr: &'a Expr,
        function: &'a str,
        target: Option<&'a Expr>,
        args: &'a [Expr],
    ) -> Outcome<'a> {
        match function {
            operator::AND => return self.junction(args, false),
            operator::OR => return self.junction(args, true),
            operator::CONDITIONAL => return self.conditional(args),
            operator::OPTIONAL_SELECT => {
                if let Kind::Literal(Literal::Text(field)) = &args[1].kind {
                    return self.optional_select(&args[0], field);
                }
            }
            operator::INDEX => return self.index(args, false),
            operator::OPTIONAL_INDEX => return self.index(args, true),
            operator::NOT_STRICTLY_FALSE => return self.not_strictly_false(&args[0]),
            operator::ADD if is_accumulator(&args[0]) => return self.append(expr, args),
            operator::MAP_INSERT => return self.insert(args),
            operator::IN if self.program.is_constant(args[1].id) => {
                return self.member_of_constant(expr, args);
            }
            "or" | "orValue" if args.len() == 1 => {
                if let Some(target) = target {
                    return self.alternative(target, &args[0], function == "or");
                }
            }
            _ => {}
        }
        self.plain_call(expr, function, target, args)
    }

    fn plain_call(
        &mut self,
        expr: &'a Expr,
        function: &'a str,
        target: Option<&'a Expr>,
        args: &'a [Expr],
    ) -> Outcome<'a> {
        let (function, target) = match self.program.qualified(expr.id) {
            Some(name) => (name, None),
            None => (function.trim_start_matches('.'), target),
        };
        // Up to two arguments are evaluated, and paid, before the first error counts. Of more, none is
        // looked at after an error, and the call is paid only when all have been.
        let count = args.len() + usize::from(target.is_some());
        let mut values = Vec::with_capacity(count);
        let mut failure = None;
        for arg in target.into_iter().chain(args) {
            match self.expr(arg) {
                Ok(value) => values.push(value),
                Err(failure) if failure.is_final() => return Err(failure),
                Err(error) if count > 2 && values.len() + 1 < count => return Err(error),
                Err(error) => {
                    failure = failure.or(Some(error));
                    // An error has the size of a value without parts.
                    values.push(Value::Null);
                }
            }
        }
        if let Some(failure) = failure {
            let overload = self.program.overload(expr.id);
            if let Some(text) = runtime_cost::internal_failure(overload, &values) {
                return Err(Failure::Internal(text.to_owned()));
            }
            self.charge(runtime_cost::call(function, overload, &values, None))?;
            return Err(failure);
        }
        self.invoke(expr.id, function, values)
    }

    fn invoke(&mut self, id: Id, function: &str, values: Vec<Value<'a>>) -> Outcome<'a> {
        let overload = self.program.overload(id);
        for value in &values {
            self.measure(value)?;
        }
        // Only the cost of joined texts depends on the result.
        if function == "join" {
            let result = library::call(self, function, values.clone());
            self.charge(runtime_cost::call(function, overload, &values, result.as_ref().ok()))?;
            return result;
        }
        self.charge(runtime_cost::call(function, overload, &values, None))?;
        library::call(self, function, values)
    }

    /// Sizes of texts are found by counting.
    fn measure(&mut self, value: &Value<'a>) -> Result<(), Failure> {
        match value {
            Value::Text(text) => self.work.add(text.len() as u64 / 16),
            _ => Ok(()),
        }
    }

    fn junction(&mut self, args: &'a [Expr], decisive: bool) -> Outcome<'a> {
        let mut failure = None;
        for arg in args {
            match self.expr(arg) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Err(failure) if failure.is_final() => return Err(failure),
                Err(error) => failure = failure.or(Some(error)),
                Ok(_) => {
                    let error = Failure::Error("no such overload".to_owned());
                    failure = failure.or(Some(error));
                }
            }
        }
        failure.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn conditional(&mut self, args: &'a [Expr]) -> Outcome<'a> {
        let branch = match self.expr(&args[0])? {
            Value::Bool(true) => &args[1],
            Value::Bool(false) => &args[2],
            _ => return no_such_overload(),
        };
        let value = self.expr(branch);
        if has_base_cost(branch) && !self.program.is_constant(branch.id) {
            self.cost = self.cost.saturating_sub(1);
        }
        value
    }

    fn not_strictly_false(&mut self, arg: &'a Expr) -> Outcome<'a> {
        let value = self.expr(arg);
        self.charge(1)?;
        match value {
            Err(failure) if failure.is_final() => Err(failure),
            Ok(Value::Bool(value)) => Ok(Value::Bool(value)),
            _ => Ok(Value::Bool(true)),
        }
    }

    /// `a.or(b)` and `a.orValue(b)`: `b` is looked at only when `a` is empty.
    fn alternative(&mut self, target: &'a Expr, other: &'a Expr, keep: bool) -> Outcome<'a> {
        match self.expr(target)? {
            Value::Optional(Some(inner)) if keep => Ok(Value::Optional(Some(inner))),
            Value::Optional(Some(inner)) => Ok((*inner).clone()),
            Value::Optional(None) => self.expr(other),
            // What is no optional stands for itself.
            value => Ok(value),
        }
    }

    fn list(&mut self, elements: &'a [Element]) -> Outcome<'a> {
        // Paid whether it can be made or not.
        self.charge(LIST_COST)?;
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            match (self.expr(&element.value)?, element.optional) {
                (value, false) => items.push(value),
                (Value::Optional(None), true) => {}
                (Value::Optional(Some(inner)), true) => items.push((*inner).clone()),
                (_, true) => {
                    return fail("cannot initialize optional list element from non-optional value");
                }
            }
        }
        Ok(Value::list(items))
    }

    fn map(&mut self, entries: &'a [Entry]) -> Outcome<'a> {
        self.charge(MAP_COST)?;
        let mut made = Made::default();
        for entry in entries {
            let key = self.expr(&entry.key)?;
            let value = match (self.expr(&entry.value)?, entry.optional) {
                (value, false) => value,
                (Value::Optional(None), true) => continue,
                (Value::Optional(Some(inner)), true) => (*inner).clone(),
                (_, true) => {
                    return fail("cannot initialize optional entry from non-optional value");
                }
            };
            made.insert(key, value);
        }
        Ok(Value::Map(Map::Made(Rc::new(made))))
    }

    fn message(&mut self, name: &str, fields: &'a [Field]) -> Outcome<'a> {
        self.charge(MESSAGE_COST)?;
        let mut message = Message::new(name);
        for field in fields {
            match (self.expr(&field.value)?, field.optional) {
                (value, false) => message.set(&field.name, value),
                (Value::Optional(None), true) => message.unset(&field.name),
                (Value::Optional(Some(inner)), true) => {
                    message.set(&field.name, (*inner).clone());
                }
                (_, true) => {
                    return fail("cannot initialize optional entry from non-optional value");
                }
            }
        }
        message.check()?;
        Ok(Value::Message(Rc::new(message)))
    }

    /// `x in [1, 2]`: the constants are put into a set once, and looking there is free.
    fn member_of_constant(&mut self, expr: &'a Expr, args: &'a [Expr]) -> Outcome<'a> {
        let id = args[1].id;
        let set = match self.sets.get(&id) {
            Some(set) => set.clone(),
            None => {
                let list = self.expr(&args[1])?;
                let set = match &list {
                    Value::List(List::Made(items)) => items.iter().map(Value::key).collect(),
                    _ => None,
                };
                let set = Rc::new(set);
                self.sets.insert(id, set.clone());
                set
            }
        };
        let value = self.expr(&args[0])?;
        match (&*set, value.key()) {
            (Some(set), Some(key)) => Ok(Value::Bool(set.contains(&key))),
            (Some(_), None) => Ok(Value::Bool(false)),
            (None, _) => {
                let list = self.expr(&args[1])?;
                self.invoke(expr.id, operator::IN, vec![value, list])
            }
        }
    }

    /// A compiled pattern; those in the expression itself were compiled with it.
    pub fn pattern(&mut self, text: &str) -> Result<Rc<Regex>, regex::Error> {
        if let Some(known) = self.patterns.get(text) {
            return Ok(known.clone());
        }
        let compiled = match self.program.pattern(text) {
            Some(known) => Rc::new(known.clone()),
            None => Rc::new(pattern::compile_computed(text)?),
        };
        if self.patterns.len() >= PATTERNS_MAX {
            self.patterns.clear();
        }
        self.patterns.insert(text.into(), compiled.clone());
        Ok(compiled)
    }
}

fn literal_value<'a>(literal: &Literal) -> Value<'a> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::Text(text) => Value::text(&**text),
        Literal::Bytes(bytes) => Value::Bytes((&**bytes).into()),
    }
}

fn named_type<'a>(name: &str) -> Outcome<'a> {
    let name = name.trim_start_matches('.');
    match crate::check::named_type(name).or_else(|| message::named(name)) {
        Some(named) => Ok(Value::Type(Rc::new(named))),
        None => fail(format!("no such attribute(s): {name}")),
    }
}
