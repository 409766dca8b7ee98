//! Whether a request that a browser sends with a cookie comes from a page of Drover.
//!
//! Browsers attach cookies to requests of *any* page that addresses the server: a page on a sibling
//! host or on another port counts as the same site, so `SameSite` does not prevent that. The origin
//! of the page does, which browsers report in `Origin` and `Sec-Fetch-Site` and no script can
//! change.
//!
//! Pure: the caller knows the origins of the server.

use http::{HeaderMap, HeaderName, Method, Request, Uri, header};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Scheme, host and port of a page or a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

impl Origin {
    /// The origin of a URL or of an `Origin` header; the port defaults to that of the scheme.
    /// `None` when the text names no host, as `null`.
    pub fn parse(text: &str) -> Option<Self> {
        let uri = text.parse::<Uri>().ok()?;
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let port = uri.port_u16().or(match scheme.as_str() {
            "https" => Some(443),
            "http" => Some(80),
            _ => None,
        })?;
        Some(Self { scheme, host: uri.host()?.to_ascii_lowercase(), port })
    }
}

/// What a request does that a page of another origin must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Browsers hide the response from pages of other origins.
    Read,
    /// The request may change something.
    Write,
    /// The response is a stream that the page can read, whatever its origin.
    Upgrade,
}

impl RequestKind {
    /// From method and headers. An upgrade is requested by `Upgrade` (HTTP/1.1) or extended CONNECT
    /// (HTTP/2).
    pub fn of<B>(request: &Request<B>) -> Self {
        if request.method() == Method::CONNECT || request.headers().contains_key(header::UPGRADE) {
            return Self::Upgrade;
        }
        match *request.method() {
            Method::GET | Method::HEAD | Method::OPTIONS => Self::Read,
            _ => Self::Write,
        }
    }
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CrossSite {
    #[error("a page of \"{0}\" may not use the login of this server")]
    Foreign(String),
    #[error("a page of another site may not use the login of this server (Sec-Fetch-Site: {0})")]
    OtherSite(String),
    #[error(
        "with a login cookie, a request must name the page that sends it (Origin or Sec-Fetch-Site); a program \
         sends its token as \"Authorization: Bearer …\" instead"
    )]
    Unnamed,
}

/// Checks a request whose identity comes from a cookie.
///
/// A read passes. A write passes when `Origin` and `Sec-Fetch-Site`, as far as they are present,
/// name a page of the server, and at least one is present. An upgrade needs `Origin`, which
/// browsers send with every WebSocket.
///
/// - `own`: origins under which browsers reach this server.
///
/// # Errors
/// Refuse the request; do not treat it as one without credentials.
pub fn check_cookie<B>(request: &Request<B>, own: &[Origin]) -> Result<(), CrossSite> {
    let kind = RequestKind::of(request);
    if kind == RequestKind::Read {
        return Ok(());
    }
    let named = check_page(request.headers(), own)?;
    match (kind, named) {
        (_, NamedPage::Nothing) | (RequestKind::Upgrade, NamedPage::BySite) => {
            Err(CrossSite::Unnamed)
        }
        _ => Ok(()),
    }
}

/// Checks a request without credentials that can start a login. It is refused when its headers name
/// a page of another origin, so that no page logs its visitor in as another user.
///
/// # Errors
/// Those of [`check_cookie`].
pub fn check_anonymous<B>(request: &Request<B>, own: &[Origin]) -> Result<(), CrossSite> {
    match RequestKind::of(request) {
        RequestKind::Read => Ok(()),
        RequestKind::Write | RequestKind::Upgrade => check_page(request.headers(), own).map(drop),
    }
}

/// How a request names the page that sends it, when that is a page of the server.
enum NamedPage {
    Nothing,
    BySite,
    ByOrigin,
}

fn check_page(headers: &HeaderMap, own: &[Origin]) -> Result<NamedPage, CrossSite> {
    let mut named = NamedPage::Nothing;
    for site in headers.get_all(SEC_FETCH_SITE) {
        if !matches!(site.as_bytes(), b"same-origin" | b"none") {
            return Err(CrossSite::OtherSite(lossy(site)));
        }
        named = NamedPage::BySite;
    }
    // All of them: a request with two does not come from a single page.
    for origin in headers.get_all(header::ORIGIN) {
        let parsed = origin.to_str().ok().and_then(Origin::parse);
        if !parsed.is_some_and(|origin| own.contains(&origin)) {
            return Err(CrossSite::Foreign(lossy(origin)));
        }
        named = NamedPage::ByOrigin;
    }
    Ok(named)
}

fn lossy(value: &http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}
