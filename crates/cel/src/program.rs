//! Expressions made ready, and what evaluating them gives.

use std::collections::HashMap;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value as Json;

use crate::ast::{Expr, Id, Kind, Literal, operator};
use crate::check::{Checked, Variable, check, validate};
use crate::declared::Declared;
use crate::estimate::{self, Estimate};
use crate::eval::Evaluator;
use crate::message::{self, Vocabulary};
use crate::parser::parse;
use crate::pattern;
use crate::source::{CompileError, Problem};
use crate::types::Type;
use crate::value::{Failure, Outcome, Value};

/// Functions that, applied to a constant, are a constant.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

/// A name that an expression may use.
#[derive(Clone, Debug)]
pub struct Input {
    pub name: &'static str,
    pub declared: Arc<Declared>,
    /// The value may be absent, which the expression has to reckon with.
    pub optional: bool,
}

/// A checked expression. Immutable, and shared between threads.
#[derive(Debug)]
pub struct Program {
    expr: Expr,
    checked: Checked,
    constants: Vec<bool>,
    patterns: HashMap<Box<str>, Regex>,
    inputs: Vec<Input>,
}

/// The value of an input.
#[derive(Clone, Debug)]
pub enum Given<'a> {
    /// Of the type that is declared.
    Json(&'a Json),
    /// Whatever is declared of it.
    Value(Value<'a>),
}

/// Why an evaluation has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// The expression fails on these values; upstream's words.
    Failed(String),
    /// It would have cost more than it may.
    TooCostly,
}

impl std::error::Error for EvalError {}

impl std::fmt::Display for EvalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Failed(text) => f.write_str(text),
            Self::TooCostly => f.write_str("operation cancelled: actual cost limit exceeded"),
        }
    }
}

impl Program {
    /// Parses and checks `source`, which may use the names of `inputs`.
    ///
    /// # Errors
    /// Everything that is wrong with it, with positions.
    pub fn compile(source: &str, inputs: &[Input]) -> Result<Self, CompileError> {
        Self::compile_with(source, inputs, Vocabulary::Rules)
    }

    /// As [`Program::compile`], with the types and functions of `vocabulary`.
    ///
    /// # Errors
    /// Everything that is wrong with it, with positions.
    pub fn compile_with(
        source: &str,
        inputs: &[Input],
        vocabulary: Vocabulary,
    ) -> Result<Self, CompileError> {
        let (expr, ids) =
            parse(source).map_err(|problem| CompileError::new(source, vec![problem]))?;
        let variables: Vec<Variable> = inputs
            .iter()
            .map(|input| {
                let declared = input.declared.to_type();
                let found = if input.optional { Type::optional(declared) } else { declared };
                (Box::from(input.name), found)
            })
            .collect();
        let checked = check(&expr, ids, &variables, vocabulary)
            .map_err(|problems| CompileError::new(source, problems))?;
        let mut program = Self {
            expr,
            checked,
            constants: vec![false; ids as usize],
            patterns: HashMap::new(),
            inputs: inputs.to_vec(),
        };
        let mut constants = std::mem::take(&mut program.constants);
        let mut problems = validate(&program.expr, &program.checked);
        program.find_constants(&program.expr, &mut constants);
        program.constants = constants;
        let mut failure = None;
        let mut patterns = HashMap::new();
        program.check_constants(&program.expr, &mut patterns, &mut problems, &mut failure);
        program.patterns = patterns;
        match failure {
            _ if !problems.is_empty() => Err(CompileError::new(source, problems)),
            Some(error) => {
                let names = inputs.iter().map(|input| input.name);
                let uses = names.filter(|name| program.uses(name)).collect();
                Err(CompileError::constant(source, error, uses))
            }
            None => Ok(program),
        }
    }

    /// The type of the result.
    pub fn result_type(&self) -> &Type {
        &self.checked.types[self.expr.id as usize]
    }

    /// Whether the expression uses the name.
    pub fn uses(&self, name: &str) -> bool {
        fn mentions(expr: &Expr, name: &str) -> bool {
            match &expr.kind {
                Kind::Ident(found) => found.trim_start_matches('.') == name,
                _ => expr.children().into_iter().any(|child| mentions(child, name)),
            }
        }
        mentions(&self.expr, name)
    }

    /// Nodes one below the other: what evaluation takes of the stack goes by it.
    pub fn height(&self) -> usize {
        usize::from(self.expr.height)
    }

