//! Refused expressions and their errors.

use super::program;

fn refusal(source: &str) -> String {
    program(source).expect_err(source)
}

#[test]
fn an_error_shows_its_position() {
    assert_eq!(
        refusal("self.i > 1 &&\n  self.foo == 1"),
        "compilation failed: ERROR: <input>:2:7: undefined field 'foo'\n |   self.foo == 1\n | \
         ......^"
    );
    let wide = refusal("'é' + self.nope == ''");
    assert!(wide.ends_with(" | 'é' + self.nope == ''\n | .．........^"), "{wide}");
}

#[test]
fn types_that_do_not_fit_are_refused() {
    for (source, expected) in [
        ("self.i + self.s == 1", "found no matching overload for '_+_' applied to '(int, string)'"),
        ("self.i == self.s", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("foo == 1", "undeclared reference to 'foo' (in container '')"),
        ("unknown(self.i) == 1", "undeclared reference to 'unknown' (in container '')"),
        ("self.i.bar == 1", "type 'int' does not support field selection"),
        (
            "self.i.all(x, x)",
            "expression of type 'int' cannot be range of a comprehension (must be list, map, or \
             dynamic)",
        ),
        ("[1, 'a'].size() == 2", "expected type 'int' but found 'string'"),
        ("self.i && self.b", "expected type 'bool' but found 'int'"),
        (
            "self.s.startsWith(1)",
            "found no matching overload for 'startsWith' applied to 'string.(int)'",
        ),
        ("self.s.matches('[')", "invalid matches argument"),
        ("duration('1x') == duration('1s')", "invalid duration argument"),
        ("self.l.all(1, true)", "argument must be a simple name"),
        ("has(self)", "invalid argument to has() macro"),
        ("self.l.all(x, x, true)", "duplicate variable name: x"),
        ("'abc'.sortBy(e, e).size() == 3", "sortBy can only be applied to a list, identifier"),
        ("self.l.sortBy(1, e).size() == 2", "argument is not an identifier"),
        (
            "self.l.flatten() == []",
            "found no matching overload for 'flatten' applied to 'list(string).()'",
        ),
        ("self.ml.sort() == []", "found no matching overload for 'sort' applied to"),
        (
            "'abc'.reverse() == ''",
            "found no matching overload for 'reverse' applied to 'string.()'",
        ),
        (
            "self.s.check('a')",
            "found no matching overload for 'check' applied to 'string.(string)'",
        ),
        ("math.greatest(1, 2) == 2", "undeclared reference to 'math' (in container '')"),
        ("self.l.existsOne(v, v == '')", "undeclared reference to 'existsOne' (in container '')"),
        ("self.?i.optMap(1, x).hasValue()", "optMap() variable name must be a simple identifier"),
        ("self.l.all(__result__, true)", "iteration variable overwrites accumulator variable"),
        (
            "'%z'.format([1]) == ''",
            "could not parse formatting clause: unrecognized formatting clause \"z\"",
        ),
        ("'%d'.format([]) == ''", "index 0 out of range"),
        (
            "'%d'.format(['a']) == ''",
            "decimal clause can only be used on integers, was given string",
        ),
        ("'%d'.format([1, 2]) == ''", "too many arguments supplied to string.format (expected 1"),
        ("Foo{a: 1} == 1", "undeclared reference to 'Foo' (in container '')"),
    ] {
        let text = refusal(source);
        assert!(text.contains(expected), "{source}: {text}");
    }
    let text = refusal("int('abc') == 1");
    assert_eq!(text, "program instantiation failed: type conversion error from 'string' to 'int'");
}

#[test]
fn syntax_errors_are_refused() {
    for source in
        ["", "1 = 2", "(1", "a b", "'x", "1 +", "[1", "{1}", "x.", "x..y", "`", "\\", "if"]
    {
        assert!(refusal(source).contains("Syntax error"), "{source}");
    }
}

#[test]
fn names_are_escaped() {
    for (name, expected) in [
        ("plain", Some("plain")),
        ("namespace", Some("__namespace__")),
        ("a.b-c/d", Some("a__dot__b__dash__c__slash__d")),
        ("a__b", Some("a__underscores__b")),
        ("1st", None),
        ("sp ace", None),
        ("", None),
    ] {
        assert_eq!(crate::escape(name).as_deref(), expected, "{name}");
    }
}
