//! Whether a request that a browser sends with a cookie was made by one of our own pages.
//!
//! Browsers attach cookies to requests of *any* page that addresses us: a page on a sibling host or on another port
//! counts as the same site, so `SameSite` does not stop it. What stops it is the origin of the page, which browsers
//! report in `Origin` and `Sec-Fetch-Site` and no script can change.
//!
//! Pure: what our own origins are is the caller's knowledge.

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
    /// Of a URL or the value of an `Origin` header; the port defaults to the scheme's. `None` when it names no host, as
    /// `null` does not.
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

/// What a request does that a foreign page must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The browser keeps the response from foreign pages.
    Read,
    Write,
    /// The response is a stream that the page can read, whatever its origin.
    Upgrade,
}

impl Kind {
    /// By method and headers. An upgrade is asked for by `Upgrade` (HTTP/1.1) or extended CONNECT (HTTP/2).
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
/// A read passes. A write passes when each of `Origin` and `Sec-Fetch-Site` that is there names our own page, and one
/// is there. An upgrade needs `Origin`, which browsers send with every WebSocket.
///
/// - `own`: origins under which browsers reach this server.
///
/// # Errors
/// The request must be refused, not treated as one without credentials.
pub fn check_cookie<B>(request: &Request<B>, own: &[Origin]) -> Result<(), CrossSite> {
    let kind = Kind::of(request);
    if kind == Kind::Read {
        return Ok(());
    }
    let named = check_page(request.headers(), own)?;
    match (kind, named) {
        (_, Named::Nothing) | (Kind::Upgrade, Named::BySite) => Err(CrossSite::Unnamed),
        _ => Ok(()),
    }
}

/// Checks a request without credentials that can start a login: refused when it says that a foreign page sends it, so
/// that no page logs its visitor in as somebody else.
///
/// # Errors
/// As [`check_cookie`].
pub fn check_anonymous<B>(request: &Request<B>, own: &[Origin]) -> Result<(), CrossSite> {
    match Kind::of(request) {
        Kind::Read => Ok(()),
        Kind::Write | Kind::Upgrade => check_page(request.headers(), own).map(drop),
    }
}

/// How a request names the page that sends it, when that is one of ours.
enum Named {
    Nothing,
    BySite,
    ByOrigin,
}

fn check_page(headers: &HeaderMap, own: &[Origin]) -> Result<Named, CrossSite> {
    let mut named = Named::Nothing;
    for site in headers.get_all(SEC_FETCH_SITE) {
        if !matches!(site.as_bytes(), b"same-origin" | b"none") {
            return Err(CrossSite::OtherSite(lossy(site)));
        }
        named = Named::BySite;
    }
    // All of them: a request with two is nobody's page's.
    for origin in headers.get_all(header::ORIGIN) {
        let parsed = origin.to_str().ok().and_then(Origin::parse);
        if !parsed.is_some_and(|origin| own.contains(&origin)) {
            return Err(CrossSite::Foreign(lossy(origin)));
        }
        named = Named::ByOrigin;
    }
    Ok(named)
}

fn lossy(value: &http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}
