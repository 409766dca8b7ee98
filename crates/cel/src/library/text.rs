//! Functions on text. Positions are in characters.

use api_meta::go_text::letter_of;

use crate::library::text_format;
use crate::limits::TEXT_BYTES_MAX;
use crate::value::{EvalFailure, EvalResult, Value, fail, no_such_overload};

pub(super) fn call<'a>(function: &str, args: &[Value<'a>]) -> Option<EvalResult<'a>> {
    Some(match (function, args) {
        ("size", [value @ (Value::Text(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))]) => {
            Ok(Value::Int(value.size() as i64))
        }
        ("contains", [Value::Text(text), Value::Text(part)]) => {
            Ok(Value::Bool(text.contains(&**part)))
        }
        ("startsWith", [Value::Text(text), Value::Text(part)]) => {
            Ok(Value::Bool(text.starts_with(&**part)))
        }
        ("endsWith", [Value::Text(text), Value::Text(part)]) => {
            Ok(Value::Bool(text.ends_with(&**part)))
        }
        ("charAt", [Value::Text(text), Value::Int(at)]) => char_at(text, *at),
        ("indexOf", [Value::Text(text), Value::Text(part)]) => index_of(text, part, 0),
        ("indexOf", [Value::Text(text), Value::Text(part), Value::Int(from)]) => {
            index_of(text, part, *from)
        }
        ("lastIndexOf", [Value::Text(text), Value::Text(part)]) => last_index_of(text, part, None),
        ("lastIndexOf", [Value::Text(text), Value::Text(part), Value::Int(from)]) => {
            last_index_of(text, part, Some(*from))
        }
        ("lowerAscii", [Value::Text(text)]) => Ok(Value::text(text.to_ascii_lowercase())),
        ("upperAscii", [Value::Text(text)]) => Ok(Value::text(text.to_ascii_uppercase())),
        ("replace", [Value::Text(text), Value::Text(from), Value::Text(to)]) => {
            replace(text, from, to, -1)
        }
        ("replace", [Value::Text(text), Value::Text(from), Value::Text(to), Value::Int(most)]) => {
            replace(text, from, to, *most)
        }
        ("split", [Value::Text(text), Value::Text(by)]) => Ok(split(text, by, -1)),
        ("split", [Value::Text(text), Value::Text(by), Value::Int(most)]) => {
            Ok(split(text, by, *most))
        }
        ("substring", [Value::Text(text), Value::Int(from)]) => substring(text, *from, None),
        ("substring", [Value::Text(text), Value::Int(from), Value::Int(to)]) => {
            substring(text, *from, Some(*to))
        }
        ("trim", [Value::Text(text)]) => Ok(Value::text(text.trim())),
        ("join", [Value::List(list)]) => join(list, ""),
        ("join", [Value::List(list), Value::Text(by)]) => join(list, by),
        ("format", [Value::Text(text), Value::List(list)]) => text_format::format(text, list),
        ("jsonpatch.escapeKey", [Value::Text(text)]) => {
            Ok(Value::text(text.replace('~', "~0").replace('/', "~1")))
        }
        ("strings.quote", [Value::Text(text)]) => Ok(Value::text(quote(text))),
        _ => return None,
    })
}

/// A value as error messages show it.
pub(crate) fn display(value: &Value<'_>) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        other => other.to_type().to_string(),
    }
}

/// The byte offset of the character `at`; the end of the text is a valid position.
fn byte_of(text: &str, at: usize) -> Option<usize> {
    text.char_indices().map(|(byte, _)| byte).chain([text.len()]).nth(at)
}

fn out_of_range<'a>(index: i64) -> EvalResult<'a> {
    fail(format!("index out of range: {index}"))
}

fn char_at<'a>(text: &str, at: i64) -> EvalResult<'a> {
    let byte = usize::try_from(at).ok().and_then(|index| byte_of(text, index));
    match byte {
        Some(byte) => {
            let found = text[byte..].chars().next().map(String::from);
            Ok(Value::text(found.unwrap_or_default()))
        }
        None => out_of_range(at),
    }
}

