//! Named expressions that others use as `variables.name`. Each is evaluated once, at its first use.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use crate::limits::CALL_COST_MAX;
use crate::program::{EvalError, Given, Program};
use crate::value::{EvalResult, Fields, Map, Value, fail};

/// The name under which expressions use the variables.
pub const VARIABLES: &str = "variables";

/// A named expression, or the error of its compilation.
#[derive(Debug)]
pub struct Variable {
    pub name: String,
    pub program: Result<Program, String>,
}

/// Returns the value of an input.
type GivenBy<'a> = dyn Fn(&str) -> Option<Given<'a>> + 'a;

/// Evaluates expressions over the same values, with shared variables.
pub struct Composed<'a> {
    me: Weak<Self>,
    variables: &'a [Variable],
    given: Box<GivenBy<'a>>,
    computed: RefCell<HashMap<&'a str, EvalResult<'a>>>,
    /// Cost units of variables since the last evaluation.
    cost: Cell<u64>,
}

impl<'a> Composed<'a> {
    /// Expressions over `variables`; `given` returns the value of every other input. Nothing is
    /// evaluated yet.
    pub fn new(
        variables: &'a [Variable],
        given: impl Fn(&str) -> Option<Given<'a>> + 'a,
    ) -> Rc<Self> {
        Rc::new_cyclic(|me| Self {
            me: me.clone(),
            variables,
            given: Box::new(given),
            computed: RefCell::default(),
            cost: Cell::new(0),
        })
    }

    /// The result of the program, and its cost units, including those of the variables that it used
    /// first. The program and each variable have the limit [`CALL_COST_MAX`] for themselves.
    ///
    /// # Errors
    /// The program or a variable of it failed, or cost more than its limit.
    pub fn evaluate(&self, program: &'a Program) -> (Result<Value<'a>, EvalError>, u64) {
        let (result, cost) = self.run(program);
        (result, cost.saturating_add(self.cost.take()))
    }

    fn run(&self, program: &'a Program) -> (Result<Value<'a>, EvalError>, u64) {
        let given = |name: &str| match name {
            VARIABLES => {
                let fields: Rc<dyn Fields<'a> + 'a> = self.me.upgrade()?;
                Some(Given::Value(Value::Map(Map::Computed(fields))))
            }
            name => (self.given)(name),
        };
        program.evaluate_given(&given, CALL_COST_MAX)
    }

    fn compute(&self, variable: &'a Variable) -> EvalResult<'a> {
        let name = &variable.name;
        let program = match &variable.program {
            Ok(program) => program,
            Err(error) => {
                return fail(format!("composited variable {name:?} fails to compile: {error}"));
            }
        };
        let (result, cost) = self.run(program);
        self.cost.set(self.cost.get().saturating_add(cost));
        result.or_else(|error| {
            fail(format!("composited variable {name:?} fails to evaluate: {error}"))
        })
    }
}

impl<'a> Fields<'a> for Composed<'a> {
    fn names(&self) -> Vec<&'a str> {
        self.variables.iter().map(|variable| variable.name.as_str()).collect()
    }

    fn field(&self, name: &str) -> Option<EvalResult<'a>> {
        // Of several variables of one name, the last one counts.
        let variable = self.variables.iter().rev().find(|variable| variable.name == name)?;
        let known = self.computed.borrow().get(name).cloned();
        if known.is_some() {
            return known;
        }
        // The value of a variable that uses itself, by way of `dyn(variables)`.
        let cycle = fail(format!("variable {name:?} refers to itself"));
        self.computed.borrow_mut().insert(&variable.name, cycle);
        let value = self.compute(variable);
        self.computed.borrow_mut().insert(&variable.name, value.clone());
        Some(value)
    }
}
