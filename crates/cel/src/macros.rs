//! Macros: calls that expand to other expressions.
//!
//! The expansions are those of `cel-go`, node for node, because costs depend on them.

use crate::ast::{ACCUMULATOR, Element, Expr, ExprKind, Fold, Literal, operator};
use crate::build::Builder;
use crate::source::CompileProblem;

type Built = Result<Expr, CompileProblem>;

/// A call without a receiver: `has(a.b)`, or a function.
pub(crate) fn global(build: &mut Builder, at: u32, name: &str, mut args: Vec<Expr>) -> Built {
    if name != "has" || args.len() != 1 {
        return build.call(at, name, args);
    }
    let arg = args.remove(0);
    match arg.kind {
        ExprKind::Select { operand, field, test: false } => {
            build.node(at, ExprKind::Select { operand, field, test: true })
        }
        _ => Err(CompileProblem {
            at: arg.at,
            message: "invalid argument to has() macro".to_owned(),
        }),
    }
}

/// A call on a receiver: a macro over a list, map or optional, or a member function.
pub(crate) fn member(
    build: &mut Builder,
    at: u32,
    target: Expr,
    name: &str,
    args: Vec<Expr>,
) -> Built {
    match (name, args.len()) {
        ("all" | "exists" | "exists_one", 2) => quantifier(build, at, target, name, args, false),
        ("all" | "exists" | "exists_one" | "existsOne", 3) => {
            quantifier(build, at, target, name, args, true)
        }
        ("map", 2 | 3) | ("filter", 2) => expand_map(build, at, target, name, args),
        ("transformList" | "transformMap", 3 | 4) | ("transformMapEntry", 3 | 4) => {
            expand_transform(build, at, target, name, args)
        }
        ("sortBy", 2) => expand_sort_by(build, at, target, args),
        ("optMap" | "optFlatMap", 2) => optional(build, at, target, name, args),
        _ => build.member(at, target, name, args),
    }
}

/// The error for an argument that names no variable.
const NO_NAME: &str = "argument must be a simple name";
/// The same for `map`, `filter` and `sortBy`.
const NO_IDENTIFIER: &str = "argument is not an identifier";
/// A variable that cannot be declared: the former name of upstream's accumulator.
const ACCUMULATOR_BEFORE: &str = "__result__";

/// Removes the first argument, which names a variable; `refusal` is the error when it does not.
fn variable(args: &mut Vec<Expr>, refusal: &str) -> Result<Box<str>, CompileProblem> {
    let first = args.remove(0);
    let message = match first.kind {
        ExprKind::Ident(name) if &*name == ACCUMULATOR_BEFORE => {
            "iteration variable overwrites accumulator variable"
        }
        ExprKind::Ident(name) if !name.starts_with('.') => return Ok(name),
        _ => refusal,
    };
    Err(CompileProblem { at: first.at, message: message.to_owned() })
}

fn variables(args: &mut Vec<Expr>) -> Result<(Box<str>, Box<str>), CompileProblem> {
    let first = variable(args, NO_NAME)?;
    let at = args[0].at;
    let second = variable(args, NO_NAME)?;
    if first == second {
        return Err(CompileProblem { at, message: format!("duplicate variable name: {first}") });
    }
    Ok((first, second))
}

fn accumulator(build: &mut Builder, at: u32) -> Built {
    build.ident(at, ACCUMULATOR)
}

struct Loop {
    range: Expr,
    variable: Box<str>,
    second: Option<Box<str>>,
    init: Expr,
    condition: Expr,
    step: Expr,
}

impl Loop {
    fn build(self, build: &mut Builder, at: u32, result: Expr) -> Built {
        let fold = Fold {
            range: self.range,
            variable: self.variable,
            second: self.second,
            accumulator: ACCUMULATOR.into(),
            init: self.init,
            condition: self.condition,
            step: self.step,
            result,
        };
        build.node(at, ExprKind::Fold(Box::new(fold)))
    }
}

fn quantifier(
    build: &mut Builder,
    at: u32,
    range: Expr,
    name: &str,
    mut args: Vec<Expr>,
    two: bool,
) -> Built {
    let (variable, second) = if two {
        let (first, second) = variables(&mut args)?;
        (first, Some(second))
    } else {
        (variable(&mut args, NO_NAME)?, None)
    };
    let predicate = args.remove(0);
    let current = accumulator(build, at)?;
    let (init, condition, step) = match name {
        "all" => {
            let init = build.literal(at, Literal::Bool(true))?;
            let so_far = accumulator(build, at)?;
            let condition = build.call(at, operator::NOT_STRICTLY_FALSE, vec![so_far])?;
            (init, condition, build.call(at, operator::AND, vec![current, predicate])?)
        }
        "exists" => {
            let init = build.literal(at, Literal::Bool(false))?;
            let so_far = accumulator(build, at)?;
            let none = build.call(at, operator::NOT, vec![so_far])?;
            let condition = build.call(at, operator::NOT_STRICTLY_FALSE, vec![none])?;
            (init, condition, build.call(at, operator::OR, vec![current, predicate])?)
        }
        _ => {
            let init = build.literal(at, Literal::Int(0))?;
            let condition = build.literal(at, Literal::Bool(true))?;
            let one = build.literal(at, Literal::Int(1))?;
            let counted = build.call(at, operator::ADD, vec![current, one])?;
            let same = accumulator(build, at)?;
            let step = build.call(at, operator::CONDITIONAL, vec![predicate, counted, same])?;
            (init, condition, step)
        }
    };
    let found = accumulator(build, at)?;
    let result = if matches!(name, "all" | "exists") {
        found
    } else {
        let one = build.literal(at, Literal::Int(1))?;
        build.call(at, operator::EQUALS, vec![found, one])?
    };
    Loop { range, variable, second, init, condition, step }.build(build, at, result)
}

