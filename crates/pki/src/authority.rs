//! A certificate authority and its certificates.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, date_time_ymd,
};

use crate::PkiError;
use crate::inspect::CertificateInfo;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Life of an authority: 10 years, like that of kubeadm.
pub const AUTHORITY_LIFE: Duration = DAY.saturating_mul(3650);

/// Life of a serving certificate. Some clients refuse more than 398 days.
pub const SERVING_LIFE: Duration = DAY.saturating_mul(365);

/// Certificates are valid from this long before their creation, for clients whose clocks are slow.
pub const BACKDATED: Duration = Duration::from_secs(60 * 60);

/// Host names and addresses that every serving certificate has.
pub const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A key that signs certificates, and its own certificate.
///
/// `Debug` shows the certificate only.
pub struct CertificateAuthority {
    certificate_pem: String,
    key_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key. `Debug` leaves the key out.
#[derive(Clone)]
pub struct Issued {
    /// The certificate, followed by that of its authority.
    pub certificate_pem: String,
    /// The key, in PKCS #8.
    pub key_pem: String,
}

impl CertificateAuthority {
    /// Generates a key and a self-signed certificate, valid for [`AUTHORITY_LIFE`] from `now`.
    ///
    /// # Errors
    /// [`PkiError::Issue`], for example when the name is not printable. Use another name.
    pub fn generate(common_name: &str, now: SystemTime) -> Result<Self, PkiError> {
        let failed = |source| PkiError::Issue { subject: common_name.to_owned(), source };
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let mut params = params(common_name, None, now, AUTHORITY_LIFE);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let certificate = params.self_signed(&key).map_err(failed)?;
        Self::load(&certificate.pem(), &key.serialize_pem())
    }

    /// Loads an authority from its PEM texts.
    ///
    /// # Errors
    /// [`PkiError::Parse`] when a text does not decode, the certificate is no authority, or the key
    /// does not belong to the certificate. Restore the files.
    pub fn load(certificate_pem: &str, key_pem: &str) -> Result<Self, PkiError> {
        let failed =
            |reason: &dyn std::fmt::Display| PkiError::parse("a certificate authority", reason);
        let info = CertificateInfo::from_pem(certificate_pem)?;
        if !info.is_authority {
            return Err(failed(&"it may not sign certificates"));
        }
        let key = KeyPair::from_pem(key_pem).map_err(|error| failed(&error))?;
        if key.public_key_raw() != info.public_key {
            return Err(failed(&"the key does not belong to the certificate"));
        }
        let issuer =
            Issuer::from_ca_cert_pem(certificate_pem, key).map_err(|error| failed(&error))?;
        Ok(Self {
            certificate_pem: certificate_pem.to_owned(),
            key_pem: key_pem.to_owned(),
            issuer,
        })
    }

    /// The certificate of the authority.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The signing key in PKCS #8. Its holder can issue a certificate for any server or user.
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    /// Issues a certificate for a server with `names` (host names and addresses) and
    /// [`LOCAL_NAMES`], valid for [`SERVING_LIFE`] from `now`.
    ///
    /// # Errors
    /// [`PkiError::Name`] for a name that is neither a host name nor an address;
    /// [`PkiError::Issue`] for an unprintable common name.
    pub fn issue_serving(
        &self,
        common_name: &str,
        names: &[String],
        now: SystemTime,
    ) -> Result<Issued, PkiError> {
        let mut params = params(common_name, None, now, SERVING_LIFE);
        for name in serving_names(names) {
            let san = CertificateParams::new(vec![name.clone()])
                .map_err(|source| PkiError::Name { name, source })?;
            params.subject_alt_names.extend(san.subject_alt_names);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(common_name, params)
    }

    /// Issues a client certificate for the user `common_name`, in the group `organization` if there
    /// is one.
    ///
    /// # Errors
    /// [`PkiError::Issue`], for example when a name is not printable. Use another name.
    pub fn issue_client(
        &self,
        common_name: &str,
        organization: Option<&str>,
        life: Duration,
        now: SystemTime,
    ) -> Result<Issued, PkiError> {
        let mut params = params(common_name, organization, now, life);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(common_name, params)
    }

    fn issue(&self, subject: &str, mut params: CertificateParams) -> Result<Issued, PkiError> {
        let failed = |source| PkiError::Issue { subject: subject.to_owned(), source };
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(Issued {
            certificate_pem: format!("{}{}", certificate.pem(), self.certificate_pem),
            key_pem: key.serialize_pem(),
        })
    }
}

/// `names` and [`LOCAL_NAMES`], each once, sorted.
pub fn serving_names(names: &[String]) -> Vec<String> {
    let mut all: Vec<String> = names.to_vec();
    all.extend(LOCAL_NAMES.map(str::to_owned));
    all.retain(|name| !name.is_empty());
    all.sort();
    all.dedup();
    all
}

fn params(
    common_name: &str,
    organization: Option<&str>,
    now: SystemTime,
    life: Duration,
) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(BACKDATED);
    params.not_after = epoch + (now + life);
    params
}

impl std::fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificateAuthority")
            .field("certificate_pem", &self.certificate_pem)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued")
            .field("certificate_pem", &self.certificate_pem)
            .field("key_pem", &"[redacted]")
            .finish()
    }
}
