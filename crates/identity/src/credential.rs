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
/// Longest credential that is looked at, in bytes.
const CREDENTIAL_SIZE_MAX: usize = 4096;

/// How a token was presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Header,
    /// Sent by browsers unasked.
    Cookie,
}

/// A token of ours, not yet verified.
#[derive(Clone, Debug)]
pub struct Presented {
    pub token: TokenKey,
    pub source: Source,
}

/// What the headers hold.
#[derive(Clone, Debug)]
pub enum Found {
    Nothing,
    /// A credential that has not the form of ours; another authenticator may know it.
    Foreign,
    /// More than one credential: nobody can say which counts.
    Ambiguous,
    Ours(Presented),
}

/// Reads the credential. The cookie counts only without an `Authorization` header.
pub fn presented(headers: &HeaderMap) -> Found {
    let mut authorizations = headers.get_all(AUTHORIZATION).iter();
    match (authorizations.next(), authorizations.next()) {
        (None, _) => from_cookies(headers),
        (Some(_), Some(_)) => Found::Ambiguous,
        (Some(value), None) => {
            let text = value.to_str().unwrap_or_default();
            if text.len() > CREDENTIAL_SIZE_MAX {
                return Found::Foreign;
            }
            let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text, ""));
            let token = match scheme.to_ascii_lowercase().as_str() {
                "bearer" => TokenKey::parse(rest.trim()),
                "basic" => decode_basic(rest.trim()).and_then(|text| TokenKey::parse(&text)),
                _ => None,
            };
            token.map_or(Found::Foreign, |token| {
                Found::Ours(Presented { token, source: Source::Header })
            })
        }
    }
}

fn decode_basic(text: &str) -> Option<String> {
    let engines = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
    let bytes = engines.iter().find_map(|engine| engine.decode(text).ok())?;
    String::from_utf8(bytes).ok()
}

fn from_cookies(headers: &HeaderMap) -> Found {
    let mut values: Vec<&str> = cookies(headers, COOKIE_NAME).collect();
    // The same cookie of two paths is usual, and harmless when both say the same.
    values.dedup();
    match values.as_slice() {
        [] => Found::Nothing,
        [value] if value.len() <= CREDENTIAL_SIZE_MAX => TokenKey::parse(value)
            .map_or(Found::Foreign, |token| {
                Found::Ours(Presented { token, source: Source::Cookie })
            }),
        [_] => Found::Foreign,
        _ => Found::Ambiguous,
    }
}
