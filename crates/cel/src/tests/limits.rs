//! No expression overflows the stack, runs without an end, or panics.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{declared, program, run, value};
use crate::{EvalError, Input, Program};

/// Longer than any limited evaluation takes, even on a busy machine without optimisation.
const SOON: Duration = Duration::from_secs(60);
const COST: u64 = 20_000;

/// Runs on a stack as large as that of a worker thread.
fn on_a_worker(test: impl FnOnce() + Send + 'static) {
    const STACK_BYTES: usize = 2 << 20;
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(test).unwrap().join().unwrap();
}

#[test]
fn deep_nesting_is_refused_without_overflow() {
    on_a_worker(|| {
        for source in [
            "(".repeat(50_000),
            "[".repeat(50_000),
            "{1:".repeat(20_000),
            "-".repeat(50_001) + "self.i",
            "!".repeat(50_000) + "self.b == true",
            format!("self.i{}", " + 1".repeat(20_000)),
            format!("self{}", ".a".repeat(40_000)),
            format!("self{}", "[0]".repeat(30_000)),
            "true ? ".repeat(10_000),
            "self.l.all(x, ".repeat(5_000),
            "optional.of(1)".to_owned() + &".optMap(v, v)".repeat(3_000),
            "x".repeat(200_000),
        ] {
            // Signs cancel each other out, so some of these are valid expressions.
            let _ = program(&source);
        }
    });
}

#[test]
fn the_deepest_expressions_are_evaluated_without_overflow() {
    on_a_worker(|| {
        let mut depth = 1;
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        while program(&format!("{} == [[1]]", nested(depth))).is_ok() || depth < 5 {
            depth += 1;
            if depth > 300 {
                break;
            }
        }
        let chain = |count: usize| format!("self.i{} > 0", " + self.i".repeat(count));
        let longest = (1..300).rev().find(|count| program(&chain(*count)).is_ok()).unwrap();
        assert_eq!(run(&chain(longest)).0, "true");
        let folds =
            |count: usize| format!("{}true{}", "[self.i].all(x, ".repeat(count), ")".repeat(count));
        let deepest = (1..300).rev().find(|count| program(&folds(*count)).is_ok()).unwrap();
        assert_eq!(run(&folds(deepest)).0, "true");
    });
}

#[test]
fn a_thousand_terms_do_not_count_as_depth() {
    let source = vec!["self.i > 0"; 1_000].join(" && ");
    assert_eq!(run(&source).0, "true");
}

#[test]
fn the_cost_limit_stops_endless_expressions() {
    let started = Instant::now();
    for source in [
        "self.n.all(a, self.n.all(b, self.n.all(c, self.n.all(d, self.n.all(e, self.n.all(f, \
         self.n.all(g, self.n.all(h, self.n.all(i, a + b > 0)))))))))",
        "self.n.map(a, self.n.map(b, self.n.map(c, self.n.map(d, self.n.map(e, self.n.map(f, \
         self.n.map(g, self.n.map(h, self.n.map(i, [a, b])))))))))  == []",
    ] {
        let program = program(source).unwrap();
        let value = value();
        let (result, cost) = program.evaluate(&[Some(&value)], COST);
        assert_eq!(result.unwrap_err(), EvalError::TooCostly);
        // The step that exceeded the limit is the last one.
        assert!(cost < COST + 100, "{cost}");
    }
    assert!(started.elapsed() < SOON);
}

#[test]
fn an_exceeded_limit_is_not_absorbed() {
    let program = program("self.n.all(a, self.n.all(b, a + b > 0)) || true").unwrap();
    let value = value();
    let (result, _) = program.evaluate(&[Some(&value)], 10);
    assert_eq!(result.unwrap_err().to_string(), "operation cancelled: actual cost limit exceeded");
}

/// Sources that are often nearly valid.
fn source() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "self",
        "self.i",
        "self.s",
        "self.l",
        "self.m",
        "self.n",
        "self.dt",
        "self.ios",
        "1",
        "0",
        "-9223372036854775808",
        "2.5",
        "3u",
        "'a'",
        "b'a'",
        "null",
        "true",
        "[]",
        "{}",
        "x",
        "int",
        "self.o.opt",
        "optional.none()",
        "duration('1h')",
        "quantity('1Gi')",
        "'%s %d'",
    ]);
    let leaf = leaf.prop_map(str::to_owned);
    leaf.prop_recursive(5, 40, 3, |inner| {
        let operator = prop::sample::select(vec![
            "+", "-", "*", "/", "%", "==", "!=", "<", ">=", "&&", "||", "in",
        ]);
        let function = prop::sample::select(vec![
            "size",
            "sum",
            "split",
            "join",
            "format",
            "matches",
            "substring",
            "indexOf",
            "orValue",
            "value",
            "replace",
            "charAt",
            "findAll",
            "getHours",
            "lowerAscii",
            "isSorted",
            "max",
        ]);
        let fold = prop::sample::select(vec!["all", "exists", "exists_one", "map", "filter"]);
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            (inner.clone(), function.clone(), inner.clone())
                .prop_map(|(a, function, b)| format!("{a}.{function}({b})")),
            (inner.clone(), function).prop_map(|(a, function)| format!("{a}.{function}()")),
            (inner.clone(), fold, inner.clone())
                .prop_map(|(a, fold, b)| format!("{a}.{fold}(x, {b})")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}[{b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("dyn({a}) + dyn({b})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("[{a}, {b}]")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_expression_panics_or_runs_without_an_end(source in source()) {
        let inputs = [Input { name: "self", declared: declared(), optional: false }];
        if let Ok(program) = Program::compile(&source, &inputs) {
            program.estimate();
            let value = value();
            let (result, cost) = program.evaluate(&[Some(&value)], COST);
            prop_assert!(result.is_err() || cost <= COST);
        }
    }

    #[test]
    fn no_text_panics(source in "\\PC{0,60}|[a-z0-9.()\\[\\]{}'\"?:+*/%<>=!&|, \\\\-]{0,60}") {
        let _ = Program::compile(&source, &[]);
    }
}
