//! Expressions about a write of a ConfigMap: results, errors and authorization checks.

use serde_json::{Value, json};

use super::*;
use crate::kind::Kind;
use crate::registry::WriteOptions;
use crate::registry::admission::AdmissionOperation;

/// Evaluates an expression about a write of a ConfigMap, without an authorizer.
fn evaluate(source: &str) -> EvaluationResult<'static> {
    let resource = Kind::new("", "configmaps", "configmap", "ConfigMap").into_resource();
    let options = WriteOptions::system();
    let request = AdmissionRequest {
        resource: &resource,
        subresource: "",
        operation: AdmissionOperation::Create,
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
    let (results, _) = evaluate_all(&composed, [Some(&expression)], u64::MAX).unwrap();
    match results.into_iter().next().flatten().unwrap() {
        Ok(cel::Value::Bool(value)) => Ok(cel::Value::Bool(value)),
        Ok(other) => panic!("{other:?}"),
        Err(problem) => Err(problem),
    }
}

#[test]
fn authorization_checks_fail_without_an_authorizer() {
    let is_true = |source: &str| matches!(evaluate(source), Ok(cel::Value::Bool(true)));
    let check = "authorizer.group('').resource('pods').check('get')";
    assert!(is_true(&format!("!{check}.allowed() && {check}.errored()")));
    assert!(is_true("!authorizer.requestResource.check('create').allowed()"));
}

#[test]
fn chained_variables_have_a_depth_limit() {
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
