//! Rules in the Common Expression Language.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use cel::declared::{DeclaredField, ListIdentity, Object};
use cel::{Declared, DeclaredKind, Input, Program};
use serde_json::Value;

use super::parts;

/// Cost limit of one evaluation, in cost units; low, so that runaways are detected soon.
const COST_MAX: u64 = 100_000;
/// Upper bound of the time of an evaluation with that limit, on any machine and in any build.
const TIME_MAX: Duration = Duration::from_secs(10);

/// The type of `self`: one field of each type.
static INPUTS: LazyLock<[Input; 2]> = LazyLock::new(|| {
    let declared = |kind| Arc::new(Declared::new(kind, 100, 1));
    let text = declared(DeclaredKind::Text);
    let list = DeclaredKind::List(text.clone(), ListIdentity::Position);
    let kinds = [
        ("any", DeclaredKind::Dyn),
        ("both", DeclaredKind::IntOrText),
        ("flag", DeclaredKind::Bool),
        ("int", DeclaredKind::Int),
        ("double", DeclaredKind::Double),
        ("text", DeclaredKind::Text),
        ("bytes", DeclaredKind::Bytes),
        ("time", DeclaredKind::DateTime),
        ("duration", DeclaredKind::Duration),
        ("list", list),
        ("map", DeclaredKind::Map(text)),
    ];
    let fields: BTreeMap<Box<str>, DeclaredField> = kinds
        .into_iter()
        .map(|(name, kind)| {
            (name.into(), DeclaredField { name: name.into(), declared: declared(kind) })
        })
        .collect();
    let object = Object { name: "object".to_owned(), fields };
    let object = declared(DeclaredKind::Object(Arc::new(object)));
    let input = |name, optional| Input { name, declared: object.clone(), optional };
    [input("self", false), input("oldSelf", true)]
});

/// An expression on the first line, `self` in JSON after it, or nothing. Evaluating twice has the
/// same result and cost, ends in time, and costs no more than estimated or allowed.
pub fn cel(input: &[u8]) {
    let [source, object] = parts::<2>(input).unwrap_or([input, b"{}"]);
    let Ok(source) = std::str::from_utf8(source) else { return };
    let Ok(program) = Program::compile(source, INPUTS.as_slice()) else { return };
    let estimate = program.estimate();
    assert!(estimate.min <= estimate.max, "{source}: {estimate:?}");
    let Ok(object) = serde_json::from_slice::<Value>(object) else { return };
    for old in [None, Some(&object)] {
        let values = [Some(&object), old];
        let since = Instant::now();
        let (result, cost) = program.evaluate(&values, COST_MAX);
        let time = since.elapsed();
        assert!(time < TIME_MAX, "{source}: {time:?}");
        let (again, cost_again) = program.evaluate(&values, COST_MAX);
        assert_eq!(cost, cost_again, "{source}");
        assert_eq!(format!("{result:?}"), format!("{again:?}"), "{source}");
    }
}
