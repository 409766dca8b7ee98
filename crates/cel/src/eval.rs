//! Evaluation of checked expressions, within a cost limit.
//!
//! Costs are those of cel-go, with two peculiarities: a chain of selections is one attribute, whose
//! branches in a conditional cost one unit less; and an expression of constants is computed once,
//! without cost.

mod attributes;
mod folds;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use regex::Regex;

use self::attributes::has_base_cost;
use self::folds::is_accumulator;
use crate::ast::{Element, Expr, ExprKind, Id, Literal, MapEntry, MessageField, operator};
use crate::equality::Work;
use crate::library;
use crate::limits::{LIST_COST, MAP_COST, MESSAGE_COST};
use crate::message::{self, MessageValue};
use crate::pattern;
use crate::program::Program;
use crate::runtime_cost;
use crate::value::{
    EvalFailure, EvalResult, List, Made, Map, MapKey, Value, fail, no_such_overload,
};

/// Compiled patterns that one evaluation caches.
const PATTERNS_MAX: usize = 64;

pub(crate) struct Evaluator<'a> {
    program: &'a Program,
    /// Names and their values, innermost last.
    scopes: Vec<(&'a str, EvalResult<'a>)>,
    pub cost: u64,
    limit: u64,
    pub work: Work,
    constants: HashMap<Id, EvalResult<'a>>,
    sets: HashMap<Id, Rc<Option<HashSet<MapKey>>>>,
    patterns: HashMap<Box<str>, Rc<Regex>>,
}

