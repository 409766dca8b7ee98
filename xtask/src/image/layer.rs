//! The image's file system: one layer, all of it root's and read-only, every time the same.

use std::io::Write;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use jiff::Timestamp;

use super::Program;
use super::archive::USER_ID;
use super::timeless::TimelessTar;

/// Where the programs look for the system's authorities, which agents need only for a server with a
/// certificate that everybody trusts: for Drover's own, the manifest names a checksum.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";
/// Which names count: those in `/etc/hosts`, then those of the name servers. Without this file the
/// C library would look into `/etc/hosts` last, and only if no name server answers.
const NAMES: &str = "etc/nsswitch.conf";
const NAMES_ORDER: &[u8] = b"hosts: files dns\n";
const FOLDERS: [&str; 3] = ["etc/", "etc/ssl/", "etc/ssl/certs/"];
/// Characters in a line of PEM.
const PEM_LINE: usize = 64;

/// A file system as registries keep it.
pub struct Layer {
    pub tar: Vec<u8>,
    pub compressed: Vec<u8>,
}

pub fn layer(program: &Program, binary: &[u8], time: Timestamp) -> Result<Layer> {
    let mut tar = TimelessTar::new(time);
    tar.file(program.binary, 0o555, binary)?;
    if let Some(data) = program.data {
        let parents = data.match_indices('/').map(|(end, _)| &data[..end]);
        for parent in parents {
            tar.folder(&format!("{parent}/"))?;
        }
        tar.private_folder(&format!("{data}/"), USER_ID)?;
    }
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
    // Without a file name, and with no time at all.
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
