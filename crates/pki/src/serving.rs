//! The certificate that a server presents. It is replaced without a restart when its files change.

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

/// A certificate with its key, from files. New connections get the newest pair that could be read.
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
    /// The pair cannot be read or decoded, or the key does not belong to the certificate.
    pub fn load(files: CertificateFiles) -> Result<Arc<Self>, PkiError> {
        let current = read(&files)?;
        Ok(Arc::new(Self { files, current: ArcSwap::from_pointee(current) }))
    }

    /// Reads the files again, and presents their pair from now on if it is another one. Returns
    /// whether it was. This reads two small files: call it every few seconds, or when the files
    /// have changed.
    ///
    /// # Errors
    /// Those of [`ServingCertificate::load`]. The previous certificate stays. A pair whose files
    /// are being replaced can fail; the next call then reads it.
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

    /// The current certificate with its chain, in PEM.
    pub fn certificate_pem(&self) -> String {
        self.current.load().pair.certificate_pem.clone()
    }

    /// Whether the chain of the current certificate ends with `authority_pem`.
    pub fn is_issued_by(&self, authority_pem: &str) -> bool {
        self.current.load().pair.certificate_pem.ends_with(authority_pem)
    }

    /// The files that the pair is read from.
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
