//! Variables that expressions share, and queries to an authority.

use std::cell::RefCell;
use std::sync::Arc;

use serde_json::json;

use crate::authorization::{AccessDecision, AccessQuery, AccessSubject, Authority, ResourceCheck};
use crate::compose::{Composed, VARIABLES, Variable};
use crate::types::Library;
use crate::{Declared, DeclaredKind, Given, Input, Program, Type, Value};

/// Allows everything on pods, and records its queries.
#[derive(Default)]
struct Doorman(RefCell<Vec<(AccessSubject, AccessQuery)>>);

impl Authority for Doorman {
    fn decide(&self, subject: &AccessSubject, query: &AccessQuery) -> AccessDecision {
        self.0.borrow_mut().push((subject.clone(), query.clone()));
        match query {
            AccessQuery::Resource { resource, .. } if resource.resource == "broken" => {
                AccessDecision {
                    error: Some("no decision".to_owned()),
                    ..AccessDecision::default()
                }
            }
            AccessQuery::Resource { resource, .. } => AccessDecision {
                allowed: resource.resource == "pods",
                reason: format!("about {}", resource.resource),
                error: None,
            },
            AccessQuery::Path { .. } => AccessDecision::default(),
        }
    }
}

fn inputs() -> Vec<Input> {
    let typed = |kind| Arc::new(Declared::new(DeclaredKind::Typed(kind), u64::MAX, 1));
    let input = |name, declared| Input { name, declared, optional: false };
    vec![
        input("object", Arc::new(Declared::dynamic())),
        input(VARIABLES, Arc::new(Declared::dynamic())),
        input("authorizer", typed(Type::Library(Library::Authorizer))),
        input("authorizer.requestResource", typed(Type::Library(Library::ResourceCheck))),
    ]
}

/// The results of expressions, one after the other, with the cost of each.
fn run(doorman: &Doorman, variables: &[(&str, &str)], sources: &[&str]) -> Vec<(String, u64)> {
    let compile = |source: &str| Program::compile(source, &inputs());
    let variables: Vec<Variable> = variables
        .iter()
        .map(|(name, source)| Variable {
            name: (*name).to_owned(),
            program: compile(source).map_err(|error| error.to_string()),
        })
        .collect();
    let programs: Vec<Program> =
        sources.iter().map(|source| compile(source).unwrap_or_else(|e| panic!("{e}"))).collect();
    let object = json!({"list": [1, 2, 3], "name": "x"});
    let composed = Composed::new(&variables, |name| {
        Some(match name {
            "object" => Given::Value(Value::dynamic(&object)),
            "authorizer" => Given::Value(Value::authorizer(doorman)),
            "authorizer.requestResource" => {
                let resource = "pods".to_owned();
                let check = ResourceCheck { resource, ..ResourceCheck::default() };
                Given::Value(Value::request_resource(doorman, check))
            }
            _ => return None,
        })
    });
    let results = programs.iter().map(|program| {
        let (result, cost) = composed.evaluate(program);
        let text = match result {
            Ok(Value::Bool(value)) => value.to_string(),
            Ok(Value::Text(text)) => text.to_string(),
            Ok(other) => format!("{other:?}"),
            Err(error) => error.to_string(),
        };
        (text, cost)
    });
    results.collect()
}

#[test]
fn a_variable_is_evaluated_once_at_its_first_use() {
    let variables = [("sum", "object.list.map(x, x * 2).size()"), ("more", "variables.sum + 1")];
    let sources = ["object.name == 'y' && variables.more == 4", "variables.more == 4"];
    let found = run(&Doorman::default(), &variables, &[sources[0], sources[1], sources[1]]);
    assert_eq!(
        found.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>(),
        ["false", "true", "true"]
    );
    assert!(found[1].1 > found[2].1, "the first to ask pays: {found:?}");
}

#[test]
fn the_error_of_a_variable_shows_where_it_is_used() {
    let variables = [
        ("absent", "object.nothing"),
        ("broken", "1 +"),
        ("self", "variables.self == 1"),
        ("one", "variables.two"),
        ("two", "variables.one"),
    ];
    let sources = [
        "variables.absent == 1 || true",
        "variables.absent == 1",
        "variables.broken == 1",
        "variables.self",
        "variables.one == 1",
        "variables.unknown == 1",
    ];
    let found = run(&Doorman::default(), &variables, &sources);
    assert_eq!(found[0].0, "true");
    let expected = "composited variable \"absent\" fails to evaluate: no such key: nothing";
    assert_eq!(found[1].0, expected);
    assert!(found[2].0.starts_with("composited variable \"broken\" fails to compile: "));
    assert!(found[3].0.contains("variable \"self\" refers to itself"), "{}", found[3].0);
    assert!(found[4].0.contains("variable \"one\" refers to itself"), "{}", found[4].0);
    assert_eq!(found[5].0, "no such key: unknown");
}

#[test]
fn queries_are_built_step_by_step() {
    let doorman = Doorman::default();
    let sources = [
        "authorizer.group('').resource('pods').subresource('log').namespace('n').name('p')\
         .fieldSelector('a=b').labelSelector('c=d').check('get').allowed()",
        "authorizer.serviceAccount('ns', 'sa').path('/x').check('get').allowed()",
        "authorizer.requestResource.check('list').reason()",
        "authorizer.group('').resource('broken').check('list').errored()",
        "authorizer.group('').resource('broken').check('list').error()",
    ];
    let found = run(&doorman, &[], &sources);
    let texts: Vec<&str> = found.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(texts, ["true", "false", "about pods", "true", "no decision"]);
    let queries = doorman.0.borrow();
    let resource = ResourceCheck {
        group: String::new(),
        resource: "pods".to_owned(),
        subresource: "log".to_owned(),
        namespace: "n".to_owned(),
        name: "p".to_owned(),
        field_selector: "a=b".to_owned(),
        label_selector: "c=d".to_owned(),
    };
    let query = AccessQuery::Resource { resource, verb: "get".to_owned() };
    assert_eq!(queries[0], (AccessSubject::Requester, query));
    let account =
        AccessSubject::ServiceAccount { namespace: "ns".to_owned(), name: "sa".to_owned() };
    let query = AccessQuery::Path { path: "/x".to_owned(), verb: "get".to_owned() };
    assert_eq!(queries[1], (account, query));
    assert!(found[0].1 > 350_000, "a check is dear: {}", found[0].1);
}

#[test]
fn invalid_queries_fail() {
    let sources = [
        "authorizer.path(' ').check('get').allowed()",
        "authorizer.group('').resource('').check('get').allowed()",
        "authorizer.serviceAccount('ns', 'No').path('/').check('get').allowed()",
        "authorizer.serviceAccount('n.s', 'sa').path('/').check('get').allowed()",
    ];
    let doorman = Doorman::default();
    let found = run(&doorman, &[], &sources);
    let texts: Vec<&str> = found.iter().map(|(text, _)| text.as_str()).collect();
    let expected = [
        "path must not be empty",
        "resource must not be empty",
        "Invalid service account name",
        "Invalid service account namespace",
    ];
    assert_eq!(texts, expected);
    assert!(doorman.0.borrow().is_empty());
}
