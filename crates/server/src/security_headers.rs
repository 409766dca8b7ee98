//! Response headers for browsers that hold for everything we serve: HTTPS only, and no guessing of
//! content types.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Request, header};
use pki::ServingCertificate;

/// A year, as browsers' preload lists require. Subdomains are not ours to decide about.
const STRICT_TRANSPORT: HeaderValue = HeaderValue::from_static("max-age=31536000");
const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");

/// Knows when browsers may be required to reach this host by HTTPS only: with a certificate of a
/// private authority, such as our own, that would take away the way past the browser's warning.
pub struct SecurityHeaders {
    certificate: Arc<ServingCertificate>,
    authority_pem: Option<String>,
}

/// Those of one response.
pub struct Selected {
    is_strict: bool,
}

impl SecurityHeaders {
    /// `authority_pem`: a private authority, under whose certificates HSTS would lock people out;
    /// none for a public one.
    pub fn new(certificate: Arc<ServingCertificate>, authority_pem: Option<String>) -> Self {
        Self { certificate, authority_pem }
    }

    /// Forwarded headers of those who are not trusted must be removed before.
    pub fn of<B>(&self, request: &Request<B>) -> Selected {
        let proto = request.headers().get("x-forwarded-proto");
        let behind_tls = proto.is_some_and(|proto| proto.as_bytes() == b"https");
        let private = self.authority_pem.as_ref();
        let is_public = private.is_none_or(|pem| !self.certificate.is_issued_by(pem));
        Selected { is_strict: behind_tls || is_public }
    }
}

impl Selected {
    /// Adds the headers to those of a response, in place of what it says itself.
    pub fn set(&self, headers: &mut HeaderMap) {
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
        if self.is_strict {
            headers.insert(header::STRICT_TRANSPORT_SECURITY, STRICT_TRANSPORT);
        }
    }
}
