//! What can be wrong with protobuf.

use super::{DEPTH_MAX, VALUES_MAX};
use crate::MEDIA_TYPE;
use crate::wire::Malformed;

/// Why a body cannot be decoded. The request is at fault in every case.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("the body does not begin as Kubernetes' protobuf does, with \"k8s\\0\"")]
    NoMagic,
    #[error("the envelope of the object is broken: {0}")]
    Envelope(Malformed),
    #[error("the envelope of the object holds text that is not UTF-8")]
    EnvelopeText,
    #[error("the object is encoded as \"{0}\"; send it as plain protobuf")]
    ContentEncoding(String),
    #[error("the envelope holds {0}; send {MEDIA_TYPE}")]
    ContentType(String),
    #[error("the envelope names no apiVersion and kind")]
    NoKind,
    #[error("{api_version} {kind} has no protobuf form here; send JSON")]
    UnknownKind { api_version: String, kind: String },
    #[error("{message}.{field}: {problem}")]
    Field { message: &'static str, field: &'static str, problem: Problem },
}

/// What is wrong with a field.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("the value has the wrong wire type")]
    WireType,
    #[error("the field stands twice")]
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
