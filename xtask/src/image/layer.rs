//! The file system of an image: one reproducible layer, owned by root and read-only.

use std::io::Write;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use jiff::Timestamp;

use super::ImageProgram;
use super::archive::USER_ID;
use super::timeless::TimelessTar;

/// Path of the system's certificate authorities. Agents need them only for a server with a publicly
/// trusted certificate; for Drover's own authority, the manifest has a checksum.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";
/// Order of name resolution: `/etc/hosts`, then DNS. Without this file the C library would read
/// `/etc/hosts` last, and only if no name server responds.
const NAMES: &str = "etc/nsswitch.conf";
const NAMES_ORDER: &[u8] = b"hosts: files dns\n";
const FOLDERS: [&str; 3] = ["etc/", "etc/ssl/", "etc/ssl/certs/"];
/// Characters in a line of PEM.
const PEM_LINE: usize = 64;

/// A file system in the format of registries.
pub struct Layer {
    pub tar: Vec<u8>,
    pub compressed: Vec<u8>,
}

pub fn layer(program: &ImageProgram, binary: &[u8], time: Timestamp) -> Result<Layer> {
    let mut tar = TimelessTar::new(time);
    tar.file(program.binary, 0o555, binary)?;
    if let Some(data) = program.data {
        let parents = data.match_indices('/').map(|(end, _)| &data[..end]);
        for parent in parents {
            tar.folder(&format!("{parent}/"))?;
        }
        tar.private_folder(&format!("{data}/"), USER_ID)?;
    }
    finish(tar)
}

/// Adds what every image has, and compresses the layer.
pub(super) fn finish(mut tar: TimelessTar) -> Result<Layer> {
    for folder in FOLDERS {
        tar.folder(folder)?;
    }
    tar.file(NAMES, 0o444, NAMES_ORDER)?;
    tar.file(AUTHORITIES, 0o444, authorities().as_bytes())?;
    let tar = tar.finish()?;
    let compressed = compress(&tar)?;
    Ok(Layer { tar, compressed })
}

fn compress(bytes: &[u8]) -> Result<Vec<u8>> {
    // The gzip header has no file name and no time.
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    gzip.write_all(bytes)?;
    Ok(gzip.finish()?)
}

/// Mozilla's list, as PEM.
fn authorities() -> String {
    let pem = |certificate: &[u8]| {
        let text = STANDARD.encode(certificate);
        let lines: Vec<&str> = text.as_bytes().chunks(PEM_LINE).map(ascii).collect();
        let body = lines.join("\n");
        format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
    };
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|certificate| pem(certificate)).collect()
}

fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("base64 is ASCII")
}
