//! Results, costs and errors of expressions. Costs and texts are those of the libraries of
//! Kubernetes 1.36.3.

mod compile;
mod compose;
mod cost;
mod evaluate;
mod format;
mod limits;
mod lists;
mod messages;
mod overloads;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::declared::{DeclaredField, ListIdentity, Object};
use crate::{Declared, DeclaredKind, Input, Program, Value};

const TEXT_MAX: u64 = crate::limits::REQUEST_BYTES - 2;

fn scalar(kind: DeclaredKind) -> Arc<Declared> {
    Arc::new(Declared::new(kind, 0, 1))
}

fn text(size_max: u64) -> Arc<Declared> {
    Arc::new(Declared::new(DeclaredKind::Text, size_max, 2))
}

fn list(item: Arc<Declared>, size_max: u64, identity: ListIdentity) -> Arc<Declared> {
    Arc::new(Declared::new(DeclaredKind::List(item, identity), size_max, 2))
}

fn object(name: &str, fields: Vec<(&str, Arc<Declared>)>) -> Arc<Declared> {
    let fields: BTreeMap<Box<str>, DeclaredField> = fields
        .into_iter()
        .map(|(name, declared)| {
            let escaped = crate::escape(name).unwrap();
            (escaped.into(), DeclaredField { name: name.into(), declared })
        })
        .collect();
    let object = Object { name: name.to_owned(), fields };
    Arc::new(Declared::new(DeclaredKind::Object(Arc::new(object)), 0, 2))
}

/// The type of `self` in these tests.
fn declared() -> Arc<Declared> {
    let entry =
        object("selfType.ml.@idx", vec![("k", text(TEXT_MAX)), ("v", scalar(DeclaredKind::Int))]);
    let inner = object(
        "selfType.o",
        vec![
            ("x", scalar(DeclaredKind::Int)),
            ("namespace", text(TEXT_MAX)),
            ("a-b", text(TEXT_MAX)),
            ("opt", text(TEXT_MAX)),
        ],
    );
    let named = |kind, size| Arc::new(Declared::new(kind, size, 3));
    object(
        "selfType",
        vec![
            ("i", scalar(DeclaredKind::Int)),
            ("j", scalar(DeclaredKind::Int)),
            ("d", scalar(DeclaredKind::Double)),
            ("b", scalar(DeclaredKind::Bool)),
            ("s", text(80)),
            ("t", text(TEXT_MAX)),
            ("l", list(text(40), 10, ListIdentity::Position)),
            ("n", list(scalar(DeclaredKind::Int), 1_572_863, ListIdentity::Position)),
            ("st", list(text(TEXT_MAX), 1_048_575, ListIdentity::Value)),
            ("ml", list(entry, 314_572, ListIdentity::Keys(Arc::new([Box::from("k")])))),
            ("m", named(DeclaredKind::Map(text(TEXT_MAX)), 393_215)),
            ("ios", named(DeclaredKind::IntOrText, TEXT_MAX)),
            ("dt", named(DeclaredKind::DateTime, 32)),
            ("day", named(DeclaredKind::Date, 12)),
            ("du", named(DeclaredKind::Duration, 32)),
            ("by", named(DeclaredKind::Bytes, TEXT_MAX)),
            ("o", inner),
        ],
    )
}

fn value() -> Json {
    json!({
        "i": 3, "j": 7, "d": 2.5, "b": true, "s": "hello wörld", "t": "Some-Text.v1",
        "l": ["a", "bb", "ccc"], "n": [1, 2, 3, 4], "st": ["p", "q"],
        "ml": [{"k": "one", "v": 1}, {"k": "two", "v": 2}], "m": {"a": "x", "b": "y"},
        "ios": "80%", "dt": "2020-01-02T03:04:05.678Z", "day": "2021-05-06", "du": "1h30m",
        "by": "aGVsbG8=", "o": {"x": 5, "namespace": "ns", "a-b": "q"},
    })
}

fn program(source: &str) -> Result<Program, String> {
    let inputs = [Input { name: "self", declared: declared(), optional: false }];
    Program::compile(source, &inputs).map_err(|error| error.to_string())
}

/// The result as text, or the error, and the cost.
fn run(source: &str) -> (String, u64) {
    let program = program(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let value = value();
    let (result, cost) = program.evaluate(&[Some(&value)], crate::limits::CALL_COST_MAX);
    let text = match result {
        Ok(Value::Bool(value)) => value.to_string(),
        Ok(other) => format!("{other:?}"),
        Err(error) => error.to_string(),
    };
    (text, cost)
}
