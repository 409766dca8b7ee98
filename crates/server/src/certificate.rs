//! The certificate that the server presents, and what others verify it with: the server's own
//! authority, or what the operator brings (`--tls-cert`, `--tls-key`, `--tls-ca`).
//!
//! Clients and agents get one authority, by the setting `cacerts`, in kubeconfigs and in the
//! agents' manifest; none at all stands for "one that every system trusts". So a given certificate
//! is verified here first as agents and commands will verify it: what fails then, fails at the
//! start, with the file's name.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use pki::{CertificateFiles, CertificateInfo, PkiError, ServingCertificate};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use serde::Serialize;
use tls_trust::{ca_checksum, crypto_provider, system_roots};
use tokio::sync::watch;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::files::Keys;

/// Pause between checks of the certificate's files.
const CHECK_EVERY: Duration = Duration::from_secs(10);
/// From this time before its end on, a given certificate is warned of, at the start and once a day.
const WARNED_BEFORE_END: Duration = Duration::from_secs(14 * 24 * 60 * 60);
const WARN_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// Value of `--tls-ca` for an authority that every system trusts.
const SYSTEM: &str = "system";
/// Stands for the asterisk of a wildcard name when the name is verified.
const ANY_LABEL: &str = "any";

/// The flags, as they were given.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TlsSettings {
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    /// A PEM file, or [`SYSTEM`].
    pub tls_ca: Option<String>,
}

impl TlsSettings {
    /// What is wrong with the flags, files aside.
    pub fn problem(&self) -> Option<String> {
        let is_half = self.tls_cert.is_some() != self.tls_key.is_some();
        is_half.then(|| "tls-cert, tls-key: give both or none of them".to_owned())
    }
}

/// Why a given certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("tls-cert, tls-key: cannot use the certificate")]
    Files(#[source] PkiError),
    #[error("cannot load the serving certificate of the data folder")]
    Own(#[source] PkiError),
    #[error("tls-ca: cannot read \"{path}\": {reason}")]
    Authority { path: String, reason: String },
    #[error(
        "tls-cert: the certificate \"{subject}\" in \"{path}\" has expired at {at}; renew it and start again"
    )]
    Expired { path: String, subject: String, at: Timestamp },
    #[error(
        "tls-cert: the certificate \"{subject}\" in \"{path}\" is not valid before {at}; check the clock of this \
         machine"
    )]
    NotYet { path: String, subject: String, at: Timestamp },
    #[error(
        "tls-cert: the certificate in \"{path}\" has no subject alternative name, by which clients recognize a server"
    )]
    Nameless { path: String },
    #[error(
        "tls-cert: the certificate in \"{path}\" does not verify with {authority}: {reason}; the file must hold the \
         certificate and then those of all intermediate authorities{hint}"
    )]
    Untrusted { path: String, authority: String, reason: String, hint: &'static str },
}

/// What others verify the server with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Authorities of this PEM text, and no others.
    Pinned(String),
    /// Those that every system trusts.
    Public,
}

impl Trust {
    /// As the setting `cacerts` has it: empty for [`Trust::Public`].
    pub fn pem(&self) -> &str {
        match self {
            Self::Pinned(pem) => pem,
            Self::Public => "",
        }
    }

    /// What agents pin; empty for [`Trust::Public`].
    pub fn checksum(&self) -> String {
        match self {
            Self::Pinned(pem) => ca_checksum(pem),
            Self::Public => String::new(),
        }
    }
}

/// The certificate in use.
pub struct Serving {
    /// What others get: of the server's URL, which a proxy may serve.
    pub trust: Trust,
    /// What verifies what this server presents itself; none when every system trusts it.
    pub own_authority: Option<String>,
    pub certificate: Arc<ServingCertificate>,
    /// What a certificate of our own is renewed with; none for one that the operator brought, who
    /// renews it.
    keys: Option<Arc<Keys>>,
}

impl Serving {
    /// Reads and verifies what was given; without `--tls-cert` the certificate of the server's own
    /// authority.
    ///
    /// # Errors
    /// [`CertificateError`]: what is wrong with which file.
    pub fn load(
        tls: &TlsSettings,
        keys: &Arc<Keys>,
        now: SystemTime,
    ) -> Result<Self, CertificateError> {
        let given = tls.tls_ca.as_deref().map(read_trust).transpose()?;
        let Some(files) = given_files(tls) else {
            let own = keys.authority.certificate_pem().to_owned();
            let certificate =
                ServingCertificate::load(keys.serving.clone()).map_err(CertificateError::Own)?;
            let trust = given.unwrap_or_else(|| Trust::Pinned(own.clone()));
            return Ok(Self {
                trust,
                own_authority: Some(own),
                certificate,
                keys: Some(keys.clone()),
            });
        };
        let certificate =
            ServingCertificate::load(files.clone()).map_err(CertificateError::Files)?;
        let trust = verify(&certificate.certificate_pem(), given, &files.certificate, now)?;
        let own_authority = match &trust {
            Trust::Pinned(pem) => Some(pem.clone()),
            Trust::Public => None,
        };
        Ok(Self { trust, own_authority, certificate, keys: None })
    }

