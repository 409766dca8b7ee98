//! The published schema of a custom resource.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The published schema of a custom resource.
///
/// Stored compressed: it is read seldom, and there may be a thousand.
#[derive(Clone)]
pub struct PublishedSchema {
    gzipped: Bytes,
    digest: [u8; 32],
}

impl PublishedSchema {
    /// Compresses this schema.
    pub fn new(schema: &Value) -> Self {
        let json = schema.to_string();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(json.as_bytes()).expect("writing to memory does not fail");
        let gzipped = encoder.finish().expect("writing to memory does not fail").into();
        Self { gzipped, digest: Sha256::digest(&json).into() }
    }
    /// SHA-256 of the JSON of the schema.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
    /// The schema, decompressed and parsed at each call.
    pub fn to_json(&self) -> Value {
        let decoder = flate2::read::GzDecoder::new(self.gzipped.as_ref());
        serde_json::from_reader(decoder).expect("compressed by new()")
    }
}
