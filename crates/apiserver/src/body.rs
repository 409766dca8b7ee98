//! Bodies in and out: media types, strict decoding, answers.

pub mod budget;
pub mod decode;
pub mod ending;
pub mod negotiate;
pub mod read;
pub mod respond;
