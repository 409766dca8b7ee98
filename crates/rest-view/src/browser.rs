//! What is special about browsers: pages repeat the CSRF value of their login with each change.
//!
//! Only who came by a login cookie has such a value. Programs that send their token in a header are not asked for one:
//! no browser adds that header for a foreign page.

use http::{HeaderMap, HeaderValue, Method, header};

use crate::error::ApiError;
use crate::types::context::Caller;

pub(crate) fn is_browser(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    agent.is_some_and(|agent| agent.to_ascii_lowercase().contains("mozilla"))
}

/// The cookies to set, so that the caller's pages know the value.
///
/// `methods`: the one sent and the one it stands for; when both are GET nothing is changed.
///
/// # Errors
/// 422 for a change without the value.
pub(crate) fn check_csrf(
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
