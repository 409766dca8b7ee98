//! Compares the encoder with gnostic itself, which runs as a program.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::fmt::Write as _;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};
use testbed::{Binaries, Program};

use super::{OpenApiVersion, encode};

/// Documents with every member that the messages have.
const V2_WHOLE: &str = include_str!("tests/whole_v2.json");
const V3_WHOLE: &str = include_str!("tests/whole_v3.json");

fn go_client(argument: &str) -> Command {
    let mut command = Command::new(Binaries::locate().path(Program::GoClient).unwrap());
    command.arg(argument);
    command
}

/// Gnostic's encoding of a document.
fn gnostic(document: &Value) -> Vec<u8> {
    let mut go = go_client("gnostic");
    let mut go = go.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = go.stdin.take().unwrap();
    let text = escaped(document);
    let feed = std::thread::spawn(move || stdin.write_all(text.as_bytes()).unwrap());
    let output = go.wait_with_output().unwrap();
    feed.join().unwrap();
    assert!(output.status.success());
    output.stdout
}

/// Escapes JSON where gnostic, which parses it as YAML, would read another value.
fn escaped(document: &Value) -> String {
    let mut text = String::new();
    for character in document.to_string().chars() {
        match u32::from(character) {
            code @ 0x7f..=0xffff => write!(text, "\\u{code:04x}").unwrap(),
            _ => text.push(character),
        }
    }
    text
}

/// Compares the encoder's bytes with gnostic's, and shows the first difference.
fn compare(version: OpenApiVersion, document: &Value) {
    let (own, theirs) = (encode(version, document), gnostic(document));
    if let Some(at) = own.iter().zip(&theirs).position(|(one, other)| one != other) {
        let part = |bytes: &[u8]| {
            bytes[at.saturating_sub(60)..bytes.len().min(at + 60)].escape_ascii().to_string()
        };
        panic!("they part at byte {at}:\n{}\n{}", part(&own), part(&theirs));
    }
    assert_eq!(own.len(), theirs.len());
}

#[test]
fn the_table_matches_the_messages() {
    let output = go_client("gnostic-table").output().unwrap();
    assert!(output.status.success());
    let written = String::from_utf8(output.stdout).unwrap();
    assert!(
        written == include_str!("table.txt"),
        "write src/openapi/table.txt with `go-client gnostic-table`"
    );
}

#[test]
fn documents_with_all_members_have_the_bytes_of_gnostic() {
    for (version, text) in [(OpenApiVersion::V2, V2_WHOLE), (OpenApiVersion::V3, V3_WHOLE)] {
        compare(version, &serde_json::from_str(text).unwrap());
    }
}

#[test]
fn a_document_is_encoded_as_the_format_specifies() {
    let document = json!({
        "openapi": "3.0.0", "unknown": 1, "info": {"title": "T", "version": 7},
        "paths": {"x-a": {"b": ["c", null]}, "/d": {}},
    });
    let extension = b"\x0a\x03x-a\x12\x18\x12\x16b:\n    - c\n    - null\n";
    let mut expected = b"\x0a\x053.0.0\x12\x03\x0a\x01T\x22".to_vec();
    let extension_length = u8::try_from(extension.len()).unwrap();
    expected.push(8 + 2 + extension_length);
    expected.extend(b"\x0a\x06\x0a\x02/d\x12\x00\x12");
    expected.push(extension_length);
    expected.extend(extension);
    assert_eq!(
        encode(OpenApiVersion::V3, &document).escape_ascii().to_string(),
        expected.escape_ascii().to_string()
    );
}

/// A document with these values as extensions, each also inside of lists and objects and as a key.
fn with_extensions(values: &[Value]) -> Value {
    let mut document = Map::new();
    for (index, value) in values.iter().enumerate() {
        document.insert(format!("x-{index}"), value.clone());
        let list = json!([value, [value, [], {}], {"a": value, "b": [value], "c": {"d": value}}]);
        document.insert(format!("x-list-{index}"), list);
        if let Value::String(key) = value {
            let object = json!({key: value, "next": {key: [1], "": {key: {key: null}}}});
            document.insert(format!("x-object-{index}"), object);
        }
    }
    document.insert("swagger".to_owned(), "2.0".into());
    document.insert("info".to_owned(), json!({"title": "t", "version": "v"}));
    document.insert("paths".to_owned(), json!({}));
    Value::Object(document)
}

#[test]
fn values_of_all_types_have_the_yaml_of_gnostic() {
    let mut values = vec![json!(null), json!(true), json!([]), json!({}), json!([[[]]])];
    values.extend([json!(0), json!(-1), json!(1.5), json!(1e21), json!(1e-7), json!(u64::MAX)]);
    values.extend(TEXTS.iter().map(|text| Value::from(*text)));
    for length in [127, 128, 129, 200] {
        values.push("k".repeat(length).into());
        values.push("word ".repeat(length).trim_end().into());
    }
    compare(OpenApiVersion::V2, &with_extensions(&values));
}

