//! Certificates and keys on disk. Files are replaced atomically, and only their owner can read
//! keys.
//!
//! Of a pair, the key is written first, so a certificate always has its key beside it.

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

/// The paths of a certificate and its key, both in PEM.
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

    /// Reads both files.
    ///
    /// # Errors
    /// [`PkiError::File`] when a file cannot be read or is larger than [`FILE_BYTES_MAX`]. The
    /// content is not decoded.
    pub fn read(&self) -> Result<Issued, PkiError> {
        Ok(Issued { certificate_pem: read(&self.certificate)?, key_pem: read(&self.key)? })
    }

    /// Writes both files, the key first; creates the directory if it does not exist.
    ///
    /// # Errors
    /// [`PkiError::File`]; each file then has its old or its new content.
    pub fn write(&self, pair: &Issued) -> Result<(), PkiError> {
        write_private(&self.key, pair.key_pem.as_bytes())?;
        write_public(&self.certificate, pair.certificate_pem.as_bytes())
    }
}

/// Loads the authority in these files, or generates one when there is no certificate.
///
/// # Errors
/// The files exist and hold no authority. Clients trust the old authority, so it is never replaced
/// without a request of the operator, who must restore or delete the files.
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

/// Ensures that the files hold a serving certificate of `authority` for at least `names` with a
/// third of its life left, and issues one otherwise. Returns whether it did.
///
/// # Errors
/// The certificate could not be issued or written. The previous content of the files is never an
/// error.
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
    let expected = serving_names(names);
    key.public_key_raw() == info.public_key
        && pair.certificate_pem.ends_with(authority.certificate_pem())
        && info.is_valid_at(now)
        && !info.is_due_at(now)
        && expected.iter().all(|name| info.names.contains(name))
}

/// Replaces a file atomically. Only its owner can read and write it.
///
/// # Errors
/// [`PkiError::File`]; the file then still has its old content.
pub fn write_private(path: &Path, content: &[u8]) -> Result<(), PkiError> {
    replace(path, content, PRIVATE)
}

/// Replaces a file atomically. All users of the system can read it.
///
/// # Errors
/// [`PkiError::File`]; the file then still has its old content.
pub fn write_public(path: &Path, content: &[u8]) -> Result<(), PkiError> {
    replace(path, content, PUBLIC)
}

fn replace(path: &Path, content: &[u8], mode: u32) -> Result<(), PkiError> {
    /// Distinguishes the temporary files of threads that write at the same time.
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
        // The file does not exist any more after the rename; a leftover cannot be handled
        // otherwise.
        let _ = fs::remove_file(&temporary);
        failed("write", path)(source)
    })
}

fn write_new(path: &Path, content: &[u8], mode: u32) -> std::io::Result<()> {
    // A file of this name can only be a leftover of an earlier process with the same id.
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
