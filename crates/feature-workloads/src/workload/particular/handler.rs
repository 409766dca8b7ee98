//! What a probe or a hook does: the view has the command, or the request, beside all else.

use rest_view::ApiError;
use serde_json::{Map, Value};

use crate::workload::path::{object, read_keys};

/// What the view shows of a request.
const REQUEST: [&str; 5] = ["path", "port", "host", "scheme", "httpHeaders"];
const CONNECTION: [&str; 2] = ["port", "host"];

/// Adds the command, request or connection of a probe or hook to the view.
pub fn get(stored: &Value, view: &mut Map<String, Value>) {
    let mut copy = |from: &Value, keys: &[&str]| {
        let present = keys.iter().filter_map(|&key| Some((key, read_keys(from, &[key])?)));
        view.extend(present.map(|(key, value)| (key.to_owned(), value.clone())));
    };
    if let Some(exec) = read_keys(stored, &["exec"]) {
        copy(exec, &["command"]);
    }
    if let Some(request) = read_keys(stored, &["httpGet"]) {
        copy(request, &REQUEST);
    } else if let Some(connection) = read_keys(stored, &["tcpSocket"]) {
        copy(connection, &CONNECTION);
        view.insert("tcp".to_owned(), true.into());
    }
}

/// Writes the command, request or connection of the view into a probe or hook.
///
/// # Errors
/// The field `command` is no list.
pub fn put(view: &Map<String, Value>, stored: &mut Value) -> Result<(), ApiError> {
    let said = |key: &str| view.get(key).filter(|value| !value.is_null());
    let is_tcp = said("tcp") == Some(&Value::Bool(true));
    let chosen: Option<(&str, &[&str])> = match (said("command"), said("port")) {
        (Some(Value::Array(command)), _) if !command.is_empty() => Some(("exec", &["command"])),
        (Some(command), _) if !command.is_array() => {
            let text = "field \"command\" must be of type array[string]";
            return Err(ApiError::invalid_field("InvalidFormat", "command", text));
        }
        (_, Some(_)) if is_tcp => Some(("tcpSocket", &CONNECTION)),
        (_, Some(_)) => Some(("httpGet", &REQUEST)),
        _ => None,
    };
    let map = object(stored);
    for key in ["exec", "httpGet", "tcpSocket"] {
        if chosen.is_none_or(|(chosen, _)| chosen != key) {
            map.remove(key);
        }
    }
    let Some((key, fields)) = chosen else { return Ok(()) };
    // A hook that only waits, which the view does not show.
    map.remove("sleep");
    if said("grpc").is_none() {
        map.remove("grpc");
    }
    let handler = object(map.entry(key).or_insert(Value::Null));
    for &field in fields {
        match said(field) {
            Some(Value::String(text)) if text.is_empty() => {
                handler.remove(field);
            }
            Some(value) => {
                handler.insert(field.to_owned(), value.clone());
            }
            None => {
                handler.remove(field);
            }
        }
    }
    Ok(())
}
