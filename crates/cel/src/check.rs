//! The types of all parts of an expression, and the overloads of its calls.

mod calls;
mod formats;
mod uniform;

use std::sync::Arc;

use self::formats::formats;
use self::uniform::uniform;
use crate::ast::{Expr, ExprKind, Fold, Id, Literal, MessageField};
use crate::message::{self, Vocabulary};
use crate::source::CompileProblem;
use crate::types::{Library, Type};
use crate::unify::{Bindings, most_general};

/// The types and overloads of an expression without type errors, indexed by the ids of its nodes.
#[derive(Debug)]
pub(crate) struct Checked {
    pub types: Vec<Type>,
    /// Overloads that a call may use; more than one where types are only known at run time.
    pub overloads: Vec<Vec<&'static str>>,
    /// Calls whose receiver is a namespace, such as `sets.contains(…)`: their full names.
    pub qualified: Vec<Option<Box<str>>>,
}

/// A name that an expression may use, and its type.
pub(crate) type Variable = (Box<str>, Type);

pub(crate) fn check(
    expr: &Expr,
    ids: u32,
    variables: &[Variable],
    vocabulary: Vocabulary,
) -> Result<Checked, Vec<CompileProblem>> {
    let ids = ids as usize;
    let mut checker = TypeChecker {
        vocabulary,
        problems: Vec::new(),
        bindings: Bindings::default(),
        scopes: variables.to_vec(),
        checked: Checked {
            types: vec![Type::Error; ids],
            overloads: vec![Vec::new(); ids],
            qualified: vec![None; ids],
        },
    };
    checker.expr(expr);
    let TypeChecker { problems, bindings, mut checked, .. } = checker;
    if !problems.is_empty() {
        return Err(problems);
    }
    for kind in &mut checked.types {
        *kind = bindings.resolve(kind, true);
    }
    Ok(checked)
}

/// The problems of an expression whose types are right.
pub(crate) fn validate(expr: &Expr, checked: &Checked) -> Vec<CompileProblem> {
    let mut problems = Vec::new();
    uniform(expr, checked, &mut problems);
    formats(expr, checked, &mut problems);
    problems
}

/// The type of this name, such as `int` in `type(x) == int`.
pub(crate) fn named_type(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "dyn" => Type::Dyn,
        "int" => Type::Int,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "string" => Type::Text,
        "type" => Type::Type(Arc::new(Type::Dyn)),
        "uint" => Type::Uint,
        "optional_type" => Type::optional(Type::Dyn),
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "net.IP" => Type::Library(Library::Ip),
        "net.CIDR" => Type::Library(Library::Cidr),
        _ => return None,
    })
}

/// The dotted name that an expression spells, `a.b` for a field `b` of `a`.
pub(crate) fn dotted_name(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Ident(name) => Some(name.to_string()),
        ExprKind::Select { operand, field, test: false } => {
            let mut name = dotted_name(operand)?;
            name.push('.');
            name.push_str(field);
            Some(name)
        }
        _ => None,
    }
}

struct TypeChecker {
    vocabulary: Vocabulary,
    problems: Vec<CompileProblem>,
    bindings: Bindings,
    /// Innermost last.
    scopes: Vec<Variable>,
    checked: Checked,
}

impl TypeChecker {
    fn report(&mut self, at: u32, message: String) {
        self.problems.push(CompileProblem { at, message });
    }

    fn type_of(&self, id: Id) -> Type {
        self.checked.types[id as usize].clone()
    }

