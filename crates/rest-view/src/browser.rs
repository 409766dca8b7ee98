//! The cross-site check for browsers: a cookie whose value every changing request must repeat.
//!
//! Only browsers are asked, since only they send a login cookie on behalf of foreign pages.

use http::{HeaderMap, HeaderValue, Method, header};

use crate::error::ApiError;

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
