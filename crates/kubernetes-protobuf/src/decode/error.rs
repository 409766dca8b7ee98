//! Errors in protobuf bodies.

use super::{DEPTH_MAX, VALUES_MAX};
use crate::MEDIA_TYPE;
use crate::wire::Malformed;

/// Why a body cannot be decoded. The request is at fault in every case.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("the body does not begin like Kubernetes' protobuf, with \"k8s\\0\"")]
    NoMagic,
    #[error("the envelope of the object is malformed: {0}")]
    Envelope(Malformed),
    #[error("the envelope of the object contains text that is not UTF-8")]
    EnvelopeText,
    #[error("the object is encoded as \"{0}\"; send it as plain protobuf")]
    ContentEncoding(String),
    #[error("the envelope contains {0}; send {MEDIA_TYPE}")]
    ContentType(String),
    #[error("the envelope names no apiVersion and kind")]
    NoKind,
    #[error("{api_version} {kind} has no protobuf encoding here; send JSON")]
    UnknownKind { api_version: String, kind: String },
    #[error("{message}.{field}: {problem}")]
    Field { message: &'static str, field: &'static str, problem: FieldError },
}

/// Why one field cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum FieldError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("the value has the wrong wire type")]
    WireType,
    #[error("the field is set twice")]
    Twice,
    #[error("the text is not UTF-8")]
    Text,
    #[error("the number is out of range")]
    Range,
    #[error("the time is out of range")]
    Time,
    #[error("the embedded object is not JSON: {0}")]
    Json(serde_json::Error),
    #[error("the object is nested more than {DEPTH_MAX} levels deep")]
    Depth,
    #[error("the object has more than {VALUES_MAX} values")]
    Size,
}
