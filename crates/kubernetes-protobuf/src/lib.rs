//! Kubernetes' own kinds between JSON and protobuf, both ways, and OpenAPI documents from JSON.
//!
//! Objects are stored as JSON; typed Go clients send and request protobuf. A table ([`schema`]) has
//! the number and name of every field of every kind, and says when each encoding omits it;
//! [`encode`] and [`decode`] walk it. The result is what a Go program gets when it reads one
//! encoding into Kubernetes' types and writes them in the other.
//!
//! HTTP is out of scope. Custom resources have no protobuf encoding, but the documents that
//! describe them have one: see [`openapi`].

mod decode;
mod encode;
pub mod openapi;
mod schema;
#[cfg(test)]
mod tests;
mod values;
mod wire;

pub use decode::{DEPTH_MAX, DecodeError, FieldError, VALUES_MAX, decode};
pub use encode::{EncodeError, WATCH_LENGTH_SIZE, encode, encode_as, watch_frame};
pub use schema::{EncodableKind, is_known, kinds};
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