    fn is_given(&self) -> bool {
        self.keys.is_none()
    }

    /// Logs what will keep clients away: a name that the certificate has not, an end that is near.
    pub fn warn(&self, url: &str, now: SystemTime) {
        let Ok(info) = CertificateInfo::from_pem(&self.certificate.certificate_pem()) else {
            return;
        };
        if !self.is_given() {
            return;
        }
        warn_of_end(&info, now);
        let host = url.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
        let host = host.unwrap_or_default();
        let host = host.trim_matches(['[', ']']);
        if !info.names.iter().any(|name| covers(name, host)) {
            tracing::warn!(
                url, names = ?info.names,
                "the certificate is not for the host of the server's URL; start with --server-url https://NAME:PORT, \
                 unless a proxy with a certificate of that name is in front"
            );
        }
    }

    /// Takes renewed files as long as `tls` is listened to. A renewed certificate that the agents
    /// would not trust is left where it is, and logged.
    pub async fn follow(&self, tls: watch::Sender<Arc<rustls::ServerConfig>>) {
        let mut check = tokio::time::interval(CHECK_EVERY);
        let mut warned_at = SystemTime::now();
        loop {
            tokio::select! {
                () = tls.closed() => return,
                _ = check.tick() => {}
            }
            let now = SystemTime::now();
            match self.renew(now) {
                Ok(false) => {}
                Ok(true) => tracing::info!("the serving certificate was renewed"),
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    tracing::warn!("the serving certificate was not reloaded: {error:#}");
                }
            }
            let is_due = now.duration_since(warned_at).is_ok_and(|past| past >= WARN_EVERY);
            if self.is_given() && is_due {
                warned_at = now;
                let info = CertificateInfo::from_pem(&self.certificate.certificate_pem());
                let _ = info.map(|info| warn_of_end(&info, now));
            }
        }
    }

    /// Takes what the files hold, if that is another certificate; renews our own when that is due.
    /// Returns whether there is another one.
    ///
    /// # Errors
    /// As [`Serving::load`]; the certificate stays as it was.
    fn renew(&self, now: SystemTime) -> Result<bool, CertificateError> {
        let files = self.certificate.files();
        let failed = if self.is_given() { CertificateError::Files } else { CertificateError::Own };
        if let Some(keys) = &self.keys {
            keys.renew_serving(now).map_err(failed)?;
        }
        let pair = files.read().map_err(failed)?;
        if self.is_given() && pair.certificate_pem != self.certificate.certificate_pem() {
            verify(&pair.certificate_pem, Some(self.trust.clone()), &files.certificate, now)?;
        }
        self.certificate.reload_if_changed().map_err(failed)
    }
}

fn given_files(tls: &TlsSettings) -> Option<CertificateFiles> {
    let (certificate, key) = (tls.tls_cert.clone()?, tls.tls_key.clone()?);
    Some(CertificateFiles { certificate, key })
}

fn read_trust(text: &str) -> Result<Trust, CertificateError> {
    if text == SYSTEM {
        return Ok(Trust::Public);
    }
    let failed = |reason: String| CertificateError::Authority { path: text.to_owned(), reason };
    let pem = std::fs::read_to_string(text).map_err(|error| failed(error.to_string()))?;
    let roots = chain(&pem).map_err(failed)?;
    if roots.is_empty() {
        return Err(failed("there is no certificate in it".to_owned()));
    }
    roots_of(&roots).map_err(|error| failed(error.to_string()))?;
    Ok(Trust::Pinned(format!("{}\n", pem.trim_end())))
}

