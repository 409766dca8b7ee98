//! `matchConditions`: expressions that decide whether a webhook is asked about a write at all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use api_meta::names;
use api_meta::status::Cause;
use cel::declared::{Field, ListIdentity, Object};
use cel::{Declared, DeclaredKind, Input, Program};
use serde_json::Value;

use crate::builtin::fields::{items, str_of};

/// Conditions of one webhook.
const CONDITIONS_MAX: usize = 64;
/// Cost units that all conditions of one webhook may use for one write.
const COST_MAX: u64 = 2_500_000;

/// Everything that is wrong with the conditions at `path`. Pure.
pub fn validate(conditions: &Value, path: &str) -> Vec<Cause> {
    let list = items(conditions);
    let mut causes = Vec::new();
    if list.len() > CONDITIONS_MAX {
        let text = format!("Too many: {}: must have at most {CONDITIONS_MAX} items", list.len());
        causes.push(Cause::new("FieldValueTooMany", path, text));
    }
    let mut seen = BTreeSet::new();
    for (index, condition) in list.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let expression = str_of(&condition["expression"]).trim();
        if expression.is_empty() {
            causes.push(Cause::required(format!("{path}.expression"), ""));
        } else if let Err(problem) = compile(expression) {
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

/// The conditions of one webhook, ready to be evaluated: each as it is written, and made ready.
pub struct MatchConditions(Vec<(String, Result<Program, String>)>);

impl MatchConditions {
    pub fn new(conditions: &Value) -> Self {
        let compiled = |condition: &Value| {
            let expression = str_of(&condition["expression"]).trim();
            (expression.to_owned(), compile(expression))
        };
        Self(items(conditions).iter().map(compiled).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all hold. One that does not decides, whatever the others do.
    ///
    /// # Errors
    /// Why it cannot be told; the webhook's failure policy says what becomes of the write.
    pub fn hold(&self, object: &Value, old: &Value, request: &Value) -> Result<bool, String> {
        let values = [Some(object), Some(old), Some(request)];
        let mut budget = COST_MAX;
        let mut problems = Vec::new();
        for (expression, program) in &self.0 {
            let program = match program {
                Ok(program) => program,
                Err(problem) => {
                    problems.push(problem.clone());
                    continue;
                }
            };
            let (result, cost) = program.evaluate(&values, budget);
            budget = budget.saturating_sub(cost);
            match result {
                Ok(cel::Value::Bool(true)) => {}
                Ok(_) => return Ok(false),
                Err(problem) => {
                    problems
                        .push(format!("expression '{expression}' resulted in error: {problem}"));
                }
            }
        }
        match problems.as_slice() {
            [] => Ok(true),
            [one] => Err(one.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }
}

fn compile(expression: &str) -> Result<Program, String> {
    let program = Program::compile(expression, &*INPUTS)
        .map_err(|error| format!("compilation failed: {error}"))?;
    match program.result_type() {
        cel::Type::Bool | cel::Type::Dyn => Ok(program),
        other => Err(format!("must evaluate to bool but got {other}")),
    }
}

/// What expressions see. The request has no `authorizer` here; a condition that uses it is refused.
static INPUTS: LazyLock<[Input; 3]> = LazyLock::new(|| {
    let input = |name, declared| Input { name, declared, optional: false };
    let anything = Arc::new(Declared { nullable: true, ..Declared::dynamic() });
    [input("object", anything.clone()), input("oldObject", anything), input("request", request())]
});

/// The request as AdmissionReview has it, without the objects.
fn request() -> Arc<Declared> {
    let text = || declared(DeclaredKind::Text);
    let kind = || object("kubernetes.GroupVersionKind", &["group", "version", "kind"]);
    let resource = || object("kubernetes.GroupVersionResource", &["group", "version", "resource"]);
    let texts = || declared(DeclaredKind::List(text(), ListIdentity::Place));
    let user = [
        ("username", text()),
        ("uid", text()),
        ("groups", texts()),
        ("extra", declared(DeclaredKind::Map(texts()))),
    ];
    let fields = [
        ("kind", kind()),
        ("resource", resource()),
        ("subResource", text()),
        ("requestKind", kind()),
        ("requestResource", resource()),
        ("requestSubResource", text()),
        ("name", text()),
        ("namespace", text()),
        ("operation", text()),
        ("userInfo", structure("kubernetes.UserInfo", user)),
        ("dryRun", declared(DeclaredKind::Bool)),
        ("options", Arc::new(Declared::dynamic())),
    ];
    structure("kubernetes.AdmissionRequest", fields)
}

fn declared(kind: DeclaredKind) -> Arc<Declared> {
    Arc::new(Declared::new(kind, u64::MAX, 1))
}

fn object(name: &str, fields: &[&'static str]) -> Arc<Declared> {
    structure(name, fields.iter().map(|field| (*field, declared(DeclaredKind::Text))))
}

fn structure(
    name: &str,
    fields: impl IntoIterator<Item = (&'static str, Arc<Declared>)>,
) -> Arc<Declared> {
    let fields = fields.into_iter().filter_map(|(name, declared)| {
        let escaped = cel::escape(name)?;
        Some((escaped.into(), Field { name: name.into(), declared }))
    });
    let fields: BTreeMap<Box<str>, Field> = fields.collect();
    declared(DeclaredKind::Object(Arc::new(Object { name: name.to_owned(), fields })))
}
