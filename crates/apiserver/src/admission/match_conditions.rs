//! `matchConditions`: expressions that decide whether a webhook or policy is asked about a write at
//! all.

use std::collections::BTreeSet;

use api_meta::names;
use api_meta::status::Cause;
use cel::Type;
use cel::compose::Composed;
use serde_json::Value;

use super::expressions::{Composition, Expression, evaluate_all};
use crate::fields::{items, str_of};

/// Conditions of one webhook or policy.
const CONDITIONS_MAX: usize = 64;
/// Cost units that all conditions of one webhook or policy may use for one write.
const COST_MAX: u64 = 2_500_000;

/// Everything that is wrong with the conditions at `path`. Pure.
pub fn validate(conditions: &Value, path: &str, params: bool) -> Vec<Cause> {
    let list = items(conditions);
    let mut causes: Vec<Cause> =
        Cause::too_many(path, list.len(), CONDITIONS_MAX).into_iter().collect();
    let scope = Composition::new(params);
    let mut seen = BTreeSet::new();
    for (index, condition) in list.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let expression = str_of(&condition["expression"]).trim();
        if expression.is_empty() {
            causes.push(Cause::required(format!("{path}.expression"), ""));
        } else if let Err(problem) = scope.compile(expression, &[Type::Bool], true) {
            let field = format!("{path}.expression");
            causes.push(Cause::invalid(field, &expression.into(), &problem));
        }
        let (name, field) = (str_of(&condition["name"]), format!("{path}.name"));
        if name.is_empty() {
            causes.push(Cause::required(field.clone(), ""));
        }
        for problem in names::qualified_name(name).iter().filter(|_| !name.is_empty()) {
            causes.push(Cause::invalid(field.clone(), &name.into(), problem));
        }
        if !name.is_empty() && !seen.insert(name) {
            causes.push(Cause::duplicate(field, &name.into()));
        }
    }
    causes
}

/// The conditions of one webhook or policy, ready to be evaluated.
pub struct MatchConditions(Vec<Expression>);

impl MatchConditions {
    /// With the names that `scope` knows.
    pub fn new(conditions: &Value, scope: &Composition) -> Self {
        let compiled = |condition: &Value| {
            scope.expression(str_of(&condition["expression"]), &[Type::Bool], true)
        };
        Self(items(conditions).iter().map(compiled).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all hold. One that does not decides, whatever the others do.
    ///
    /// # Errors
    /// Why it cannot be told; the failure policy says what becomes of the write.
    pub fn hold<'a>(&'a self, composed: &Composed<'a>) -> Result<bool, String> {
        let (outcomes, _) = evaluate_all(composed, self.0.iter().map(Some), COST_MAX)?;
        let mut problems: Vec<String> = Vec::new();
        for outcome in outcomes.into_iter().flatten() {
            match outcome {
                Ok(cel::Value::Bool(true)) => {}
                Ok(_) => return Ok(false),
                Err(problem) if problems.contains(&problem) => {}
                Err(problem) => problems.push(problem),
            }
        }
        match problems.as_slice() {
            [] => Ok(true),
            [one] => Err(one.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }
}
