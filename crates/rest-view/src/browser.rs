//! Cross-site request forgery: pages repeat the CSRF value of their login with each change.
//!
//! Only callers with a login cookie have such a value. Programs that send their token in a header
//! need none: no browser adds that header for a page of another origin.

use http::{HeaderMap, HeaderValue, Method, header};

use crate::error::ApiError;
use crate::types::context::Caller;

pub(crate) fn is_browser(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    agent.is_some_and(|agent| agent.to_ascii_lowercase().contains("mozilla"))
}

/// Checks the CSRF value of a change. Returns the cookies to set, so that pages of the caller know
/// the value.
///
/// `methods`: the method that was sent and the effective one; when both are GET, nothing is
/// changed.
///
/// # Errors
/// 422 for a change without the value.
pub fn check_csrf(
    headers: &HeaderMap,
    caller: &Caller,
    methods: [&Method; 2],
) -> Result<Vec<HeaderValue>, ApiError> {
    let Some(csrf) = &caller.csrf else { return Ok(Vec::new()) };
    let is_read = methods.iter().all(|method| **method == Method::GET);
    if is_read || csrf.is_repeated(headers) {
        return Ok(csrf.missing_cookies(headers));
    }
    Err(ApiError::new(
        422,
        "InvalidCSRFToken",
        "the header X-API-CSRF must repeat the value of the cookie CSRF of this login; reload the \
         page",
    ))
}
