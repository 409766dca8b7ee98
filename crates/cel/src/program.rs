//! Compiled expressions and their evaluation.

use std::collections::HashMap;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value as Json;

use crate::ast::{Expr, ExprKind, Id, Literal, operator};
use crate::check::{Checked, Variable, check, validate};
use crate::declared::Declared;
use crate::estimate::{self, Estimate};
use crate::eval::Evaluator;
use crate::message::{self, Vocabulary};
use crate::parser::parse;
use crate::pattern;
use crate::source::{CompileError, CompileProblem};
use crate::types::Type;
use crate::value::{EvalFailure, EvalResult, Value};

/// Functions whose result for a constant is a constant.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

/// A name that an expression may use.
#[derive(Clone, Debug)]
pub struct Input {
    pub name: &'static str,
    pub declared: Arc<Declared>,
    /// Whether the value may be absent. The expression then sees it as an optional.
    pub optional: bool,
}

/// A compiled expression. Immutable, so that threads can share it.
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
    /// JSON of the declared type.
    Json(&'a Json),
    /// A value, whatever type is declared.
    Value(Value<'a>),
}

/// Why an evaluation has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// The expression fails on these values; the text is that of cel-go.
    Failed(String),
    /// The evaluation exceeded its cost limit.
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
    /// All problems of the source, with positions. Report them to the author of the expression.
    pub fn compile(source: &str, inputs: &[Input]) -> Result<Self, CompileError> {
        Self::compile_with(source, inputs, Vocabulary::Rules)
    }

    /// Like [`Program::compile`], with the types and functions of `vocabulary`.
    ///
    /// # Errors
    /// All problems of the source, with positions.
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

    /// Whether the expression uses the name `name`, of an input or of a variable of its own.
    pub fn uses(&self, name: &str) -> bool {
        fn mentions(expr: &Expr, name: &str) -> bool {
            match &expr.kind {
                ExprKind::Ident(found) => found.trim_start_matches('.') == name,
                _ => expr.children().into_iter().any(|child| mentions(child, name)),
            }
        }
        mentions(&self.expr, name)
    }

    /// The depth of the expression, to which the stack that an evaluation needs is proportional.
    pub fn height(&self) -> usize {
        usize::from(self.expr.height)
    }

    /// The fields of the input `name` that the expression selects; `None` when it uses the input in
    /// another way.
    pub fn selected_fields(&self, name: &str) -> Option<Vec<&str>> {
        fn collect<'e>(expr: &'e Expr, name: &str, out: &mut Vec<&'e str>) -> bool {
            if let ExprKind::Select { operand, field, .. } = &expr.kind
                && matches!(&operand.kind, ExprKind::Ident(found) if &**found == name)
            {
                out.push(field);
                return true;
            }
            match &expr.kind {
                ExprKind::Ident(found) => found.trim_start_matches('.') != name,
                _ => expr.children().into_iter().all(|child| collect(child, name, out)),
            }
        }
        let mut fields = Vec::new();
        collect(&self.expr, name, &mut fields).then_some(fields)
    }

    pub(crate) fn is_input(&self, name: &str) -> bool {
        self.inputs.iter().any(|input| input.name == name)
    }

    /// The minimum and maximum cost units of an evaluation, by the declared sizes of the inputs.
    pub fn estimate(&self) -> Estimate {
        estimate::estimate(&self.expr, &self.checked, &self.inputs)
    }

    /// The result and its cost units. `values` are those of the inputs, in their order; absent ones
    /// must be optional. The evaluation ends soon after the cost exceeds `limit`.
    ///
    /// # Errors
    /// The expression fails on these values, or exceeds the limit.
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

    /// Like [`Program::evaluate`], with the values of the inputs by their names. The use of an
    /// input without a value fails.
    ///
    /// # Errors
    /// The expression fails on these values, or exceeds the limit.
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
        variables: Vec<(&'a str, EvalResult<'a>)>,
        limit: u64,
    ) -> (Result<Value<'a>, EvalError>, u64) {
        let mut evaluator = Evaluator::new(self, variables, limit);
        let result = evaluator.expr(&self.expr).map_err(|failure| match failure {
            EvalFailure::Error(text) | EvalFailure::Internal(text) => EvalError::Failed(text),
            EvalFailure::Cost => EvalError::TooCostly,
        });
        (result, evaluator.cost)
    }

    pub(crate) fn is_constant(&self, id: Id) -> bool {
        self.constants.get(id as usize).copied().unwrap_or(false)
    }

    /// The only overload that a call can use; empty when there are several.
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
            ExprKind::Literal(_) => true,
            ExprKind::List(elements) => {
                elements.iter().all(|element| !element.optional && is(out, &element.value))
            }
            ExprKind::Map(entries) => entries
                .iter()
                .all(|entry| !entry.optional && is(out, &entry.key) && is(out, &entry.value)),
            ExprKind::Call { function, target: None, args } => match args.as_slice() {
                [arg] => CONVERSIONS.contains(&&**function) && is(out, arg),
                [_, list] if &**function == operator::IN => {
                    matches!(&list.kind, ExprKind::List(items) if items.is_empty())
                        && self.overload(expr.id) == "in_list"
                }
                _ => false,
            },
            ExprKind::Ident(_) => {
                matches!(self.checked.types[expr.id as usize], Type::Type(_))
                    && matches!(&expr.kind, ExprKind::Ident(name) if self.names_type(name))
            }
            ExprKind::Select { .. } => {
                self.qualified(expr.id).is_some_and(|name| !self.is_input(name))
            }
            _ => false,
        };
        out[expr.id as usize] = constant;
    }

    fn names_type(&self, name: &str) -> bool {
        let is_input = self.inputs.iter().any(|input| input.name == name);
        !is_input
            && (crate::check::named_type(name).is_some() || message::message_type(name).is_some())
    }

    /// Finds constants whose evaluation fails, and compiles the constant patterns.
    fn check_constants(
        &self,
        expr: &Expr,
        patterns: &mut HashMap<Box<str>, Regex>,
        problems: &mut Vec<CompileProblem>,
        failure: &mut Option<String>,
    ) {
        for child in expr.children() {
            self.check_constants(child, patterns, problems, failure);
        }
        let ExprKind::Call { function, target, args } = &expr.kind else {
            return;
        };
        let literal = |at: usize| match args.get(at).map(|arg| (&arg.kind, arg.at)) {
            Some((ExprKind::Literal(Literal::Text(text)), at)) => Some((text, at)),
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
                        problems.push(CompileProblem { at, message });
                    }
                    Err(_) => {}
                }
            }
            // The text is that of cel-go's checker for a wrong literal, and of its planner
            // otherwise.
            name if self.is_constant(expr.id) && CONVERSIONS.contains(&name) => {
                let mut evaluator = Evaluator::new(self, Vec::new(), u64::MAX);
                if let Err(EvalFailure::Error(error)) = evaluator.expr(expr) {
                    let arg = args.first().filter(|arg| matches!(arg.kind, ExprKind::Literal(_)));
                    match (name, arg.map(|arg| arg.at)) {
                        ("duration" | "timestamp", Some(at)) => {
                            let message = format!("invalid {name} argument");
                            problems.push(CompileProblem { at, message });
                        }
                        _ => *failure = failure.take().or(Some(error)),
                    }
                }
            }
            _ => {}
        }
    }
}