#[test]
fn texts_of_any_characters_have_the_yaml_of_gnostic() {
    // Parts that have a meaning in YAML, alone or next to others.
    let parts: Vec<&str> =
        "a 1 0 - + . : # ' \" , ? ! & * | > % @ ` ~ _ e x b o T Z [ ] { } \\ é 😀"
            .split(' ')
            .chain([" ", " ", "\n", "\n", "\t", "\r", "\u{85}", "\u{2028}", "\u{feff}", "\u{a0}"])
            .chain(["null", "true", ".inf", "2026-01-02", "03:04:05", "---", "..."])
            .collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % bound as u64).unwrap()
    };
    let texts = (0..4000).map(|_| {
        let length = 1 + below(7);
        (0..length).map(|_| parts[below(parts.len())]).collect::<String>().into()
    });
    compare(OpenApiVersion::V2, &with_extensions(&texts.collect::<Vec<Value>>()));
}

#[rustfmt::skip]
const TEXTS: &[&str] = &[
    "", " ", "a", "a b", " a", "a ", "a\n", "\na", "a\nb", "a\n\n", "\n", "\n\n", "a \nb", "a\n b", " \n", "\n ",
    " a\nb", "\n a", "a\n\nb", "\ta", "a\tb", "a\nb\tc", "a\n\tb", "\t", "a: b", "a:b", "a:", ":", ":a", "a #b",
    "a#b", "a\t#b", "# a", "#", "- a", "-a", "-", "--", "---", "--- a", "---a", "...", "....", "? a", "?a", "?",
    "a? b", "[a", "a[", "]", "{", "}", "a, b", ",a", "&a", "*a", "!a", "|", "|a", ">", "'", "'a'", "it's", "it's: b",
    "\"", "\"a\"", "a\"b", "%", "@", "`", "\\", "a\\b", "\\n", "~", "null", "Null", "NULL", "nULL", "true", "True",
    "TRUE", "tRue", "false", "yes", "no", "on", "off", "y", "n", "Y", "1", "-1", "+1", "--1", "+-1", "1.5", "-1.5",
    "1e3", "1E+3", "1e-3", "1e", "e3", "1.", "1.e3", "1.2.3", ".5", "-.5", "+.5", ".5e3", ".", "..", ".e3", "._5",
    ".5_0", "-._5", "1_000", "1__0", "_1", "1_", "-_1", "1_000.5", "0x1f", "0X1F", "0x", "0xg", "0x_1", "-0x1", "+0x1",
    "0x-1", "0b1", "0B1", "0b2", "-0b1", "0b-1", "0b+1", "0B-1", "-0b-1", "+0b+1", "0o7", "0O7", "0o8", "0o-7", "0o+7",
    "-0o7", "0777", "09", "08.5", "1e999", "-1e999", "1e-999", "18446744073709551615", "18446744073709551616",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "0xffffffffffffffff", "0x10000000000000000",
    "+0xffffffffffffffff", "-0x8000000000000000", "0x1p4", ".inf", ".Inf", "-.Inf", "+.INF", ".iNf", ".nan", "inf",
    "+inf", "Infinity", "NaN", "nan", "<<", "=", "2026-01-02", "2026-1-2", "2026-01-2", "2026-13-02", "2026-00-02",
    "2026-02-30", "2026-02-29", "2024-02-29", "0000-01-01", "0000-02-29", "2026-01-00", "202-01-02", "20260-01-02",
    "2026-01", "2026-01-02T03:04:05Z", "2026-01-02t3:4:5.5+01:00", "2026-01-02T03:04:05z", "2026-01-02 03:04:05",
    "2026-01-02   03:04:05.5", "2026-01-02 03:04:05Z", "2026-01-02T03:04:05", "2026-01-02T24:00:00Z",
    "2026-01-02T03:60:00Z", "2026-01-02T03:04:60Z", "2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05+25:00",
    "2026-01-02T03:04:05-24:60", "2026-01-02T03:04:05+24:61", "2026-01-02T03:04:05+1:00", "2026-01-02T03:04:05,5Z",
    "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05.0123456789012Z", "2026-01-02T", "2026-01-02 ", "2026-01-02x",
    "2026-1-2x", "12:30:45", "1:2", "190:20:30", "1.2:3", "é", "日本", "😀", "a😀", "\u{7f}", "\u{1}", "\0", "a\0#b",
    "\u{a0}", "\u{ad}", "\u{85}", "a\u{85}b", "a\u{2028}b", "a\u{2029}b", "\u{2028}", "a\n\u{2028}b", "\u{2028}\na",
    "a \u{2028}b", "a\u{2028} b", "it's\u{2028}b", "\u{feff}", "a\u{feff}", "\u{fffd}", "\u{fffe}", "\u{ffff}",
    "\u{e000}", "\u{d7ff}", "\u{10ffff}", "\r", "a\rb", "a\r\nb", "\u{8}\u{b}\u{c}\u{1b}\u{7}", "a\nb\u{1}", "a\n: b",
    "a\n# b", "{\n}", "self.a == 'b' ? 1 : 2", "self.all(x, x.y != \"z\")", "merge,retainKeys", "io.k8s.api.core.v1.Pod",
];
