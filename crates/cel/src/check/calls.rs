//! The overloads of calls.

use super::{TypeChecker, dotted_name};
use crate::ast::{Expr, ExprKind, Literal, operator};
use crate::functions::{Overload, overloads};
use crate::message::{self, Vocabulary};
use crate::types::Type;

impl TypeChecker {
    pub(super) fn call(
        &mut self,
        expr: &Expr,
        function: &str,
        target: Option<&Expr>,
        args: &[Expr],
    ) -> Type {
        if function == operator::OPTIONAL_SELECT {
            let ExprKind::Literal(Literal::Text(field)) = &args[1].kind else {
                return Type::Error;
            };
            self.expr(&args[1]);
            self.checked.overloads[expr.id as usize] = vec!["select_optional_field"];
            let found = self.field(expr.at, &args[0], field, true);
            return self.bindings.resolve(&found, false);
        }
        for arg in args {
            self.expr(arg);
        }
        let Some(target) = target else {
            let name = function.trim_start_matches('.');
            return match self.overloads(name) {
                Some(all) => self.resolve(expr, name, all, None, args),
                None => self.report_undeclared(expr.at, function),
            };
        };
        if let Some(name) = dotted_name(target).map(|prefix| format!("{prefix}.{function}"))
            && let Some(all) = self.overloads(&name)
        {
            self.checked.qualified[expr.id as usize] = Some(name.as_str().into());
            return self.resolve(expr, &name, all, None, args);
        }
        self.expr(target);
        match self.overloads(function) {
            Some(all) => self.resolve(expr, function, all, Some(target), args),
            None => self.report_undeclared(expr.at, function),
        }
    }

    fn overloads(&self, function: &str) -> Option<&'static [Overload]> {
        let known = self.vocabulary == Vocabulary::Mutations || !message::is_function(function);
        known.then(|| overloads(function)).flatten()
    }

    fn resolve(
        &mut self,
        expr: &Expr,
        name: &str,
        all: &'static [Overload],
        target: Option<&Expr>,
        args: &[Expr],
    ) -> Type {
        let given: Vec<Type> =
            target.into_iter().chain(args).map(|arg| self.type_of(arg.id)).collect();
        let mut result: Option<Type> = None;
        for overload in all.iter().filter(|overload| overload.member == target.is_some()) {
            if matches!(name, operator::AND | operator::OR) {
                return self.junction(expr, overload, &given, args);
            }
            let first = self.bindings.reserve(overload.variables);
            let expected: Vec<Type> =
                overload.parameters.iter().map(|expected| renumber(expected, first)).collect();
            if !self.bindings.assign_all(&given, &expected) {
                continue;
            }
            self.checked.overloads[expr.id as usize].push(overload.id);
            let found = self.bindings.resolve(&renumber(&overload.result, first), false);
            result = Some(match result {
                Some(before) if !matches!(before, Type::Dyn) && before != found => Type::Dyn,
                Some(before) => before,
                None => found,
            });
        }
        result.unwrap_or_else(|| {
            let given: Vec<String> =
                given.iter().map(|given| self.bindings.resolve(given, true).to_string()).collect();
            let signature = match target {
                Some(_) => format!("{}.({})", given[0], given[1..].join(", ")),
                None => format!("({})", given.join(", ")),
            };
            let text = format!("found no matching overload for '{name}' applied to '{signature}'");
            self.report(expr.at, text);
            Type::Error
        })
    }

    fn junction(
        &mut self,
        expr: &Expr,
        overload: &Overload,
        given: &[Type],
        args: &[Expr],
    ) -> Type {
        self.checked.overloads[expr.id as usize] = vec![overload.id];
        let mut result = Type::Bool;
        for (given, arg) in given.iter().zip(args) {
            if !self.bindings.assign(given, &Type::Bool) {
                self.report_mismatch(arg.at, &Type::Bool, given);
                result = Type::Error;
            }
        }
        result
    }
}

fn renumber(given: &Type, first: u32) -> Type {
    match given {
        Type::Variable(name) => Type::Variable(first + name),
        other => other.with_parameters(&mut |inner| renumber(inner, first)),
    }
}
