//! Values without fields of their own in JSON.

use serde_json::Value;

use super::{Outcome, Problem};
use crate::forms;
use crate::wire::{Reader, Wire};

pub fn delimited<'a>(wire: Wire, reader: &mut Reader<'a>) -> Outcome<&'a [u8]> {
    if wire == Wire::Delimited { Ok(reader.delimited()?) } else { Err(Problem::WireType.into()) }
}

pub fn varint(wire: Wire, reader: &mut Reader<'_>) -> Outcome<i64> {
    if wire == Wire::Varint {
        Ok(reader.varint()?.cast_signed())
    } else {
        Err(Problem::WireType.into())
    }
}

pub fn text(bytes: &[u8]) -> Outcome<String> {
    Ok(str::from_utf8(bytes).map_err(|_| Problem::Text)?.to_owned())
}

/// Seconds and nanoseconds; an empty message is no time.
pub fn time_parts(bytes: &[u8]) -> Outcome<(i64, i64)> {
    if bytes.is_empty() {
        return Ok((forms::GO_ZERO_SECONDS, 0));
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.tag()? {
        match number {
            1 => seconds = varint(wire, &mut reader)?,
            2 => nanos = varint(wire, &mut reader)?,
            _ => reader.skip(wire)?,
        }
    }
    Ok((seconds, nanos))
}

pub fn quantity(bytes: &[u8]) -> Outcome<Value> {
    let mut value = Value::from("0");
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.tag()? {
        match number {
            1 => value = text(delimited(wire, &mut reader)?)?.into(),
            _ => reader.skip(wire)?,
        }
    }
    Ok(value)
}

pub fn int_or_string(bytes: &[u8]) -> Outcome<Value> {
    /// Of the field `type`: the text counts.
    const STRING: i64 = 1;
    let (mut kind, mut number, mut string) = (0, 0, String::new());
    let mut reader = Reader::new(bytes);
    while let Some((at, wire)) = reader.tag()? {
        match at {
            1 => kind = varint(wire, &mut reader)?,
            2 => number = varint(wire, &mut reader)?,
            3 => string = text(delimited(wire, &mut reader)?)?,
            _ => reader.skip(wire)?,
        }
    }
    match kind {
        0 => Ok(i32::try_from(number).map_err(|_| Problem::Range)?.into()),
        STRING => Ok(string.into()),
        _ => Err(Problem::Range.into()),
    }
}

/// A schema, or a list of other things in its place. None of them is decoded yet.
pub struct Alternatives<'a> {
    pub schema: Option<&'a [u8]>,
    pub others: Vec<&'a [u8]>,
}

pub fn alternatives(bytes: &[u8]) -> Outcome<Alternatives<'_>> {
    let mut found = Alternatives { schema: None, others: Vec::new() };
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.tag()? {
        match number {
            1 => found.schema = Some(delimited(wire, &mut reader)?),
            2 => found.others.push(delimited(wire, &mut reader)?),
            _ => reader.skip(wire)?,
        }
    }
    Ok(found)
}
