//! Compares two responses: the paths of their differences, and the intended differences.

use e2e::http::HttpResponse;
use serde_json::{Value, json};

use crate::stream::Step;

/// Intended or known differences: start or end of the real server's side, and the reason.
const KNOWN: [(&str, &str); 30] = [
    ("no kind ", "names a line of Go's sources"),
    ("invalid continue token: continue key is not valid", "what is wrong with its JSON"),
    ("json parse error: invalid character", "what is wrong with the JSON"),
    ("unexpected end of JSON input", "what is wrong with the JSON"),
    ("error decoding YAML", "what is wrong with the YAML"),
    ("already set in map", "reports the line of a duplicate key"),
    ("of type []uint8", "an array of numbers is bytes there"),
    ("error decoding patch", "what is wrong with the JSON"),
    ("cannot restore struct from", "the Go type that a patch does not fit"),
    ("unable to find api field in struct", "the Go type that a patch does not fit"),
    ("patch: Invalid value", "shows the whole object in the order of Go's fields"),
    (r#"Invalid value: \"{\"#, "shows the whole object in the order of Go's fields"),
    ("name or generateName is required", "there with the other faults of the body, here alone"),
    ("must be Fleet", "there among the faults of the content, here at once"),
    ("must be Thing", "there among the faults of the content, here at once"),
    ("does not match the expected kind", "there among the faults of the content, here at once"),
    (r#"namespaces \"nowhere\" not found"#, "which of several errors is reported"),
    ("Object 'Kind' is missing", "shows the whole body"),
    (r#".details.kind: "Secret" | "(absent)""#, "the object that a patch does not fit"),
    (r#".details.kind: "ConfigMap" | "(absent)""#, "the object that a patch does not fit"),
    (r#".details.name: "a" | "(absent)""#, "the object that a patch does not fit"),
    (
        r#"field not declared in schema" | "failed to create typed patch object"#,
        "further errors are reported or not, by the order of Go's maps",
    ),
    ("406: Not Acceptable", "two texts for one thing"),
    ("following media types are accepted", "protobuf is named there even where it is refused"),
    (
        "body of the request was in an unknown format",
        "protobuf is named there even where it is refused",
    ),
    ("prefer a domain-qualified finalizer name", "this warning is not given"),
    (".metadata.continue: ", "the last page may be empty, on either side"),
    (": [] | null", "an empty list that was sent, until it is stored"),
    ("Invalid value: []: either", "an empty list that was sent, until it is stored"),
    ("binaryData: Forbidden: field is immutable", "an empty map that was sent, until it is stored"),
];

/// Text before the version of an object that fails a precondition; the rest is ignored.
const RECORD_VERSION: &str = "does not match the ResourceVersion in record (";

/// Prefix of the generated names of volumes with tokens of service accounts.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// Whether both responses are from a cache of any age.
pub fn may_be_stale(step: &Step, real: &HttpResponse, ours: &HttpResponse) -> bool {
    let is_read = |response: &HttpResponse| matches!(response.status.as_u16(), 200 | 404);
    step.takes_stale() && is_read(real) && is_read(ours)
}

/// The differences of both responses to `step`, without permitted ones.
pub fn differences(
    step: &Step,
    (real, real_body): (&HttpResponse, &Value),
    (ours, our_body): (&HttpResponse, &Value),
) -> Vec<String> {
    if may_be_stale(step, real, ours) {
        return Vec::new();
    }
    let (mut left, mut right) = (comparable(real_body), comparable(our_body));
    if real.status == 406 {
        // An empty value, or a missing one.
        for side in [&mut left, &mut right] {
            if side.is_object() {
                side["details"] = Value::Null;
            }
        }
    }
    let mut found = Vec::new();
    if real.status != ours.status {
        let (left, right) = (&real_body["message"], &our_body["message"]);
        found.push(format!("status {} | {}: {left} | {right}", real.status, ours.status));
    } else {
        found.extend(header_differences(step, real, ours));
        compare("", &left, &right, &mut found);
    }
    found.retain(|difference| !names_a_type(difference) && !tells_a_sent_version(difference));
    found.retain(|difference| !KNOWN.iter().any(|(known, _)| difference.contains(known)));
    found
}

/// The differences of two watch events, both with placeholders.
pub fn event_differences(real: &Value, ours: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", &comparable(&json!([real])), &comparable(&json!([ours])), &mut found);
    found
}

/// A dry run of an update that would create the object: there, the response has the sent version.
fn tells_a_sent_version(difference: &str) -> bool {
    difference.contains(".metadata.resourceVersion: ") && difference.ends_with(r#" | "(absent)""#)
}

/// The Go type of a field with a mistyped value.
fn names_a_type(difference: &str) -> bool {
    difference.starts_with(".message") && difference.contains("cannot unmarshal")
}

/// A body without server-specific values, and with sorted causes: Go's maps have no order.
fn comparable(body: &Value) -> Value {
    let mut body = body.clone();
    if let Value::Array(events) = &mut body {
        // A watch; each event is compared like a response.
        for event in events {
            event["object"] = comparable(&event["object"]);
        }
        return body;
    }
    if let Some(Value::String(message)) = body.get_mut("message")
        && let Some((before, _)) = message.split_once(RECORD_VERSION)
    {
        // A server-specific number, which need not have appeared in a response.
        message.truncate(before.len() + RECORD_VERSION.len());
    }
    let causes = body.pointer_mut("/details/causes").and_then(Value::as_array_mut);
    if let Some(causes) = causes.filter(|causes| !causes.is_empty()) {
        causes.sort_by_key(Value::to_string);
        // Some kinds' metadata is validated twice.
        causes.dedup();
        body["message"] = json!("that of its causes");
    }
    for items in ["items", "rows"] {
        for item in members(&mut body, items) {
            for cell in members(item, "cells") {
                if cell.as_str().is_some_and(is_age) {
                    *cell = json!("an age");
                }
            }
        }
    }
    for column in members(&mut body, "columnDefinitions") {
        column["description"] = json!("a description");
    }
    if let Some(message) = body.get_mut("message")
        && let Some(text) = message.as_str()
    {
        *message = in_one_order(&without_positions(text)).into();
    }
    // An empty list of rows is null there, and empty here.
    if let Some(rows) = body.get_mut("rows").filter(|rows| rows.is_null()) {
        *rows = json!([]);
    }
    mask_own(&mut body);
    body
}

/// The items of a list within `value`, when it has it.
fn members<'a>(value: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

/// A message without revisions and storage keys, which are server-specific.
fn without_positions(text: &str) -> String {
    let words = text.split(' ').collect::<Vec<_>>();
    let masked = words.iter().enumerate().map(|(at, word)| {
        let before = at.checked_sub(1).map_or("", |before| words[before]);
        let is_revision =
            word.starts_with('(') && word.trim_matches(['(', ')']).parse::<u64>().is_ok();
        if is_revision || ["current:", "Key:"].contains(&before) { "…" } else { word }
    });
    masked.collect::<Vec<_>>().join(" ")
}

/// Errors of a list, which Go reports in the order of its maps.
fn in_one_order(text: &str) -> String {
    let mut lines: Vec<&str> = text.split("errors:\n").collect();
    let Some(last) = lines.pop().filter(|_| !lines.is_empty()) else { return text.to_owned() };
    let mut errors: Vec<&str> = last.lines().collect();
    errors.sort_unstable();
    format!("{}errors:\n{}", lines.concat(), errors.join("\n"))
}

fn is_age(cell: &str) -> bool {
    let units = cell.ends_with(['s', 'm', 'h']) && cell.starts_with(|c: char| c.is_ascii_digit());
    units && cell.chars().all(|c| c.is_ascii_digit() || "smh".contains(c)) || is_time(cell)
}

fn is_time(cell: &str) -> bool {
    cell.len() == 20 && cell.ends_with('Z') && cell.starts_with("20")
}

/// Replaces cluster-specific values by one text: the authority, addresses, volumes of tokens.
fn mask_own(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "ca.crt" => *field = json!("an authority"),
                    "clusterIP" if is_address(field) => *field = json!("an address"),
                    "clusterIPs" if is_address(&field[0]) => *field = json!("addresses"),
                    _ => mask_own(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask_own),
        Value::String(text) if text.starts_with(TOKEN_VOLUME) => {
            text.truncate(TOKEN_VOLUME.len());
        }
        _ => {}
    }
}

fn is_address(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.parse::<std::net::IpAddr>().is_ok())
}

fn compare(path: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(left), Value::Object(right)) => {
            let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
            names.sort();
            names.dedup();
            let absent = Value::String("(absent)".to_owned());
            for name in names {
                let left = left.get(name).unwrap_or(&absent);
                let right = right.get(name).unwrap_or(&absent);
                compare(&format!("{path}.{name}"), left, right, found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                compare(&format!("{path}[{index}]"), left, right, found);
            }
        }
        _ if one == other => {}
        _ => found.push(format!("{path}: {one} | {other}")),
    }
}

/// Headers that clients evaluate.
fn header_differences(step: &Step, real: &HttpResponse, ours: &HttpResponse) -> Vec<String> {
    let mut found = Vec::new();
    for name in ["content-type", "warning", "allow", "retry-after"] {
        // Warnings come with successful responses; errors are JSON whatever was requested.
        if real.status.as_u16() >= 400 && (name == "warning" || step.wants_yaml()) {
            continue;
        }
        let values = |response: &HttpResponse| -> Vec<String> {
            let values = response.headers.get_all(name).iter();
            values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
        };
        let (real, ours) = (values(real), values(ours));
        if real != ours {
            found.push(format!("header {name}: {real:?} | {ours:?}"));
        }
    }
    found
}
