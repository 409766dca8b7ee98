//! The targets, by subject.

pub mod bodies;
pub mod expressions;
pub mod negotiation;
pub mod ownership;
pub mod patches;
pub mod protobuf;
pub mod queries;
pub mod reading;
pub mod schemas;
pub mod selectors;
pub mod tokens;
pub mod tunnel;

use serde_json::Value;

/// The `N` parts of an input, separated by its first `N - 1` newlines.
fn parts<const N: usize>(input: &[u8]) -> Option<[&[u8]; N]> {
    let parts: Vec<&[u8]> = input.splitn(N, |byte| *byte == b'\n').collect();
    parts.try_into().ok()
}

/// The `N` parts of an input, each parsed as JSON.
fn documents<const N: usize>(input: &[u8]) -> Option<[Value; N]> {
    let parts = parts::<N>(input)?;
    let values: Option<Vec<Value>> =
        parts.iter().map(|part| serde_json::from_slice(part).ok()).collect();
    values?.try_into().ok()
}