/// Verifies a certificate with its chain as agents will. Without `given`, the authority is the
/// self-signed one that ends the chain, else those of this system.
fn verify(
    pem: &str,
    given: Option<Trust>,
    file: &Path,
    now: SystemTime,
) -> Result<Trust, CertificateError> {
    let path = file.display().to_string();
    let unreadable =
        |reason| CertificateError::Files(PkiError::Parse { what: path.clone(), reason });
    let chain = chain(pem).map_err(unreadable)?;
    let mut names = Vec::new();
    for (index, der) in chain.iter().enumerate() {
        let info = CertificateInfo::from_der(der).map_err(|error| unreadable(error.to_string()))?;
        check_time(&info, &path, now)?;
        if index == 0 {
            names = info.names;
        }
    }
    let name = names.first().map(|name| name.replace('*', ANY_LABEL));
    let name = name.and_then(|name| ServerName::try_from(name).ok());
    let name = name.ok_or_else(|| CertificateError::Nameless { path: path.clone() })?;
    let last = chain.last().filter(|last| is_self_signed(last));
    let trust = given.unwrap_or_else(|| match last {
        Some(root) => Trust::Pinned(to_pem(root)),
        None => Trust::Public,
    });
    let (roots, authority, hint) = match &trust {
        Trust::Pinned(pem) => {
            let roots = self::chain(pem).map_err(unreadable)?;
            let hint = match chain.len() {
                1 if last.is_some() => {
                    "; one that has signed itself must not be an authority (CA:TRUE)"
                }
                _ => "",
            };
            (roots_of(&roots), "its authority", hint)
        }
        Trust::Public => {
            let hint =
                ", and that of a private root at its end, which --tls-ca FILE can name instead";
            (Ok(system_roots()), "the authorities of this system", hint)
        }
    };
    let verified = roots.map_err(|error| error.to_string()).and_then(|roots| {
        verify_chain(&chain, roots, &name, now).map_err(|error| error.to_string())
    });
    match verified {
        Ok(()) => Ok(trust),
        Err(reason) => {
            Err(CertificateError::Untrusted { path, authority: authority.to_owned(), reason, hint })
        }
    }
}

fn check_time(info: &CertificateInfo, path: &str, now: SystemTime) -> Result<(), CertificateError> {
    let (path, subject) = (path.to_owned(), shown_name(info));
    if now > info.not_after {
        return Err(CertificateError::Expired { path, subject, at: point(info.not_after) });
    }
    if now < info.not_before {
        return Err(CertificateError::NotYet { path, subject, at: point(info.not_before) });
    }
    Ok(())
}

fn verify_chain(
    chain: &[CertificateDer<'static>],
    roots: RootCertStore,
    name: &ServerName<'_>,
    now: SystemTime,
) -> Result<(), rustls::Error> {
    let Some((leaf, intermediates)) = chain.split_first() else {
        return Err(rustls::Error::NoCertificatesPresented);
    };
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), crypto_provider())
        .build()
        .map_err(|error| rustls::Error::General(error.to_string()))?;
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = UnixTime::since_unix_epoch(since);
    verifier.verify_server_cert(leaf, intermediates, name, &[], now).map(drop)
}

fn chain(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = CertificateDer::pem_slice_iter(pem.as_bytes());
    certificates.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

fn roots_of(certificates: &[CertificateDer<'static>]) -> Result<RootCertStore, rustls::Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate.clone())?;
    }
    Ok(roots)
}

fn is_self_signed(der: &[u8]) -> bool {
    let certificate = X509Certificate::from_der(der);
    certificate.is_ok_and(|(_, certificate)| certificate.issuer() == certificate.subject())
}

fn to_pem(der: &[u8]) -> String {
    use base64::Engine;
    /// Characters in a line of PEM.
    const LINE: usize = 64;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines = text.as_bytes().chunks(LINE).map(String::from_utf8_lossy);
    let body: Vec<_> = lines.collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", body.join("\n"))
}

/// Whether a name of a certificate is good for a host.
fn covers(name: &str, host: &str) -> bool {
    if name.eq_ignore_ascii_case(host) {
        return true;
    }
    let parent = host.split_once('.').map(|(_, parent)| parent);
    let wildcard = name.strip_prefix("*.");
    wildcard.zip(parent).is_some_and(|(name, parent)| name.eq_ignore_ascii_case(parent))
}

fn warn_of_end(info: &CertificateInfo, now: SystemTime) {
    let left = info.not_after.duration_since(now).unwrap_or_default();
    if left < WARNED_BEFORE_END {
        tracing::warn!(
            certificate = shown_name(info), expires_at = %point(info.not_after),
            "the serving certificate ends soon; replace its files, the server takes them without a restart"
        );
    }
}

fn shown_name(info: &CertificateInfo) -> String {
    match info.names.first() {
        Some(name) if info.common_name.is_empty() => name.clone(),
        _ => info.common_name.clone(),
    }
}

fn point(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
