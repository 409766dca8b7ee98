//! Kubernetes' own kinds between JSON and protobuf, both ways, and OpenAPI documents from JSON.
//!
//! JSON is how objects are kept; protobuf is how typed Go clients send and ask for them. A table
//! ([`schema`]) says of every kind which field has which number and name, and when each form leaves
//! one out; [`encode`] and [`decode`] walk it. Whoever encodes and decodes gets what a Go program
//! gets that reads one form into Kubernetes' types and writes them in the other.
//!
//! There is nothing about HTTP here, and custom resources have no protobuf form. The documents that
//! describe them have one: see [`openapi`].

mod decode;
mod encode;
mod forms;
pub mod openapi;
mod schema;
#[cfg(test)]
mod tests;
mod wire;

pub use decode::{DEPTH_MAX, DecodeError, Problem, VALUES_MAX, decode};
pub use encode::{EncodeError, WATCH_LENGTH_SIZE, encode, encode_as, watch_frame};
pub use schema::{Kind, is_known, kinds};
pub use wire::Malformed;

/// The media type of an encoded object.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The media type of a stream of watch events.
pub const WATCH_MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// The first bytes of every encoded object.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// Numbers of the fields of `k8s.io.apimachinery.pkg.runtime.Unknown`, which follows the magic.
mod envelope {
    pub const TYPE: u32 = 1;
    pub const RAW: u32 = 2;
    pub const CONTENT_ENCODING: u32 = 3;
    pub const CONTENT_TYPE: u32 = 4;
    pub const TYPE_API_VERSION: u32 = 1;
    pub const TYPE_KIND: u32 = 2;
}
