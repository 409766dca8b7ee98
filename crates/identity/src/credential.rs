//! What a request presents: `Authorization: Bearer name:key`, `Basic base64(name:key)`, or the
//! cookie `R_SESS`.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::browser::cookies;
use crate::token::TokenKey;

/// The cookie of a browser's login.
pub const COOKIE_NAME: &str = "R_SESS";
/// Longest credential that is parsed, in bytes.
const CREDENTIAL_SIZE_MAX: usize = 4096;

/// How a token was presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenSource {
    Header,
    /// Browsers send it with every request.
    Cookie,
}

/// A token of Drover, not verified yet.
#[derive(Clone, Debug)]
pub struct Presented {
    pub token: TokenKey,
    pub source: TokenSource,
}

/// The credential in the headers of a request.
#[derive(Clone, Debug)]
pub enum PresentedCredential {
    Nothing,
    /// A credential that is no token of Drover; another authenticator may accept it.
    Foreign,
    /// More than one credential: which one applies is undefined.
    Ambiguous,
    /// A token of Drover.
    Token(Presented),
}

/// Reads the credential of a request. The cookie counts only without an `Authorization` header.
pub fn read_credential(headers: &HeaderMap) -> PresentedCredential {
    let mut authorizations = headers.get_all(AUTHORIZATION).iter();
    match (authorizations.next(), authorizations.next()) {
        (None, _) => from_cookies(headers),
        (Some(_), Some(_)) => PresentedCredential::Ambiguous,
        (Some(value), None) => {
            let text = value.to_str().unwrap_or_default();
            if text.len() > CREDENTIAL_SIZE_MAX {
                return PresentedCredential::Foreign;
            }
            let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text, ""));
            let token = match scheme.to_ascii_lowercase().as_str() {
                "bearer" => TokenKey::parse(rest.trim()),
                "basic" => decode_basic(rest.trim()).and_then(|text| TokenKey::parse(&text)),
                _ => None,
            };
            token.map_or(PresentedCredential::Foreign, |token| {
                PresentedCredential::Token(Presented { token, source: TokenSource::Header })
            })
        }
    }
}

fn decode_basic(text: &str) -> Option<String> {
    let engines = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
    let bytes = engines.iter().find_map(|engine| engine.decode(text).ok())?;
    String::from_utf8(bytes).ok()
}

fn from_cookies(headers: &HeaderMap) -> PresentedCredential {
    let mut values: Vec<&str> = cookies(headers, COOKIE_NAME).collect();
    // The same cookie for two paths is common, and harmless when both have the same value.
    values.dedup();
    match values.as_slice() {
        [] => PresentedCredential::Nothing,
        [value] if value.len() <= CREDENTIAL_SIZE_MAX => TokenKey::parse(value)
            .map_or(PresentedCredential::Foreign, |token| {
                PresentedCredential::Token(Presented { token, source: TokenSource::Cookie })
            }),
        [_] => PresentedCredential::Foreign,
        _ => PresentedCredential::Ambiguous,
    }
}
