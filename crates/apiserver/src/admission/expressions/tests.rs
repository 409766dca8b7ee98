//! Expressions about a write of a ConfigMap: verdicts, faults and what they may ask.

use serde_json::{Value, json};

use super::*;
use crate::kind::Kind;
use crate::registry::WriteOptions;
use crate::registry::admission::Operation;

/// What an expression about a write of a ConfigMap says, without an authorizer.
fn judged(source: &str) -> Outcome<'static> {
    let resource = Kind::new("", "configmaps", "configmap", "ConfigMap").into_resource();
    let options = WriteOptions::system();
    let request = Request {
        resource: &resource,
        subresource: "",
        operation: Operation::Create,
        namespace: "n",
        name: "a",
        options: &options,
        delete: None,
    };
    let (object, attributes) = (json!({}), request.attributes(&resource));
    let authority = RequestAuthority::new(None, &request);
    let facts = Facts {
        object: &object,
        old_object: &Value::Null,
        request: &attributes,
        namespace: &Value::Null,
        params: &Value::Null,
        authority: &authority,
    };
    let scope = Composition::default();
    let expression = scope.expression(source, &[Type::Bool], true);
    let composed = scope.over(facts);
    let (outcomes, _) = evaluate_all(&composed, [Some(&expression)], u64::MAX).unwrap();
    match outcomes.into_iter().next().flatten().unwrap() {
        Ok(cel::Value::Bool(value)) => Ok(cel::Value::Bool(value)),
        Ok(other) => panic!("{other:?}"),
        Err(problem) => Err(problem),
    }
}

#[test]
fn without_an_authorizer_nobody_may_anything() {
    let is_true = |source: &str| matches!(judged(source), Ok(cel::Value::Bool(true)));
    let check = "authorizer.group('').resource('pods').check('get')";
    assert!(is_true(&format!("!{check}.allowed() && {check}.errored()")));
    assert!(is_true("!authorizer.requestResource.check('create').allowed()"));
}

#[test]
fn variables_do_not_stand_on_each_other_without_end() {
    let mut scope = Composition::default();
    scope.add_variable("v0", "1").unwrap();
    let mut refused = None;
    for index in 1..400 {
        let source = format!("variables.v{} + 1", index - 1);
        if let Err(problem) = scope.add_variable(&format!("v{index}"), &source) {
            refused = Some((index, problem));
            break;
        }
    }
    let (index, problem) = refused.unwrap();
    assert!((20..150).contains(&index), "{index}");
    assert!(problem.starts_with("expression recursion limit exceeded"), "{problem}");
    assert!(scope.compile("variables.v3 == 4", &[Type::Bool], true).is_ok());
}
