//! `runtime.Unknown`, which states the type of the object inside.

use super::DecodeError;
use crate::wire::{Wire, WireReader};
use crate::{MEDIA_TYPE, envelope};

/// The contents of the envelope.
pub struct Envelope<'a> {
    pub api_version: String,
    pub kind: String,
    /// The encoded message of the kind.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Decodes the envelope. `bytes` follow [`crate::MAGIC`]. Absent texts are empty.
    ///
    /// # Errors
    /// The envelope is malformed, or its content is not plain protobuf.
    pub fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut found = Self { api_version: String::new(), kind: String::new(), raw: &[] };
        each_delimited(bytes, |number, value| {
            match number {
                envelope::TYPE => each_delimited(value, |number, value| {
                    match number {
                        envelope::TYPE_API_VERSION => found.api_version = envelope_text(value)?,
                        envelope::TYPE_KIND => found.kind = envelope_text(value)?,
                        _ => {}
                    }
                    Ok(())
                })?,
                envelope::RAW => found.raw = value,
                envelope::CONTENT_ENCODING if !value.is_empty() => {
                    return Err(DecodeError::ContentEncoding(envelope_text(value)?));
                }
                envelope::CONTENT_TYPE if !value.is_empty() && value != MEDIA_TYPE.as_bytes() => {
                    return Err(DecodeError::ContentType(envelope_text(value)?));
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// Calls `take` with every length-delimited field of the envelope; it has no others.
fn each_delimited<'a>(
    bytes: &'a [u8],
    mut take: impl FnMut(u32, &'a [u8]) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut reader = WireReader::new(bytes);
    while let Some((number, wire)) = reader.tag().map_err(DecodeError::Envelope)? {
        if wire == Wire::Delimited {
            take(number, reader.delimited().map_err(DecodeError::Envelope)?)?;
        } else {
            reader.skip(wire).map_err(DecodeError::Envelope)?;
        }
    }
    Ok(())
}

fn envelope_text(bytes: &[u8]) -> Result<String, DecodeError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| DecodeError::EnvelopeText)
}
