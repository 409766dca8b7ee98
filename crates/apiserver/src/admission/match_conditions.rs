//! `matchConditions`: expressions that decide whether a webhook is called, or a policy evaluated,
//! for a write at all.

use std::collections::BTreeSet;

use api_meta::names;
use api_meta::status::Cause;
use cel::Type;
use cel::compose::Composed;
use serde_json::Value;

use super::expressions::{Composition, Expression, evaluate_all};
use crate::fields::{items, str_of};

/// The number of conditions of one webhook or policy.
const CONDITIONS_MAX: usize = 64;
/// Cost units that all conditions of one webhook or policy may use for one write.
const COST_MAX: u64 = 2_500_000;

/// Validates the conditions at `path` and returns every problem. `params` says whether they may use
/// `params`. Pure.
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
    /// Compiles conditions in the environment `scope`. A condition that does not compile fails when
    /// it is evaluated.
    pub fn new(conditions: &Value, scope: &Composition) -> Self {
        let compiled = |condition: &Value| {
            scope.expression(str_of(&condition["expression"]), &[Type::Bool], true)
        };
        Self(items(conditions).iter().map(compiled).collect())
    }

    /// Whether there are no conditions, so that every write matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all conditions are true. A false one decides, even if others fail.
    ///
    /// # Errors
    /// The errors of the failed conditions, when no other is false. The caller applies the failure
    /// policy.
    pub fn all_match<'a>(&'a self, composed: &Composed<'a>) -> Result<bool, String> {
        let (results, _) = evaluate_all(composed, self.0.iter().map(Some), COST_MAX)?;
        let mut problems: Vec<String> = Vec::new();
        for result in results.into_iter().flatten() {
            match result {
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