    fn report_undeclared(&mut self, at: u32, name: &str) -> Type {
        self.report(at, format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    fn report_mismatch(&mut self, at: u32, expected: &Type, found: &Type) {
        self.report(at, format!("expected type '{expected}' but found '{found}'"));
    }

    fn expr(&mut self, expr: &Expr) {
        let found = match &expr.kind {
            ExprKind::Literal(literal) => literal_type(literal),
            ExprKind::Ident(name) => {
                self.lookup(name).unwrap_or_else(|| self.report_undeclared(expr.at, name))
            }
            ExprKind::Select { operand, field, test } => self.select(expr, operand, field, *test),
            ExprKind::Call { function, target, args } => {
                self.call(expr, function, target.as_deref(), args)
            }
            ExprKind::List(_) => self.list(expr),
            ExprKind::Map(_) => self.map(expr),
            ExprKind::Struct { name, fields } => self.message(expr.at, name, fields),
            ExprKind::Fold(fold) => self.fold(fold),
        };
        self.checked.types[expr.id as usize] = found;
    }

    fn lookup(&self, name: &str) -> Option<Type> {
        let name = name.trim_start_matches('.');
        let variable = self.scopes.iter().rev().find(|(known, _)| **known == *name);
        let as_type = || self.named_type(name).map(|named| Type::Type(Arc::new(named)));
        variable.map(|(_, found)| found.clone()).or_else(as_type)
    }

    fn named_type(&self, name: &str) -> Option<Type> {
        let of_message = || match self.vocabulary {
            Vocabulary::Rules => None,
            Vocabulary::Mutations => message::message_type(name),
        };
        named_type(name).or_else(of_message)
    }

    fn message(&mut self, at: u32, name: &str, fields: &[MessageField]) -> Type {
        let found = match self.lookup(name) {
            None => return self.report_undeclared(at, name),
            Some(Type::Type(named)) => (*named).clone(),
            Some(other) => {
                self.report(at, format!("'{}' is not a type", other.name()));
                Type::Error
            }
        };
        let made = match &found {
            Type::Message(made) => Some(made.clone()),
            Type::Error => None,
            other => {
                self.report(at, format!("'{}' is not a message type", other.name()));
                None
            }
        };
        for field in fields {
            let given = self.part(&field.value, field.optional);
            let Some(made) = &made else { continue };
            let expected = message::field_type(made, &field.name);
            if !self.bindings.assign(&expected, &given) {
                let given = self.bindings.resolve(&given, true);
                let text = format!(
                    "expected type of field '{}' is '{expected}' but provided type is '{given}'",
                    field.name
                );
                self.report(field.at, text);
            }
        }
        if made.is_some() { found } else { Type::Error }
    }

    fn select(&mut self, expr: &Expr, operand: &Expr, field: &str, test: bool) -> Type {
        if !test
            && let Some(name) = dotted_name(expr)
            && let Some(named) = self.named_type(&name)
        {
            self.checked.qualified[expr.id as usize] = Some(name.into());
            return Type::Type(Arc::new(named));
        }
        // A name that contains a dot, such as `authorizer.requestResource`.
        if !test
            && let Some(name) = dotted_name(expr)
            && let Some((known, found)) = self.scopes.iter().find(|(known, _)| **known == *name)
        {
            let (known, found) = (known.clone(), found.clone());
            self.checked.qualified[expr.id as usize] = Some(known);
            return found;
        }
        let found = self.field(expr.at, operand, field, false);
        if test { Type::Bool } else { self.bindings.resolve(&found, false) }
    }

    fn field(&mut self, at: u32, operand: &Expr, field: &str, optional: bool) -> Type {
        self.expr(operand);
        let whole = self.bindings.resolve(&self.type_of(operand.id), false);
        let (target, inside) = match &whole {
            Type::Optional(inner) => ((**inner).clone(), true),
            other => (other.clone(), false),
        };
        let found = match &target {
            Type::Map(inner) => inner.1.clone(),
            Type::Object(object) => match object.fields.get(field) {
                Some(field) => field.declared.to_type(),
                None => {
                    self.report(at, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            Type::Variable(_) => {
                self.bindings.assign(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            Type::Message(name) => message::field_type(name, field),
            // Messages without fields of their own.
            Type::Library(library) if !matches!(library, Library::Ip | Library::Cidr) => {
                self.report(at, format!("undefined field '{field}'"));
                Type::Error
            }
            other => {
                self.report(at, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if inside || optional { Type::optional(found) } else { found }
    }

    /// The type of two parts of one list or map. A later step checks whether they may differ.
    fn join(&mut self, before: Option<Type>, current: Type) -> Type {
        match before {
            None => current,
            Some(before) if self.bindings.assign(&before, &current) => {
                most_general(&before, &current).clone()
            }
            Some(_) => Type::Dyn,
        }
    }

    /// The type of a part that may be absent.
    fn part(&mut self, value: &Expr, optional: bool) -> Type {
        self.expr(value);
        match self.type_of(value.id) {
            Type::Optional(inner) if optional => (*inner).clone(),
            found => {
                if optional && !found.is_dyn() {
                    self.report_mismatch(value.at, &Type::optional(found.clone()), &found);
                }
                found
            }
        }
    }

    fn list(&mut self, expr: &Expr) -> Type {
        let ExprKind::List(elements) = &expr.kind else {
            return Type::Error;
        };
        let mut items = None;
        for element in elements {
            let found = self.part(&element.value, element.optional);
            items = Some(self.join(items, found));
        }
        Type::list(items.unwrap_or_else(|| self.bindings.fresh()))
    }

    fn map(&mut self, expr: &Expr) -> Type {
        let ExprKind::Map(entries) = &expr.kind else {
            return Type::Error;
        };
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            self.expr(&entry.key);
            keys = Some(self.join(keys, self.type_of(entry.key.id)));
            let found = self.part(&entry.value, entry.optional);
            values = Some(self.join(values, found));
        }
        let key = keys.unwrap_or_else(|| self.bindings.fresh());
        Type::map(key, values.unwrap_or_else(|| self.bindings.fresh()))
    }

    fn fold(&mut self, fold: &Fold) -> Type {
        self.expr(&fold.range);
        self.expr(&fold.init);
        let range = self.bindings.resolve(&self.type_of(fold.range.id), false);
        let accumulated = self.type_of(fold.init.id);
        let (first, value) = match &range {
            Type::List(item) if fold.second.is_some() => (Type::Int, (**item).clone()),
            Type::List(item) => ((**item).clone(), Type::Dyn),
            Type::Map(inner) => (inner.0.clone(), inner.1.clone()),
            Type::Dyn | Type::Error | Type::Variable(_) => {
                self.bindings.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                self.report(fold.range.at, text);
                (Type::Error, Type::Error)
            }
        };
        let outer = self.scopes.len();
        self.scopes.push((fold.accumulator.clone(), accumulated.clone()));
        let inner = self.scopes.len();
        self.scopes.push((fold.variable.clone(), first));
        if let Some(second) = &fold.second {
            self.scopes.push((second.clone(), value));
        }
        self.expr(&fold.condition);
        self.assert(&fold.condition, &Type::Bool);
        self.expr(&fold.step);
        self.assert(&fold.step, &accumulated);
        self.scopes.truncate(inner);
        self.expr(&fold.result);
        self.scopes.truncate(outer);
        self.bindings.resolve(&self.type_of(fold.result.id), false)
    }

    fn assert(&mut self, expr: &Expr, expected: &Type) {
        let found = self.type_of(expr.id);
        if !self.bindings.assign(expected, &found) {
            let (expected, found) =
                (self.bindings.resolve(expected, true), self.bindings.resolve(&found, true));
            self.report_mismatch(expr.at, &expected, &found);
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::Text(_) => Type::Text,
        Literal::Bytes(_) => Type::Bytes,
    }
}
