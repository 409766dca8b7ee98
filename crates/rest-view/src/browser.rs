//! The cross-site check for browsers: a cookie whose value every changing request must repeat.
//!
//! Only browsers are asked, since only they send a login cookie on behalf of foreign pages.

use http::{HeaderMap, HeaderValue, Method, Uri, header};

use crate::error::ApiError;
use crate::urls::Urls;

const COOKIE: &str = "CSRF";
const HEADER: &str = "x-api-csrf";

/// What the answer must carry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Nothing,
    SetCookie(HeaderValue),
}

pub(crate) fn is_browser(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    agent.is_some_and(|agent| agent.to_ascii_lowercase().contains("mozilla"))
}

/// `methods`: the one sent and the one it is taken for; both must be GET for the check to be off.
pub(crate) fn check(
    headers: &HeaderMap,
    query: &[(String, String)],
    methods: [&Method; 2],
) -> Result<Verdict, ApiError> {
    if !is_browser(headers) {
        return Ok(Verdict::Nothing);
    }
    let cookie = cookie(headers).filter(|value| !value.is_empty());
    if methods.iter().any(|method| **method != Method::GET) {
        let sent = headers.get(HEADER).and_then(|value| value.to_str().ok());
        let in_query = query.iter().find(|(key, _)| key == COOKIE).map(|(_, value)| value.as_str());
        return match (cookie, sent.or(in_query)) {
            (Some(cookie), Some(sent)) if cookie == sent => Ok(Verdict::Nothing),
            _ => Err(ApiError::new(
                422,
                "InvalidCSRFToken",
                "the header X-API-CSRF must repeat the value of the cookie CSRF",
            )),
        };
    }
    if cookie.is_some() {
        return Ok(Verdict::Nothing);
    }
    let value: String = rand::random::<[u8; 16]>().iter().map(|b| format!("{b:02x}")).collect();
    let cookie = format!("{COOKIE}={value}; Path=/; Secure");
    Ok(HeaderValue::from_str(&cookie).map_or(Verdict::Nothing, Verdict::SetCookie))
}

/// For requests that browsers send across sites with the login cookie and without a CSRF header: a
/// page that opens a WebSocket must come from the host it connects to.
///
/// A request with an `Authorization` header is not judged: no browser sends one for a foreign page.
///
/// # Errors
/// 403 when the page is from elsewhere.
pub(crate) fn check_origin(headers: &HeaderMap, urls: &Urls) -> Result<(), ApiError> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(()) };
    if headers.contains_key(header::AUTHORIZATION) {
        return Ok(());
    }
    let parse = |text: &str| text.parse::<Uri>().ok().and_then(|uri| site(&uri));
    let own = parse(urls.base());
    let from = origin.to_str().ok().and_then(parse);
    if own.is_some() && own == from && origins.next().is_none() {
        return Ok(());
    }
    let shown = String::from_utf8_lossy(origin.as_bytes());
    Err(ApiError::permission_denied(format!(
        "a page of \"{shown}\" may not use the login of \"{}\"; a proxy in front of this server \
         must pass on the Host header",
        urls.base()
    )))
}

/// Scheme, host and port.
fn site(uri: &Uri) -> Option<(String, String, u16)> {
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let port = uri.port_u16().or(match scheme.as_str() {
        "https" => Some(443),
        "http" => Some(80),
        _ => None,
    })?;
    Some((scheme, uri.host()?.to_ascii_lowercase(), port))
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, _)| *name == COOKIE)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_opened_by_pages_of_the_same_site_only() {
        let own = Urls::new("https://drover.example/behind/a/proxy");
        let cases: &[(&[&str], bool)] = &[
            (&[], true),
            (&["https://drover.example"], true),
            (&["https://DROVER.example:443"], true),
            (&["https://evil.example"], false),
            (&["https://drover.example.evil.example"], false),
            (&["https://drover.example:8443"], false),
            (&["http://drover.example"], false),
            (&["null"], false),
            (&[""], false),
            (&["https://drover.example", "https://evil.example"], false),
        ];
        for (origins, allowed) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::from_static("R_SESS=token-a:b"));
            for origin in *origins {
                headers.append(header::ORIGIN, HeaderValue::from_static(origin));
            }
            let verdict = check_origin(&headers, &own);
            assert_eq!(verdict.is_ok(), *allowed, "{origins:?} {verdict:?}");
            assert!(verdict.err().is_none_or(|error| error.status == 403));
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer token-a:b"));
            assert!(check_origin(&headers, &own).is_ok(), "{origins:?} with a header of its own");
        }
    }
}
