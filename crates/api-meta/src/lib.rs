//! What all Kubernetes objects and responses have in common. Pure: no I/O, no clock of its own.
//!
//! Objects are dynamic (`serde_json::Value`); [`object`] reads and writes their metadata.
//! [`status`] is the error body that clients parse. The other modules are small grammars: names,
//! image references, selectors, patches; and [`network`], for limits per address.

pub mod audit;
pub mod decode;
pub mod duration;
pub mod fields;
pub mod go_text;
pub mod image;
pub mod labels;
pub mod metadata;
pub mod names;
pub mod network;
pub mod number;
pub mod object;
pub mod patch;
pub mod quantity;
pub mod status;
pub mod time;
