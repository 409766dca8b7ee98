//! Identities that a trusted proxy has authenticated and passes in headers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, request};

use super::certificates::CertificateVerifier;
use crate::attributes::{Authenticator, ClientCertificates, InvalidCredential, UserInfo};
use crate::request::decode;

/// Prefix of all identity headers.
pub(super) const PREFIX: &str = "x-remote-";

const USER: &str = "x-remote-user";
const UID: &str = "x-remote-uid";
const GROUP: &str = "x-remote-group";
const EXTRA: &str = "x-remote-extra-";

/// Trusts `X-Remote-User`, `-Uid`, `-Group` and `-Extra-…` of a client with a certificate from the
/// proxies' own CA.
pub struct FrontProxyAuthenticator {
    verifier: Arc<CertificateVerifier>,
    names: Vec<String>,
}

impl FrontProxyAuthenticator {
    /// Creates the authenticator. `names` are the common names of the proxies; empty accepts any
    /// certificate of the CA.
    pub fn new(verifier: Arc<CertificateVerifier>, names: Vec<String>) -> Self {
        Self { verifier, names }
    }

    fn identify(&self, parts: &request::Parts) -> Result<Option<UserInfo>, InvalidCredential> {
        let headers = &parts.headers;
        // Without a certificate the headers are ignored.
        let (true, Some(chain)) =
            (headers.contains_key(USER), parts.extensions.get::<ClientCertificates>())
        else {
            return Ok(None);
        };
        let proxy = self.verifier.verify(chain, SystemTime::now())?;
        if !self.names.is_empty() && !self.names.contains(&proxy.name) {
            return Err(InvalidCredential);
        }
        let name = only(headers, USER)?;
        if name.is_empty() {
            return Ok(None);
        }
        Ok(Some(UserInfo {
            name,
            uid: only(headers, UID)?,
            groups: all(headers, GROUP)?,
            extra: extra(headers)?,
        }))
    }
}

impl Authenticator for FrontProxyAuthenticator {
    fn authenticate<'a>(
        &'a self,
        parts: &'a request::Parts,
    ) -> BoxFuture<'a, Result<Option<UserInfo>, InvalidCredential>> {
        Box::pin(std::future::ready(self.identify(parts)))
    }
}

fn text(value: &HeaderValue) -> Result<String, InvalidCredential> {
    String::from_utf8(value.as_bytes().to_vec()).map_err(|_| InvalidCredential)
}

/// The value of a header that may occur once; empty if it does not.
fn only(headers: &HeaderMap, name: &str) -> Result<String, InvalidCredential> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(text).transpose()?.unwrap_or_default();
    if values.next().is_some() { Err(InvalidCredential) } else { Ok(first) }
}

fn all(headers: &HeaderMap, name: &str) -> Result<Vec<String>, InvalidCredential> {
    headers.get_all(name).iter().map(text).collect()
}

fn extra(headers: &HeaderMap) -> Result<BTreeMap<String, Vec<String>>, InvalidCredential> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            extra.entry(decode(key)).or_default().push(text(value)?);
        }
    }
    Ok(extra)
}
