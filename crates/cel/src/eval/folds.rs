//! Folds, the expansion of macros over lists and maps, and their accumulators.

use std::rc::Rc;

use super::Evaluator;
use crate::ast::{ACCUMULATOR, Expr, ExprKind, Fold, operator};
use crate::library;
use crate::limits::ELEMENTS_MAX;
use crate::message;
use crate::value::{EvalFailure, EvalResult, List, Map, Value, fail, no_such_overload};

impl<'a> Evaluator<'a> {
    /// `accumulator + [x]`, without a copy of the accumulator.
    pub(super) fn append(&mut self, expr: &'a Expr, args: &'a [Expr]) -> EvalResult<'a> {
        self.charge(1)?;
        let addition = self.expr(&args[1]);
        let (so_far, addition) = match self.accumulate_with(addition)? {
            (Value::List(List::Made(so_far)), Value::List(addition)) => (so_far, addition),
            (so_far, addition) => {
                return self.invoke(expr.id, operator::ADD, vec![so_far, addition]);
            }
        };
        self.charge(1)?;
        let mut items = so_far;
        if items.len() + addition.len() > ELEMENTS_MAX {
            return Err(EvalFailure::Cost);
        }
        let all = Rc::make_mut(&mut items);
        for item in addition.iter() {
            all.push(item?);
        }
        Ok(Value::List(List::Made(items)))
    }

    /// The accumulator and the next value. When one of them is an error, the step is charged
    /// nevertheless.
    fn accumulate_with<T>(
        &mut self,
        more: Result<T, EvalFailure>,
    ) -> Result<(Value<'a>, T), EvalFailure> {
        let so_far = self.take_accumulator();
        match (so_far, more) {
            (Ok(so_far), Ok(more)) => Ok((so_far, more)),
            (Ok(_) | Err(_), Err(failure)) if failure.is_final() => Err(failure),
            (Err(failure), _) | (Ok(_), Err(failure)) => {
                self.charge(1)?;
                Err(failure)
            }
        }
    }

    /// Moves the accumulator out of its scope; the step puts it back.
    fn take_accumulator(&mut self) -> EvalResult<'a> {
        match self.scopes.iter_mut().rev().find(|(name, _)| *name == ACCUMULATOR) {
            Some((_, value)) => std::mem::replace(value, Ok(Value::Null)),
            None => no_such_overload(),
        }
    }

    pub(super) fn insert(&mut self, args: &'a [Expr]) -> EvalResult<'a> {
        self.charge(1)?;
        let additions = args[1..].iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>, _>>();
        let (Value::Map(Map::Made(mut made)), additions) = self.accumulate_with(additions)? else {
            return no_such_overload();
        };
        self.charge(1)?;
        let pairs = match additions.as_slice() {
            [key, value] => vec![(key.clone(), value.clone())],
            [Value::Map(map)] => {
                let mut pairs = Vec::new();
                for key in map.keys() {
                    if let Some(value) = map.get(&key) {
                        pairs.push((key, value?));
                    }
                }
                pairs
            }
            _ => return no_such_overload(),
        };
        let all = Rc::make_mut(&mut made);
        for (key, value) in pairs {
            if all.entries().len() >= ELEMENTS_MAX {
                return Err(EvalFailure::Cost);
            }
            let name = library::text::display(&key);
            if !all.insert(key, value) {
                return fail(format!("insert failed: key {name} already exists"));
            }
        }
        Ok(Value::Map(Map::Made(made)))
    }

    pub(super) fn fold(&mut self, fold: &'a Fold) -> EvalResult<'a> {
        let range = self.expr(&fold.range)?;
        let init = self.expr(&fold.init);
        if let Err(failure) = &init
            && failure.is_final()
        {
            return init;
        }
        let base = self.scopes.len();
        self.scopes.push((&fold.accumulator, init));
        let looped = match &range {
            Value::List(list) => self.fold_list(fold, list, base),
            Value::Map(map) => self.fold_map(fold, map, base),
            other => fail(format!("got '{}', expected iterable type", implementation(other))),
        };
        self.scopes.truncate(base + 1);
        let result = looped.and_then(|()| self.expr(&fold.result));
        self.scopes.truncate(base);
        result
    }

    fn fold_list(
        &mut self,
        fold: &'a Fold,
        list: &List<'a>,
        base: usize,
    ) -> Result<(), EvalFailure> {
        for index in 0..list.len() {
            let Some(item) = list.get(index) else {
                break;
            };
            match &fold.second {
                Some(second) => {
                    self.scopes.push((&fold.variable, Ok(Value::Int(index as i64))));
                    self.scopes.push((second, item));
                }
                None => self.scopes.push((&fold.variable, item)),
            }
            if !self.step(fold, base)? {
                break;
            }
        }
        Ok(())
    }

    fn fold_map(&mut self, fold: &'a Fold, map: &Map<'a>, base: usize) -> Result<(), EvalFailure> {
        for key in map.keys() {
            let value = fold.second.as_ref().map(|second| (second, map.get(&key)));
            self.scopes.push((&fold.variable, Ok(key)));
            if let Some((second, value)) = value {
                self.scopes.push((second, value.unwrap_or(Ok(Value::Null))));
            }
            if !self.step(fold, base)? {
                break;
            }
        }
        Ok(())
    }

    /// Runs one step. False ends the fold.
    fn step(&mut self, fold: &'a Fold, base: usize) -> Result<bool, EvalFailure> {
        let goes_on = match self.expr(&fold.condition) {
            Err(failure) if failure.is_final() => return Err(failure),
            Ok(Value::Bool(value)) => value,
            _ => true,
        };
        if goes_on {
            let next = self.expr(&fold.step);
            if let Err(failure) = &next
                && failure.is_final()
            {
                return Err(failure.clone());
            }
            self.scopes[base].1 = next;
        }
        self.scopes.truncate(base + 1);
        Ok(goes_on)
    }
}

pub(super) fn is_accumulator(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Ident(name) if &**name == ACCUMULATOR)
}

/// The name of the type in upstream's implementation.
fn implementation(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::Text(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Duration(_) => "types.Duration",
        Value::Type(_) => "*types.Type",
        Value::Optional(_) => "*types.Optional",
        Value::Quantity(_) => "cel.Quantity",
        Value::Url(_) => "cel.URL",
        Value::Ip(_) => "cel.IP",
        Value::Cidr(..) => "cel.CIDR",
        Value::Format(_) => "*cel.Format",
        Value::Semver(_) => "cel.Semver",
        Value::Authorization(_) => "library.receiverOnlyObjectVal",
        Value::Message(message) if message.name() == message::JSON_PATCH => {
            "*mutation.JSONPatchVal"
        }
        Value::Message(_) => "*dynamic.ObjectVal",
        // These types are iterable.
        Value::List(_) | Value::Map(_) | Value::Opaque(_) => "ref.Val",
    }
}
