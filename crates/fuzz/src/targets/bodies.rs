//! Bodies of requests.

use std::fmt::Write;

use apiserver::body::decode;
use serde_json::Value;

/// The result equals that of an independent JSON parser, which also refuses the same input.
pub fn json(input: &[u8]) {
    let reference: Result<Value, _> = serde_json::from_slice(input);
    match (decode::json(input), reference) {
        (Ok(decoded), Ok(reference)) => {
            assert_eq!(decoded.value, reference);
            let again =
                decode::json(reference.to_string().as_bytes()).expect("it was written here");
            assert_eq!(again.value, reference);
            assert!(again.duplicates.is_empty(), "{:?}", again.duplicates);
        }
        (Err(status), Err(_)) => assert_eq!(status.code, 400),
        (actual, reference) => panic!("actual: {actual:?}, reference: {reference:?}"),
    }
    // The same document as a body of a kind, and as an apply configuration.
    let _ = decode::object(input, "Thing", decode::json);
    if let Ok(configuration) = decode::configuration(input) {
        assert!(configuration.value.is_object());
    }
}

/// A parsed document can be printed as JSON, and that parses to the same: JSON is a subset of YAML,
/// except for characters that YAML accepts only as escapes.
pub fn yaml(input: &[u8]) {
    let Ok(decoded) = decode::yaml(input) else { return };
    let text = in_ascii(&decoded.value.to_string());
    let json: Value = serde_json::from_str(&text).expect("it was written here");
    let again = decode::yaml(text.as_bytes());
    let again = again.unwrap_or_else(|status| panic!("{text}: {}", status.message));
    assert_eq!(again.value, json, "{text}");
}

/// A JSON text with every character beyond printable ASCII escaped.
fn in_ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if matches!(character, ' '..='~') {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(text, "\\u{unit:04x}").expect("a string takes everything");
            }
        }
    }
    text
}