    /// The fields of the input `name` that the expression selects; `None` when it uses the input in
    /// another way.
    pub fn selected_fields(&self, name: &str) -> Option<Vec<&str>> {
        fn collect<'e>(expr: &'e Expr, name: &str, out: &mut Vec<&'e str>) -> bool {
            if let Kind::Select { operand, field, .. } = &expr.kind
                && matches!(&operand.kind, Kind::Ident(found) if &**found == name)
            {
                out.push(field);
                return true;
            }
            match &expr.kind {
                Kind::Ident(found) => found.trim_start_matches('.') != name,
                _ => expr.children().into_iter().all(|child| collect(child, name, out)),
            }
        }
        let mut fields = Vec::new();
        collect(&self.expr, name, &mut fields).then_some(fields)
    }

    pub(crate) fn is_input(&self, name: &str) -> bool {
        self.inputs.iter().any(|input| input.name == name)
    }

    /// What an evaluation costs at least and at most, by the sizes that are declared.
    pub fn estimate(&self) -> Estimate {
        estimate::estimate(&self.expr, &self.checked, &self.inputs)
    }

    /// The result, and what it cost. `values` are those of the inputs, in their order; absent ones
    /// must be optional. Ends soon after the cost is over `limit`.
    pub fn evaluate<'a>(
        &'a self,
        values: &[Option<&'a Json>],
        limit: u64,
    ) -> (Result<Value<'a>, EvalError>, u64) {
        let variables = self.inputs.iter().zip(values).map(|(input, json)| {
            let value = match json {
                Some(json) => Value::from_json(json, &input.declared),
                None => Ok(Value::Optional(None)),
            };
            let wrap = input.optional && json.is_some();
            (input.name, if wrap { value.map(Value::some) } else { value })
        });
        self.run(variables.collect(), limit)
    }

    /// As [`Program::evaluate`], with the values of the inputs by their names. One that is not given
    /// fails where it is used.
    pub fn evaluate_given<'a>(
        &'a self,
        given: &dyn Fn(&str) -> Option<Given<'a>>,
        limit: u64,
    ) -> (Result<Value<'a>, EvalError>, u64) {
        let variables = self.inputs.iter().filter_map(|input| {
            let value = match given(input.name)? {
                Given::Json(json) => Value::from_json(json, &input.declared),
                Given::Value(value) => Ok(value),
            };
            Some((input.name, value))
        });
        self.run(variables.collect(), limit)
    }

    fn run<'a>(
        &'a self,
        variables: Vec<(&'a str, Outcome<'a>)>,
        limit: u64,
    ) -> (Result<Value<'a>, EvalError>, u64) {
        let mut evaluator = Evaluator::new(self, variables, limit);
        let result = evaluator.expr(&self.expr).map_err(|failure| match failure {
            Failure::Error(text) | Failure::Internal(text) => EvalError::Failed(text),
            Failure::Cost => EvalError::TooCostly,
        });
        (result, evaluator.cost)
    }

    pub(crate) fn is_constant(&self, id: Id) -> bool {
        self.constants.get(id as usize).copied().unwrap_or(false)
    }

    /// The one overload that a call can mean; empty when there are several.
    pub(crate) fn overload(&self, id: Id) -> &'static str {
        match self.checked.overloads[id as usize].as_slice() {
            [only] => only,
            _ => "",
        }
    }

    pub(crate) fn qualified(&self, id: Id) -> Option<&str> {
        self.checked.qualified[id as usize].as_deref()
    }

    pub(crate) fn pattern(&self, text: &str) -> Option<&Regex> {
        self.patterns.get(text)
    }

    fn find_constants(&self, expr: &Expr, out: &mut [bool]) {
        for child in expr.children() {
            self.find_constants(child, out);
        }
        let is = |out: &[bool], expr: &Expr| out[expr.id as usize];
        let constant = match &expr.kind {
            Kind::Literal(_) => true,
            Kind::List(elements) => {
                elements.iter().all(|element| !element.optional && is(out, &element.value))
            }
            Kind::Map(entries) => entries
                .iter()
                .all(|entry| !entry.optional && is(out, &entry.key) && is(out, &entry.value)),
            Kind::Call { function, target: None, args } => match args.as_slice() {
                [arg] => CONVERSIONS.contains(&&**function) && is(out, arg),
                [_, list] if &**function == operator::IN => {
                    matches!(&list.kind, Kind::List(items) if items.is_empty())
                        && self.overload(expr.id) == "in_list"
                }
                _ => false,
            },
            Kind::Ident(_) => {
                matches!(self.checked.types[expr.id as usize], Type::Type(_))
                    && matches!(&expr.kind, Kind::Ident(name) if self.names_type(name))
            }
            Kind::Select { .. } => self.qualified(expr.id).is_some_and(|name| !self.is_input(name)),
            _ => false,
        };
        out[expr.id as usize] = constant;
    }

    fn names_type(&self, name: &str) -> bool {
        let is_input = self.inputs.iter().any(|input| input.name == name);
        !is_input && (crate::check::named_type(name).is_some() || message::named(name).is_some())
    }

    /// Constants that can have no value, and the patterns among them.
    fn check_constants(
        &self,
        expr: &Expr,
        patterns: &mut HashMap<Box<str>, Regex>,
        problems: &mut Vec<Problem>,
        failure: &mut Option<String>,
    ) {
        for child in expr.children() {
            self.check_constants(child, patterns, problems, failure);
        }
        let Kind::Call { function, target, args } = &expr.kind else {
            return;
        };
        let literal = |at: usize| match args.get(at).map(|arg| (&arg.kind, arg.at)) {
            Some((Kind::Literal(Literal::Text(text)), at)) => Some((text, at)),
            _ => None,
        };
        match &**function {
            "matches" | "find" | "findAll" => {
                let index = usize::from(target.is_none() && &**function == "matches");
                let Some((text, at)) = literal(index) else {
                    return;
                };
                match pattern::compile(text) {
                    Ok(regex) => {
                        patterns.insert(text.clone(), regex);
                    }
                    Err(_) if &**function == "matches" => {
                        let message = "invalid matches argument".to_owned();
                        problems.push(Problem { at, message });
                    }
                    Err(_) => {}
                }
            }
            // In the words of upstream where a literal is wrong, and of its planner elsewhere.
            name if self.is_constant(expr.id) && CONVERSIONS.contains(&name) => {
                let mut evaluator = Evaluator::new(self, Vec::new(), u64::MAX);
                if let Err(Failure::Error(error)) = evaluator.expr(expr) {
                    let arg = args.first().filter(|arg| matches!(arg.kind, Kind::Literal(_)));
                    match (name, arg.map(|arg| arg.at)) {
                        ("duration" | "timestamp", Some(at)) => {
                            let message = format!("invalid {name} argument");
                            problems.push(Problem { at, message });
                        }
                        _ => *failure = failure.take().or(Some(error)),
                    }
                }
            }
            _ => {}
        }
    }
}
