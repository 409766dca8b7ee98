//! Bodies in and out: media types, strict decoding, responses.

pub mod budget;
pub mod decode;
pub mod ending;
pub mod negotiate;
pub mod read;
mod request;
pub mod respond;

pub use request::RequestBody;

/// Why a body broke off.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
