//! Signed JSON Web Tokens (RFC 7515, RFC 7519): decoding, and verification of their signatures.
//!
//! The authenticators choose the keys and the algorithm, and check the claims. Their times are
//! compared with a clock that is an argument, so the checks of the library are off.

use std::collections::HashSet;

use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde_json::{Map, Value};

use super::bearer::TOKEN_SIZE_MAX;

/// The claims of a token.
pub type TokenClaims = Map<String, Value>;

/// A token whose signature has not been verified yet.
///
/// Invariant: the text has [`TOKEN_SIZE_MAX`] bytes at most, and the header has no `crit`.
pub struct UnverifiedToken<'t> {
    text: &'t str,
    header: Header,
}

impl<'t> UnverifiedToken<'t> {
    /// Decodes the header of a token. `None` for other texts, for longer ones than
    /// [`TOKEN_SIZE_MAX`], and for headers with `crit`: it lists extensions without which a token
    /// must be rejected, and none is implemented.
    pub fn parse(text: &'t str) -> Option<Self> {
        if text.len() > TOKEN_SIZE_MAX {
            return None;
        }
        let header = decode_header(text).ok()?;
        header.crit.is_none().then_some(Self { text, header })
    }

    /// The algorithm that the header names. It must not choose how the token is verified.
    pub(crate) fn algorithm(&self) -> Algorithm {
        self.header.alg
    }

    /// The ID of the key that the header names; empty when it names none.
    pub(crate) fn key_id(&self) -> &str {
        self.header.kid.as_deref().unwrap_or_default()
    }

    /// The claims as sent, to find the provider whose keys verify the token. Anybody can have
    /// written them.
    pub(crate) fn unverified_claims(&self) -> Option<TokenClaims> {
        insecure_decode_claims(self.text).ok()
    }

    /// The claims, if the token is signed by `key` with `algorithm` and names this algorithm.
    /// The claims are not checked.
    pub(crate) fn verify(&self, algorithm: Algorithm, key: &DecodingKey) -> Option<TokenClaims> {
        let validation = Validation {
            required_spec_claims: HashSet::new(),
            validate_exp: false,
            validate_nbf: false,
            validate_aud: false,
            ..Validation::new(algorithm)
        };
        Some(decode(self.text, key, &validation).ok()?.claims)
    }
}

#[cfg(test)]
mod tests;
