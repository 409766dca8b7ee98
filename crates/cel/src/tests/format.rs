//! Formatted texts: results, estimates and costs.

use super::{program, run};

/// Expression, its estimate, its cost, and its result.
const FORMATS: &[(&str, u64, u64, &str)] = &[
    ("'%d'.format([1234567]) == '1234567'", 12, 2, "true"),
    ("'%d'.format([self.i * 1000000]) == '3000000'", 15, 15, "true"),
    ("'%f'.format([self.d * 1000000.0]) == '2500000.000000'", 16, 16, "false"),
    ("'%f'.format([self.d * 1000000.0]) == '2,500,000.000000'", 16, 16, "true"),
    ("'%.2f'.format([self.d]) == '2.50'", 14, 14, "true"),
    ("'%e'.format([self.d]) == '2.500000e+00'", 15, 15, "false"),
    ("'%.3e'.format([self.d * 100.0]) == '2.500e+02'", 15, 15, "false"),
    ("'%.3e'.format([self.d * 100.0]) == '2.500 × 10⁰²'", 16, 16, "false"),
    ("'%b'.format([self.i]) == '11'", 14, 14, "true"),
    ("'%b'.format([-self.i]) == '-11'", 15, 15, "true"),
    ("'%x'.format([self.s]) == ''", 13, 13, "false"),
    ("'%X'.format([self.i * 100]) == '12C'", 15, 15, "true"),
    ("'%o'.format([self.i * 100]) == '454'", 15, 15, "true"),
    ("'%s'.format([self.l]) == '[\"a\", \"bb\", \"ccc\"]'", 15, 15, "true"),
    ("'%s'.format([self.m]) == '{\"a\":\"x\", \"b\":\"y\"}'", 15, 15, "true"),
    ("'%s'.format([self.m]) == '{\"a\": \"x\", \"b\": \"y\"}'", 15, 15, "false"),
    ("'%s'.format([self.dt]) == '2020-01-02T03:04:05.678Z'", 16, 16, "true"),
    ("'%s'.format([self.du]) == '5400s'", 14, 14, "true"),
    ("'%s'.format([self.by]) == 'hello'", 14, 14, "true"),
    ("'%s'.format([type(self.i)]) == 'int'", 15, 15, "true"),
    ("'%s'.format([null]) == 'null'", 12, 2, "true"),
    ("'%s'.format([[self.dt]]) == '[timestamp(\"2020-01-02T03:04:05.678Z\")]'", 27, 27, "true"),
    ("'%s'.format([[self.du]]) == '[duration(\"5400s\")]'", 25, 25, "true"),
    ("'%s'.format([[self.by]]) == '[b\"hello\"]'", 24, 24, "true"),
    ("'%s'.format([[self.i, self.j]]) == '[3, 7]'", 26, 26, "true"),
    ("'%s'.format([[self.d]]) == '[2.500000]'", 24, 24, "true"),
    ("'%s'.format([[null]]) == '[null]'", 22, 2, "true"),
    ("'%s'.format([self.d]) == '2.5'", 14, 14, "true"),
    ("'%s'.format([1.0]) == '1'", 12, 2, "true"),
    ("'%s'.format([self.d * 1e30]) == '2.5e+30'", 15, 15, "true"),
    ("'%s'.format([true]) == 'true'", 12, 2, "true"),
    (
        "'%s'.format([dyn(quantity('1'))]) == ''",
        13,
        13,
        "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given kubernetes.Quantity",
    ),
    ("'%s'.format([self.ml]) == ''", 13, 13, "false"),
    (
        "'%d'.format([dyn(self.l)]) == ''",
        14,
        14,
        "error during formatting: decimal clause can only be used on integers, was given list",
    ),
    ("'%f'.format(['NaN']) == 'NaN'", 12, 2, "true"),
    (
        "'%f'.format([self.s]) == 'NaN'",
        14,
        14,
        "error during formatting: fixed-point clause can only be used on doubles, was given string",
    ),
    ("'%%'.format([]) == '%'", 12, 2, "true"),
    ("'abc'.format([]) == 'abc'", 12, 2, "true"),
    ("self.s.format([1]) == 'hello wörld'", 22, 6, "true"),
    (
        "(self.s + '%z').format([1]) == ''",
        30,
        6,
        "could not parse formatting clause: unrecognized formatting clause \"z\"",
    ),
    ("(self.s + '%').format([1]) == ''", 30, 6, "unexpected end of string"),
    ("(self.s + '%').format([]) == ''", 30, 6, "index 0 out of range"),
    (
        "(self.s + '%.').format([1]) == ''",
        30,
        6,
        "could not parse formatting clause: error while parsing precision: could not find end of precision specifier",
    ),
    (
        "(self.s + '%.x').format([1]) == ''",
        30,
        6,
        "could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \"\": invalid syntax",
    ),
    (
        "(self.s + '%.2').format([1]) == ''",
        30,
        6,
        "could not parse formatting clause: error while parsing precision: could not find end of precision specifier",
    ),
    ("(self.s + '%d').format([]) == ''", 30, 6, "index 0 out of range"),
    ("(self.s + '%d').format([1,2]) == 'hello wörld1'", 32, 8, "true"),
    (
        "(self.s + '%d').format(['a']) == ''",
        30,
        6,
        "error during formatting: decimal clause can only be used on integers, was given string",
    ),
    (
        "(self.s + '%d').format([self.l]) == ''",
        32,
        18,
        "error during formatting: decimal clause can only be used on integers, was given list",
    ),
    (
        "(self.s + '%f').format([self.l]) == ''",
        32,
        18,
        "error during formatting: fixed-point clause can only be used on doubles, was given list",
    ),
    ("(self.s + '%f').format(['NaN']) == 'hello wörldNaN'", 32, 8, "true"),
    (
        "(self.s + '%f').format(['x']) == 'hello wörldNaN'",
        32,
        7,
        "error during formatting: fixed-point clause can only be used on doubles, was given string",
    ),
    (
        "(self.s + '%e').format([1]) == ''",
        30,
        6,
        "error during formatting: scientific clause can only be used on doubles, was given int",
    ),
    (
        "(self.s + '%b').format(['a']) == ''",
        30,
        6,
        "error during formatting: only integers and bools can be formatted as binary, was given string",
    ),
    (
        "(self.s + '%o').format(['a']) == ''",
        30,
        6,
        "error during formatting: octal clause can only be used on integers, was given string",
    ),
    (
        "(self.s + '%x').format([1.0]) == ''",
        30,
        6,
        "error during formatting: only integers, byte buffers, and strings can be formatted as hex, was given double",
    ),
    (
        "(self.s + '%s').format([quantity('1')]) == ''",
        31,
        17,
        "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given kubernetes.Quantity",
    ),
    (
        "(self.s + '%s').format([[quantity('1')]]) == ''",
        41,
        27,
        "error during formatting: no formatting function for kubernetes.Quantity",
    ),
    (
        "(self.s + '%s').format([self.?i]) == ''",
        32,
        18,
        "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given optional_type",
    ),
    ("'%s'.format([[1, 'a']]) == ''", 21, 1, "false"),
    ("'%s'.format([{'a': [1]}]) == ''", 51, 1, "false"),
    ("'%s'.format([{1: 2.5, 3: 1.0}]) == '{1:2.500000, 3:1.000000}'", 44, 4, "true"),
    ("'%s'.format([{1: 2.5, 3: 1.0}]) == '{1:2.5, 3:1}'", 43, 3, "false"),
    ("'%.0f'.format([2.5]) == '2'", 12, 2, "true"),
    ("'%f'.format([1.0/0.0]) == '∞'", 13, 13, "true"),
    ("'%f'.format([1.0/0.0]) == 'Infinity'", 13, 13, "false"),
    ("'%s'.format([1.0/0.0]) == 'Infinity'", 13, 13, "false"),
    ("'%s'.format([1.0/0.0]) == '+Inf'", 13, 13, "true"),
    ("'%e'.format([0.0/0.0]) == 'NaN'", 13, 13, "false"),
];

#[test]
fn texts_are_formatted_like_in_kubernetes() {
    for (source, estimate, cost, result) in FORMATS {
        let estimated = program(source).unwrap().estimate().max;
        assert_eq!(
            (estimated, run(source)),
            (*estimate, ((*result).to_owned(), *cost)),
            "{source}"
        );
    }
}
