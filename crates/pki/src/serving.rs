//! The certificate a server presents, replaced without a restart when its files change.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::aws_lc_rs;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::PkiError;
use crate::authority::Issued;
use crate::files::CertificateFiles;

/// A certificate with its key, from files. New connections get the newest one that could be read.
pub struct ServingCertificate {
    files: CertificateFiles,
    current: ArcSwap<Current>,
}

struct Current {
    pair: Issued,
    certified: Arc<CertifiedKey>,
}

impl ServingCertificate {
    /// Reads the pair.
    ///
    /// # Errors
    /// When it cannot be read, does not decode, or the key is not that of the certificate.
    pub fn load(files: CertificateFiles) -> Result<Arc<Self>, PkiError> {
        let current = read(&files)?;
        Ok(Arc::new(Self { files, current: ArcSwap::from_pointee(current) }))
    }

    /// Reads the files again and takes what they hold if it is another pair. Says whether it was.
    /// Reads two small files: call it every few seconds, or when told that they changed.
    ///
    /// # Errors
    /// As [`ServingCertificate::load`]. The certificate stays as it was; a pair that is just being
    /// replaced can fail so, and the next call takes it.
    pub fn reload_if_changed(&self) -> Result<bool, PkiError> {
        let pair = self.files.read()?;
        let current = self.current.load();
        if pair.certificate_pem == current.pair.certificate_pem
            && pair.key_pem == current.pair.key_pem
        {
            return Ok(false);
        }
        self.current.store(Arc::new(Current { certified: certified(&pair, &self.files)?, pair }));
        Ok(true)
    }

    /// The certificate presented now, with its chain.
    pub fn certificate_pem(&self) -> String {
        self.current.load().pair.certificate_pem.clone()
    }

    /// Whether the certificate presented now is one of `authority_pem`, by the end of its chain.
    pub fn is_issued_by(&self, authority_pem: &str) -> bool {
        self.current.load().pair.certificate_pem.ends_with(authority_pem)
    }

    pub fn files(&self) -> &CertificateFiles {
        &self.files
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.load().certified))
    }
}

impl std::fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServingCertificate").field("files", &self.files).finish_non_exhaustive()
    }
}

fn read(files: &CertificateFiles) -> Result<Current, PkiError> {
    let pair = files.read()?;
    Ok(Current { certified: certified(&pair, files)?, pair })
}

fn certified(pair: &Issued, files: &CertificateFiles) -> Result<Arc<CertifiedKey>, PkiError> {
    let place = || files.certificate.display().to_string();
    let chain = CertificateDer::pem_slice_iter(pair.certificate_pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| PkiError::parse(place(), error))?;
    if chain.is_empty() {
        return Err(PkiError::parse(place(), "no certificate in it"));
    }
    let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes())
        .map_err(|error| PkiError::parse(files.key.display().to_string(), error))?;
    let key = aws_lc_rs::sign::any_supported_type(&key)?;
    let certified = CertifiedKey::new(chain, key);
    certified.keys_match().map_err(|_| PkiError::Mismatch {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
    })?;
    Ok(Arc::new(certified))
}
