//! The targets, by what they are about.

pub mod bodies;
pub mod expressions;
pub mod negotiation;
pub mod ownership;
pub mod patches;
pub mod protobuf;
pub mod reading;
pub mod schemas;
pub mod selectors;
pub mod tunnel;

use serde_json::Value;

/// The parts of an input that has several: what stands between the first `N - 1` newlines.
fn parts<const N: usize>(input: &[u8]) -> Option<[&[u8]; N]> {
    let parts: Vec<&[u8]> = input.splitn(N, |byte| *byte == b'\n').collect();
    parts.try_into().ok()
}

/// The same, each part in JSON.
fn documents<const N: usize>(input: &[u8]) -> Option<[Value; N]> {
    let parts = parts::<N>(input)?;
    let values: Option<Vec<Value>> =
        parts.iter().map(|part| serde_json::from_slice(part).ok()).collect();
    values?.try_into().ok()
}
