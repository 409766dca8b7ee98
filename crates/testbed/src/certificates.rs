//! The certificates of one cluster: its authorities and the certificates that they issue.
//!
//! All keys are ECDSA P-256, which are generated in well under a millisecond.

mod subject;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::Error;

/// A certificate with its private key, both PEM.
pub(crate) struct Issued {
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
}

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate_pem: String,
}

impl Authority {
    pub(crate) fn new(common_name: &str) -> Result<Self, Error> {
        let failed = |source| Error::Certificate { subject: common_name.to_owned(), source };
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = params(common_name, &[]).map_err(failed)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
        ];
        let certificate_pem = params.self_signed(&key).map_err(failed)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), certificate_pem })
    }

    pub(crate) fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    pub(crate) fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// A server certificate for `names`, DNS names and IP addresses alike.
    pub(crate) fn server(&self, common_name: &str, names: &[&str]) -> Result<Issued, Error> {
        let failed = |source| Error::Certificate { subject: common_name.to_owned(), source };
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = params(common_name, names).map_err(failed)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(Issued { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }

    /// A client certificate: Kubernetes reads the user from the common name and the groups from
    /// the organisations.
    pub(crate) fn client(&self, user: &str, groups: &[&str]) -> Result<Issued, Error> {
        let failed = |source| Error::Certificate { subject: user.to_owned(), source };
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = params(user, &[]).map_err(failed)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        let certificate_pem =
            subject::with_groups(certificate.der(), user, groups, self.issuer.key())
                .map_err(failed)?;
        Ok(Issued { certificate_pem, key_pem: key.serialize_pem() })
    }
}

/// A key pair that signs tokens of service accounts.
pub(crate) struct TokenKeys {
    pub(crate) private_pem: String,
    pub(crate) public_pem: String,
}

impl TokenKeys {
    pub(crate) fn new() -> Result<Self, Error> {
        Self::of(KeyPair::generate())
    }

    /// With keys of RSA, for those who know no others.
    pub(crate) fn rsa() -> Result<Self, Error> {
        Self::of(KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048))
    }

    fn of(key: Result<KeyPair, rcgen::Error>) -> Result<Self, Error> {
        let key = key.map_err(|source| Error::Certificate {
            subject: "service account tokens".to_owned(),
            source,
        })?;
        Ok(Self { private_pem: key.serialize_pem(), public_pem: key.public_key_pem() })
    }
}

fn params(common_name: &str, names: &[&str]) -> Result<CertificateParams, rcgen::Error> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}
