//! JSON to protobuf.
//!
//! The result equals Go's encoding of the object byte for byte: fields in the order of their
//! numbers, maps in the order of their keys, and empty values of fields that are no pointers in Go.
//! Members that the table does not have are left out. The JSON parser writes while it reads: there
//! is no tree in between.

mod element;
mod message;

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::DeserializeSeed;

use crate::schema::schema;
use crate::wire::{put_bytes, put_nested};
use crate::{MAGIC, envelope};
use message::MessageBody;

/// Why an object cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    #[error("{api_version} {kind} has no protobuf encoding; request JSON")]
    UnknownKind { api_version: String, kind: String },
    #[error("the object does not fit its kind: {0}")]
    Json(#[from] serde_json::Error),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

/// Encodes a JSON object as the kind that it names.
///
/// # Errors
/// [`EncodeError::UnknownKind`] when the kind has no protobuf encoding: send JSON.
/// [`EncodeError::Json`] when the text is not JSON or does not fit its kind.
pub fn encode(json: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let header: Header<'_> = serde_json::from_slice(json)?;
    encode_as(&header.api_version, &header.kind, json)
}

/// Encodes a JSON object whose kind is known, whatever kind it names itself. Saves parsing it
/// twice.
///
/// # Errors
/// The same as [`encode`].
pub fn encode_as(api_version: &str, kind: &str, json: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let schema = schema();
    // Some discovery documents name no version. Their version is `v1`.
    let version = if api_version.is_empty() { "v1" } else { api_version };
    let Some(message) = schema.message_of(version, kind) else {
        let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
        return Err(EncodeError::UnknownKind { api_version, kind });
    };
    let mut out = Vec::with_capacity(json.len());
    out.extend_from_slice(&MAGIC);
    put_nested(&mut out, envelope::TYPE, |out| {
        put_bytes(out, envelope::TYPE_API_VERSION, api_version.as_bytes());
        put_bytes(out, envelope::TYPE_KIND, kind.as_bytes());
    });
    put_nested(&mut out, envelope::RAW, |out| {
        let mut parser = serde_json::Deserializer::from_slice(json);
        MessageBody { schema, message, out }.deserialize(&mut parser)?;
        parser.end()
    })?;
    put_bytes(&mut out, envelope::CONTENT_ENCODING, b"");
    put_bytes(&mut out, envelope::CONTENT_TYPE, b"");
    Ok(out)
}

/// Size of the length that begins a frame of [`watch_frame`], in bytes.
pub const WATCH_LENGTH_SIZE: usize = 4;

/// Encodes one event of a watch stream: its length in four bytes (big-endian), its type (such as
/// `ADDED`), and the encoded object.
#[must_use]
pub fn watch_frame(event: &str, object: &[u8]) -> Vec<u8> {
    const TYPE: u32 = 1;
    const OBJECT: u32 = 2;
    const RAW: u32 = 1;
    let mut frame = Vec::with_capacity(object.len() + event.len() + 24);
    frame.extend_from_slice(&[0; WATCH_LENGTH_SIZE]);
    put_bytes(&mut frame, TYPE, event.as_bytes());
    put_nested(&mut frame, OBJECT, |out| put_bytes(out, RAW, object));
    let length =
        u32::try_from(frame.len() - WATCH_LENGTH_SIZE).expect("an object is far below 4 GiB");
    frame[..WATCH_LENGTH_SIZE].copy_from_slice(&length.to_be_bytes());
    frame
}