impl<'a> Evaluator<'a> {
    /// An evaluation of `program` with the values of its inputs, which fails after `limit` cost
    /// units.
    pub fn new(
        program: &'a Program,
        variables: Vec<(&'a str, EvalResult<'a>)>,
        limit: u64,
    ) -> Self {
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

    fn charge(&mut self, units: u64) -> Result<(), EvalFailure> {
        self.cost = self.cost.saturating_add(units);
        if self.cost > self.limit { Err(EvalFailure::Cost) } else { Ok(()) }
    }

    /// The value of an expression of the program.
    ///
    /// # Errors
    /// The expression fails on these values, or the limit is exceeded.
    pub fn expr(&mut self, expr: &'a Expr) -> EvalResult<'a> {
        if self.program.is_constant(expr.id) {
            return self.constant(expr);
        }
        match &expr.kind {
            ExprKind::Literal(literal) => Ok(literal_value(literal)),
            ExprKind::Ident(name) => self.ident(name),
            ExprKind::Select { operand, field, test } => self.select(expr, operand, field, *test),
            ExprKind::Call { function, target, args } => {
                self.call(expr, function, target.as_deref(), args)
            }
            ExprKind::List(elements) => self.list(elements),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Struct { name, fields } => self.message(name, fields),
            ExprKind::Fold(fold) => self.fold(fold),
        }
    }

    /// The value of a constant expression, which is computed once and has no cost.
    fn constant(&mut self, expr: &'a Expr) -> EvalResult<'a> {
        if let Some(known) = self.constants.get(&expr.id) {
            return known.clone();
        }
        let cost = self.cost;
        let value = match &expr.kind {
            ExprKind::Literal(literal) => Ok(literal_value(literal)),
            ExprKind::List(elements) => self.list(elements),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Call { args, .. } if self.program.overload(expr.id) == "in_list" => {
                // An empty list contains no value.
                let _ = args;
                Ok(Value::Bool(false))
            }
            ExprKind::Call { function, args, .. } => self.convert(function, args),
            ExprKind::Ident(name) => named_type(name),
            ExprKind::Select { .. } => {
                named_type(self.program.qualified(expr.id).unwrap_or_default())
            }
            _ => no_such_overload(),
        };
        self.cost = cost;
        self.constants.insert(expr.id, value.clone());
        value
    }

    fn convert(&mut self, function: &str, args: &'a [Expr]) -> EvalResult<'a> {
        let value = self.expr(&args[0])?;
        library::call(self, function, vec![value])
    }

    fn ident(&mut self, name: &str) -> EvalResult<'a> {
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
    ) -> EvalResult<'a> {
        match function {
            operator::AND => return self.junction(args, false),
            operator::OR => return self.junction(args, true),
            operator::CONDITIONAL => return self.conditional(args),
            operator::OPTIONAL_SELECT => {
                if let ExprKind::Literal(Literal::Text(field)) = &args[1].kind {
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
    ) -> EvalResult<'a> {
        let (function, target) = match self.program.qualified(expr.id) {
            Some(name) => (name, None),
            None => (function.trim_start_matches('.'), target),
        };
        // Up to two arguments are evaluated and charged before the first error counts. With more
        // arguments, none is evaluated after an error, and the call is charged only when all
        // succeeded.
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
                return Err(EvalFailure::Internal(text.to_owned()));
            }
            self.charge(runtime_cost::call(function, overload, &values, None))?;
            return Err(failure);
        }
        self.invoke(expr.id, function, values)
    }

    fn invoke(&mut self, id: Id, function: &str, values: Vec<Value<'a>>) -> EvalResult<'a> {
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

    /// Adds the work of counting the characters of a text.
    fn measure(&mut self, value: &Value<'a>) -> Result<(), EvalFailure> {
        match value {
            Value::Text(text) => self.work.add(text.len() as u64 / 16),
            _ => Ok(()),
        }
    }

    fn junction(&mut self, args: &'a [Expr], decisive: bool) -> EvalResult<'a> {
        let mut failure = None;
        for arg in args {
            match self.expr(arg) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Err(failure) if failure.is_final() => return Err(failure),
                Err(error) => failure = failure.or(Some(error)),
                Ok(_) => {
                    let error = EvalFailure::Error("no such overload".to_owned());
                    failure = failure.or(Some(error));
                }
            }
        }
        failure.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn conditional(&mut self, args: &'a [Expr]) -> EvalResult<'a> {
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

    fn not_strictly_false(&mut self, arg: &'a Expr) -> EvalResult<'a> {
        let value = self.expr(arg);
        self.charge(1)?;
        match value {
            Err(failure) if failure.is_final() => Err(failure),
            Ok(Value::Bool(value)) => Ok(Value::Bool(value)),
            _ => Ok(Value::Bool(true)),
        }
    }

    /// `a.or(b)` and `a.orValue(b)`: `b` is evaluated only when `a` is empty.
    fn alternative(&mut self, target: &'a Expr, other: &'a Expr, keep: bool) -> EvalResult<'a> {
        match self.expr(target)? {
            Value::Optional(Some(inner)) if keep => Ok(Value::Optional(Some(inner))),
            Value::Optional(Some(inner)) => Ok((*inner).clone()),
            Value::Optional(None) => self.expr(other),
            // A value that is no optional is its own result.
            value => Ok(value),
        }
    }

    fn list(&mut self, elements: &'a [Element]) -> EvalResult<'a> {
        // Charged whether it succeeds or not.
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

    fn map(&mut self, entries: &'a [MapEntry]) -> EvalResult<'a> {
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

    fn message(&mut self, name: &str, fields: &'a [MessageField]) -> EvalResult<'a> {
        self.charge(MESSAGE_COST)?;
        let mut message = MessageValue::new(name);
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

    /// `x in [1, 2]`: the constants are put into a set once, and the lookup has no cost.
    fn member_of_constant(&mut self, expr: &'a Expr, args: &'a [Expr]) -> EvalResult<'a> {
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

    /// A compiled pattern; literal patterns were compiled with the expression.
    ///
    /// # Errors
    /// The text is no pattern, or too large.
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

fn named_type<'a>(name: &str) -> EvalResult<'a> {
    let name = name.trim_start_matches('.');
    match crate::check::named_type(name).or_else(|| message::message_type(name)) {
        Some(named) => Ok(Value::Type(Rc::new(named))),
        None => fail(format!("no such attribute(s): {name}")),
    }
}
