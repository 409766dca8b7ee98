//! Values that have no fields of their own in JSON.

use serde_json::Value;

use super::{DecodeResult, FieldError};
use crate::values;
use crate::wire::{Wire, WireReader};

/// Reads a length-delimited value.
///
/// # Errors
/// The field has another wire type, or the bytes end early.
pub fn delimited<'a>(wire: Wire, reader: &mut WireReader<'a>) -> DecodeResult<&'a [u8]> {
    if wire == Wire::Delimited { Ok(reader.delimited()?) } else { Err(FieldError::WireType.into()) }
}

/// Reads a varint.
///
/// # Errors
/// The field has another wire type, or the varint is malformed.
pub fn varint(wire: Wire, reader: &mut WireReader<'_>) -> DecodeResult<i64> {
    if wire == Wire::Varint {
        Ok(reader.varint()?.cast_signed())
    } else {
        Err(FieldError::WireType.into())
    }
}

/// Decodes a string.
///
/// # Errors
/// The bytes are not UTF-8.
pub fn text(bytes: &[u8]) -> DecodeResult<String> {
    Ok(str::from_utf8(bytes).map_err(|_| FieldError::Text)?.to_owned())
}

/// Decodes a time into seconds since 1970 and nanoseconds. An empty message is Go's zero time.
///
/// # Errors
/// The message is malformed.
pub fn time_parts(bytes: &[u8]) -> DecodeResult<(i64, i64)> {
    if bytes.is_empty() {
        return Ok((values::GO_ZERO_SECONDS, 0));
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = WireReader::new(bytes);
    while let Some((number, wire)) = reader.tag()? {
        match number {
            1 => seconds = varint(wire, &mut reader)?,
            2 => nanos = varint(wire, &mut reader)?,
            _ => reader.skip(wire)?,
        }
    }
    Ok((seconds, nanos))
}

/// Decodes a quantity into its text. An empty message is `"0"`.
///
/// # Errors
/// The message is malformed or its text is not UTF-8.
pub fn quantity(bytes: &[u8]) -> DecodeResult<Value> {
    let mut value = Value::from("0");
    let mut reader = WireReader::new(bytes);
    while let Some((number, wire)) = reader.tag()? {
        match number {
            1 => value = text(delimited(wire, &mut reader)?)?.into(),
            _ => reader.skip(wire)?,
        }
    }
    Ok(value)
}

/// Decodes an `IntOrString` into a number or a string.
///
/// # Errors
/// The message is malformed, its type is unknown, or its number exceeds 32 bits.
pub fn int_or_string(bytes: &[u8]) -> DecodeResult<Value> {
    /// Value of the field `type` when the text is set.
    const STRING: i64 = 1;
    let (mut kind, mut number, mut string) = (0, 0, String::new());
    let mut reader = WireReader::new(bytes);
    while let Some((at, wire)) = reader.tag()? {
        match at {
            1 => kind = varint(wire, &mut reader)?,
            2 => number = varint(wire, &mut reader)?,
            3 => string = text(delimited(wire, &mut reader)?)?,
            _ => reader.skip(wire)?,
        }
    }
    match kind {
        0 => Ok(i32::try_from(number).map_err(|_| FieldError::Range)?.into()),
        STRING => Ok(string.into()),
        _ => Err(FieldError::Range.into()),
    }
}

/// A schema, or a list of its alternatives. Both are still encoded.
pub struct Alternatives<'a> {
    pub schema: Option<&'a [u8]>,
    pub others: Vec<&'a [u8]>,
}

/// Splits the message of a `JSONSchemaPropsOr…` type.
///
/// # Errors
/// The message is malformed.
pub fn alternatives(bytes: &[u8]) -> DecodeResult<Alternatives<'_>> {
    let mut found = Alternatives { schema: None, others: Vec::new() };
    let mut reader = WireReader::new(bytes);
    while let Some((number, wire)) = reader.tag()? {
        match number {
            1 => found.schema = Some(delimited(wire, &mut reader)?),
            2 => found.others.push(delimited(wire, &mut reader)?),
            _ => reader.skip(wire)?,
        }
    }
    Ok(found)
}
