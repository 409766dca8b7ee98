//! Reading certificates.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{SHA256, digest};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::PkiError;

/// The parsed fields of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateInfo {
    /// Empty when the certificate has none.
    pub common_name: String,
    pub organizations: Vec<String>,
    pub not_before: SystemTime,
    pub not_after: SystemTime,
    /// Host names and addresses that the certificate is valid for, as text, sorted.
    pub names: Vec<String>,
    /// Whether it may sign certificates.
    pub is_authority: bool,
    /// The public key, without its algorithm.
    pub public_key: Vec<u8>,
    /// See [`fingerprint`].
    pub fingerprint: String,
}

impl CertificateInfo {
    /// Reads the first certificate of a PEM text.
    ///
    /// # Errors
    /// [`PkiError::Parse`] when there is no certificate or it does not decode.
    pub fn from_pem(pem: &str) -> Result<Self, PkiError> {
        let der = CertificateDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| PkiError::parse("a PEM text", error))?;
        Self::from_der(&der)
    }

    /// Reads a certificate in DER. Its signature is not verified.
    ///
    /// # Errors
    /// [`PkiError::Parse`] when it does not decode.
    pub fn from_der(der: &[u8]) -> Result<Self, PkiError> {
        let (_, certificate) = X509Certificate::from_der(der)
            .map_err(|error| PkiError::parse("a certificate", error))?;
        let subject = certificate.subject();
        let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| {
            attribute.as_str().map(str::to_owned).unwrap_or_default()
        };
        Ok(Self {
            common_name: subject.iter_common_name().last().map(text).unwrap_or_default(),
            organizations: subject.iter_organization().map(text).collect(),
            not_before: time(certificate.validity().not_before.timestamp()),
            not_after: time(certificate.validity().not_after.timestamp()),
            names: names(&certificate),
            is_authority: certificate.is_ca(),
            public_key: certificate.public_key().subject_public_key.data.to_vec(),
            fingerprint: fingerprint(der),
        })
    }

    /// Whether `now` is between `not_before` and `not_after`.
    pub fn is_valid_at(&self, now: SystemTime) -> bool {
        self.not_before <= now && now <= self.not_after
    }

    /// Whether the certificate is due for renewal: less than a third of its life is left at `now`.
    pub fn is_due_at(&self, now: SystemTime) -> bool {
        let life = self.not_after.duration_since(self.not_before).unwrap_or_default();
        self.not_after.duration_since(now).unwrap_or_default() < life / 3
    }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let extension = certificate.subject_alternative_name().ok().flatten();
    let names = extension.map(|extension| extension.value.general_names.as_slice());
    let mut names: Vec<String> = names
        .unwrap_or_default()
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => match bytes.len() {
                4 => Some(IpAddr::from(<[u8; 4]>::try_from(*bytes).ok()?).to_string()),
                _ => Some(IpAddr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string()),
            },
            _ => None,
        })
        .collect();
    names.sort();
    names
}

fn time(seconds: i64) -> SystemTime {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}

/// SHA-256 of a certificate (DER), in lower-case hexadecimal.
pub fn fingerprint(der: &[u8]) -> String {
    digest(&SHA256, der).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