fn expand_map(build: &mut Builder, at: u32, range: Expr, name: &str, mut args: Vec<Expr>) -> Built {
    let variable = variable(&mut args, NO_IDENTIFIER)?;
    let last = args.pop().expect("two or three arguments");
    let (filter, item) = match name {
        "filter" => (Some(last), build.ident(at, &variable)?),
        _ => (args.pop(), last),
    };
    let init = build.node(at, ExprKind::List(Vec::new()))?;
    let step = append_step(build, at, item)?;
    finish(build, at, Unfinished { range, variable, second: None, filter, init, step })
}

fn append_step(build: &mut Builder, at: u32, value: Expr) -> Built {
    let so_far = accumulator(build, at)?;
    let one = build.node(at, ExprKind::List(vec![Element { value, optional: false }]))?;
    build.call(at, operator::ADD, vec![so_far, one])
}

fn expand_transform(
    build: &mut Builder,
    at: u32,
    range: Expr,
    name: &str,
    mut args: Vec<Expr>,
) -> Built {
    let (variable, second) = variables(&mut args)?;
    let value = args.pop().expect("three or four arguments");
    let filter = args.pop();
    let (init, step) = if name == "transformList" {
        (build.node(at, ExprKind::List(Vec::new()))?, append_step(build, at, value)?)
    } else {
        let mut parts = vec![accumulator(build, at)?];
        if name == "transformMap" {
            parts.push(build.ident(at, &variable)?);
        }
        parts.push(value);
        let init = build.node(at, ExprKind::Map(Vec::new()))?;
        (init, build.call(at, operator::MAP_INSERT, parts)?)
    };
    finish(build, at, Unfinished { range, variable, second: Some(second), filter, init, step })
}

/// A loop over all items that skips those that do not pass the filter.
struct Unfinished {
    range: Expr,
    variable: Box<str>,
    second: Option<Box<str>>,
    filter: Option<Expr>,
    init: Expr,
    step: Expr,
}

fn finish(build: &mut Builder, at: u32, parts: Unfinished) -> Built {
    let Unfinished { range, variable, second, filter, init, mut step } = parts;
    let condition = build.literal(at, Literal::Bool(true))?;
    if let Some(filter) = filter {
        let same = accumulator(build, at)?;
        step = build.call(at, operator::CONDITIONAL, vec![filter, step, same])?;
    }
    let result = accumulator(build, at)?;
    Loop { range, variable, second, init, condition, step }.build(build, at, result)
}

/// `optMap` and `optFlatMap`: the value of the optional, if it has one, gets a name.
fn optional(build: &mut Builder, at: u32, target: Expr, name: &str, mut args: Vec<Expr>) -> Built {
    let refusal = format!("{name}() variable name must be a simple identifier");
    let accumulator = variable(&mut args, &refusal)?;
    let result = args.remove(0);
    let again = build.copy(&target)?;
    let present = build.member(at, target, "hasValue", Vec::new())?;
    let init = build.member(at, again, "value", Vec::new())?;
    let mut value = bound(build, at, accumulator, init, result)?;
    if name == "optMap" {
        value = build.call(at, "optional.of", vec![value])?;
    }
    let none = build.call(at, "optional.none", Vec::new())?;
    build.call(at, operator::CONDITIONAL, vec![present, value, none])
}

/// `result` with a name for the value of `init`.
fn bound(build: &mut Builder, at: u32, name: Box<str>, init: Expr, result: Expr) -> Built {
    let fold = Fold {
        range: build.node(at, ExprKind::List(Vec::new()))?,
        variable: "#unused".into(),
        second: None,
        init,
        condition: build.literal(at, Literal::Bool(false))?,
        step: build.ident(at, &name)?,
        accumulator: name,
        result,
    };
    build.node(at, ExprKind::Fold(Box::new(fold)))
}

/// `sortBy`: the keys of all items are computed first.
fn expand_sort_by(build: &mut Builder, at: u32, target: Expr, args: Vec<Expr>) -> Built {
    const INPUT: &str = "@__sortBy_input__";
    if matches!(target.kind, ExprKind::Literal(_) | ExprKind::Map(_) | ExprKind::Struct { .. }) {
        let message = "sortBy can only be applied to a list, identifier, comprehension, call or \
                       select expression";
        return Err(CompileProblem { at: target.at, message: message.to_owned() });
    }
    let input = build.ident(at, INPUT)?;
    let keys = expand_map(build, at, input, "map", args)?;
    let input = build.ident(at, INPUT)?;
    let sorted = build.member(at, input, "@sortByAssociatedKeys", vec![keys])?;
    bound(build, at, INPUT.into(), target, sorted)
}
