//! A hash of all inputs of a build, so that nothing is built twice.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// The hash of the contents and names of all files below `folder`, and of `more`, as hex digits of
/// 8 bytes.
///
/// Entries directly in `folder` that are named in `without` do not count.
///
/// # Errors
/// A file or folder cannot be read.
pub fn of(folder: &Path, without: &[&str], more: &str) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(more);
    for file in files(folder, without)? {
        hash.update(file.strip_prefix(folder)?.as_os_str().as_encoded_bytes());
        hash.update([0]);
        hash.update(fs::read(&file).with_context(|| format!("cannot read '{}'", file.display()))?);
    }
    Ok(hexadecimal(&hash.finalize()))
}

/// The hash of a text, in the same format.
pub fn of_text(text: &str) -> String {
    hexadecimal(&Sha256::digest(text))
}

/// The first 8 bytes of a hash, enough to distinguish builds.
fn hexadecimal(hash: &[u8]) -> String {
    hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn files(folder: &Path, without: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list '{}'", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if without.iter().any(|skipped| name == *skipped) {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path, &[])?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests;
