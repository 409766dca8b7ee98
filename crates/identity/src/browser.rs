//! A login in a browser: the cookie that holds its token, and the value that its pages must repeat.
//!
//! `CSRF` is derived from the token (HMAC-SHA-256), so a value that another page put into the
//! browser is never the right one. Pages read it from `__Host-CSRF`, which no other host can set,
//! or from `CSRF`, the name that existing clients know.

use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderValue, header};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::credential::COOKIE_NAME;
use crate::secret::Secret;
use crate::token::TokenKey;

/// Cookies that carry the CSRF value.
const CSRF_COOKIES: [&str; 2] = ["__Host-CSRF", "CSRF"];
/// The header in which pages repeat the value.
pub const CSRF_HEADER: &str = "x-api-csrf";
/// Separates this use of the token's key from others.
const CSRF_PURPOSE: &[u8] = b"csrf";
/// Bytes of the MAC that are used: 128 bits, 32 hex digits on the wire.
const CSRF_BYTES: usize = 16;

/// The value that pages of one login must repeat with each change.
#[derive(Clone, Debug)]
pub struct CsrfToken(Secret);

impl CsrfToken {
    /// The value of the login with this key. The key cannot be derived from it.
    pub fn of(key: &TokenKey) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(key.expose().as_bytes())
            .expect("HMAC takes keys of any length");
        mac.update(CSRF_PURPOSE);
        let bytes = mac.finalize().into_bytes();
        let hex =
            bytes.iter().take(CSRF_BYTES).map(|byte| format!("{byte:02x}")).collect::<String>();
        Self(Secret::new(hex))
    }

    /// Whether the request repeats it in [`CSRF_HEADER`], exactly once.
    pub fn is_repeated(&self, headers: &HeaderMap) -> bool {
        let mut sent = headers.get_all(CSRF_HEADER).iter();
        match (sent.next(), sent.next()) {
            (Some(sent), None) => self.0.expose().as_bytes().ct_eq(sent.as_bytes()).into(),
            _ => false,
        }
    }

    /// The cookies that give the value to pages, unless the request shows that they have it.
    pub fn missing_cookies(&self, headers: &HeaderMap) -> Vec<HeaderValue> {
        let has = |name: &str| cookies(headers, name).any(|value| value == self.0.expose());
        CSRF_COOKIES.into_iter().filter(|name| !has(name)).map(|name| self.cookie(name)).collect()
    }

    fn cookie(&self, name: &str) -> HeaderValue {
        let cookie = format!("{name}={}; Path=/; Secure; SameSite=Lax", self.0.expose());
        HeaderValue::from_str(&cookie).expect("hex digits are valid in a header")
    }
}

/// The cookies of a new login. Scripts cannot read the one with the token.
pub fn login_cookies(key: &TokenKey) -> Vec<HeaderValue> {
    let text = format!("{COOKIE_NAME}={}; Path=/; Secure; HttpOnly; SameSite=Lax", key.expose());
    let mut login = HeaderValue::from_str(&text).expect("tokens are printable");
    login.set_sensitive(true);
    let csrf = CsrfToken::of(key);
    [login].into_iter().chain(CSRF_COOKIES.map(|name| csrf.cookie(name))).collect()
}

/// The cookies that make a browser delete a login.
pub fn logout_cookies() -> Vec<HeaderValue> {
    let clear = |name: &str| format!("{name}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax");
    let names = [COOKIE_NAME].into_iter().chain(CSRF_COOKIES);
    names.map(|name| HeaderValue::from_str(&clear(name)).expect("it is ASCII")).collect()
}

/// Values of a cookie; a name may occur more than once.
pub fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|value| value.split(';')).filter_map(|p| p.trim().split_once('='));
    pairs.filter(move |(key, _)| *key == name).map(|(_, value)| value)
}
