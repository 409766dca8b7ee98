//! Bodies in and out: media types, strict decoding, answers.

pub mod decode;
pub mod discard;
pub mod negotiate;
pub mod respond;
