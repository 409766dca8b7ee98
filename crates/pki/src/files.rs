//! Certificates and keys on disk: written whole or not at all, keys readable by their owner only.
//!
//! Of a pair, the key is written first, so that where there is a certificate there is its key.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use crate::PkiError;
use crate::authority::{CertificateAuthority, Issued, serving_names};
use crate::inspect::CertificateInfo;

/// Largest certificate or key file that is read.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;

const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// Where a certificate and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl CertificateFiles {
    /// `DIR/STEM.pem` and `DIR/STEM-key.pem`.
    pub fn in_directory(directory: &Path, stem: &str) -> Self {
        Self {
            certificate: directory.join(format!("{stem}.pem")),
            key: directory.join(format!("{stem}-key.pem")),
        }
    }

    /// Reads both.
    ///
    /// # Errors
    /// [`PkiError::File`].
    pub fn read(&self) -> Result<Issued, PkiError> {
        Ok(Issued { certificate_pem: read(&self.certificate)?, key_pem: read(&self.key)? })
    }

    /// Writes both; makes the directory if need be.
    ///
    /// # Errors
    /// [`PkiError::File`].
    pub fn write(&self, pair: &Issued) -> Result<(), PkiError> {
        write_private(&self.key, pair.key_pem.as_bytes())?;
        write_public(&self.certificate, pair.certificate_pem.as_bytes())
    }
}

/// Loads the authority in these files, or makes one when there is no certificate.
///
/// # Errors
/// Files that are there and do not hold an authority are an error: clients trust it, so it is never
/// replaced unasked.
pub fn ensure_authority(
    files: &CertificateFiles,
    common_name: &str,
    now: SystemTime,
) -> Result<CertificateAuthority, PkiError> {
    if files.certificate.exists() {
        let pair = files.read()?;
        return CertificateAuthority::load(&pair.certificate_pem, &pair.key_pem)
            .map_err(|error| PkiError::parse(files.certificate.display().to_string(), error));
    }
    let authority = CertificateAuthority::generate(common_name, now)?;
    files.write(&Issued {
        certificate_pem: authority.certificate_pem().to_owned(),
        key_pem: authority.key_pem().to_owned(),
    })?;
    Ok(authority)
}

/// Makes sure that the files hold a serving certificate of `authority` for at least `names` with a
/// third of its life left; issues one where they do not. Says whether it did.
///
/// # Errors
/// When the certificate could not be issued or written. What was in the files before does not
/// matter.
pub fn ensure_serving(
    files: &CertificateFiles,
    authority: &CertificateAuthority,
    common_name: &str,
    names: &[String],
    now: SystemTime,
) -> Result<bool, PkiError> {
    if files.read().is_ok_and(|pair| serves(&pair, authority, names, now)) {
        return Ok(false);
    }
    files.write(&authority.issue_serving(common_name, names, now)?)?;
    Ok(true)
}

fn serves(
    pair: &Issued,
    authority: &CertificateAuthority,
    names: &[String],
    now: SystemTime,
) -> bool {
    let Ok(info) = CertificateInfo::from_pem(&pair.certificate_pem) else { return false };
    let Ok(key) = rcgen::KeyPair::from_pem(&pair.key_pem) else { return false };
    let wanted = serving_names(names);
    key.public_key_raw() == info.public_key
        && pair.certificate_pem.ends_with(authority.certificate_pem())
        && info.is_valid_at(now)
        && !info.is_due_at(now)
        && wanted.iter().all(|name| info.names.contains(name))
}

/// Replaces a file whole, readable and writable by its owner only.
///
/// # Errors
/// [`PkiError::File`]; the old content is then still there.
pub fn write_private(path: &Path, content: &[u8]) -> Result<(), PkiError> {
    replace(path, content, PRIVATE)
}

/// Replaces a file whole, readable by all.
///
/// # Errors
/// As [`write_private`].
pub fn write_public(path: &Path, content: &[u8]) -> Result<(), PkiError> {
    replace(path, content, PUBLIC)
}

fn replace(path: &Path, content: &[u8], mode: u32) -> Result<(), PkiError> {
    /// Tells apart the temporary files of threads that write at once.
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(failed("create", directory))?;
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = directory.join(format!(".{name}.{}-{number}.tmp", std::process::id()));
    let written = write_new(&temporary, content, mode)
        .and_then(|()| fs::rename(&temporary, path))
        .and_then(|()| File::open(directory)?.sync_all());
    written.map_err(|source| {
        // Gone already when the rename was done; nothing else can be done about a leftover.
        let _ = fs::remove_file(&temporary);
        failed("write", path)(source)
    })
}

fn write_new(path: &Path, content: &[u8], mode: u32) -> std::io::Result<()> {
    // A file of this name can only be left over from an earlier process of the same number.
    if path.exists() {
        fs::remove_file(path)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

fn read(path: &Path) -> Result<String, PkiError> {
    let size = fs::metadata(path).map_err(failed("read", path))?.len();
    if size > FILE_BYTES_MAX {
        let reason = format!("larger than {FILE_BYTES_MAX} bytes");
        return Err(PkiError::parse(path.display().to_string(), reason));
    }
    fs::read_to_string(path).map_err(failed("read", path))
}

fn failed(step: &'static str, path: &Path) -> impl Fn(std::io::Error) -> PkiError {
    move |source| PkiError::File { step, path: path.to_owned(), source }
}