fn count(text: &str) -> i64 {
    text.chars().count() as i64
}

fn index_of<'a>(text: &str, part: &str, from: i64) -> EvalResult<'a> {
    let Ok(start) = usize::try_from(from) else {
        return out_of_range(from);
    };
    let Some(byte) = byte_of(text, start) else {
        return Ok(Value::Int(-1));
    };
    let found = text[byte..].find(part).map(|at| count(&text[..byte + at]));
    Ok(Value::Int(found.unwrap_or(-1)))
}

fn last_index_of<'a>(text: &str, part: &str, from: Option<i64>) -> EvalResult<'a> {
    let end = match from {
        None => text.len(),
        Some(from) => match usize::try_from(from).ok().and_then(|index| byte_of(text, index)) {
            // The part may begin there, so it may end later.
            Some(byte) => {
                let mut end = (byte + part.len()).min(text.len());
                while !text.is_char_boundary(end) {
                    end += 1;
                }
                end
            }
            None => return out_of_range(from),
        },
    };
    Ok(Value::Int(text[..end].rfind(part).map_or(-1, |at| count(&text[..at]))))
}

fn replace<'a>(text: &str, from: &str, to: &str, most: i64) -> EvalResult<'a> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let times = text.matches(from).take(most).count();
    if text.len().saturating_add(times.saturating_mul(to.len())) > TEXT_BYTES_MAX {
        return Err(EvalFailure::Cost);
    }
    Ok(Value::text(text.replacen(from, to, most)))
}

fn split<'a>(text: &str, by: &str, most: i64) -> Value<'a> {
    let piece = |piece: &str| Value::text(piece);
    let pieces: Vec<Value<'a>> = match usize::try_from(most) {
        Ok(0) => Vec::new(),
        most if by.is_empty() => {
            let most = most.unwrap_or(usize::MAX);
            let mut pieces = Vec::new();
            let mut rest = text;
            while let Some(c) = rest.chars().next() {
                if pieces.len() + 1 == most {
                    pieces.push(piece(rest));
                    break;
                }
                let (head, tail) = rest.split_at(c.len_utf8());
                pieces.push(piece(head));
                rest = tail;
            }
            pieces
        }
        Ok(most) => text.splitn(most, by).map(piece).collect(),
        Err(_) => text.split(by).map(piece).collect(),
    };
    Value::list(pieces)
}

fn substring<'a>(text: &str, from: i64, to: Option<i64>) -> EvalResult<'a> {
    let length = count(text);
    let end = to.unwrap_or(length);
    if from > end {
        return match to {
            Some(end) => fail(format!("invalid substring range. start: {from}, end: {end}")),
            None => out_of_range(from),
        };
    }
    if !(0..=length).contains(&from) {
        return out_of_range(from);
    }
    if !(0..=length).contains(&end) {
        return out_of_range(end);
    }
    let byte = |at: i64| byte_of(text, at as usize).unwrap_or(text.len());
    Ok(Value::text(&text[byte(from)..byte(end)]))
}

fn join<'a>(list: &crate::value::List<'a>, by: &str) -> EvalResult<'a> {
    let mut out = String::new();
    for (index, item) in list.iter().enumerate() {
        let Value::Text(text) = item? else {
            return no_such_overload();
        };
        if index > 0 {
            out.push_str(by);
        }
        out.push_str(&text);
        if out.len() > TEXT_BYTES_MAX {
            return Err(EvalFailure::Cost);
        }
    }
    Ok(Value::text(out))
}

/// Like Go's `%q`, except that control characters without a letter escape are not escaped.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match letter_of(c) {
            Some(letter) => out.extend(['\\', letter]),
            None => out.push(c),
        }
    }
    out.push('"');
    out
}
