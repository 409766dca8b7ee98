//! Request and response bodies: media types, strict decoding, encoding.

pub mod budget;
pub mod decode;
pub mod ending;
pub mod negotiate;
pub mod read;
mod request;
pub mod respond;

pub use request::RequestBody;

/// Why a body ended early.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
