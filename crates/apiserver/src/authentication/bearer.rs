//! Bearer tokens, from the `Authorization` header or, for WebSockets of browsers, from a
//! subprotocol.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue, request};

use super::add_authenticated_group;
use crate::attributes::{Authenticator, InvalidCredential, UserInfo};

/// The size of a token, in bytes. Longer ones are invalid.
pub const TOKEN_SIZE_MAX: usize = 16 * 1024;

/// A WebSocket subprotocol with this prefix contains a token, in base64url without padding.
const PROTOCOL_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// The identity of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenUser {
    /// The authenticated identity.
    pub user: UserInfo,
    /// The requested audiences for which the token is valid.
    pub audiences: Vec<String>,
}

/// Authenticates one kind of bearer token.
pub trait TokenAuthenticator: Send + Sync + 'static {
    /// Authenticates a token for any of `audiences`. `Ok(None)` means that the token is not of this
    /// kind.
    ///
    /// # Errors
    /// The token is of this kind and invalid, or is valid for none of `audiences`.
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Result<Option<TokenUser>, InvalidCredential>>;
}

/// Several kinds of tokens, tried in order.
pub struct TokenChain(Vec<Arc<dyn TokenAuthenticator>>);

impl TokenChain {
    /// Creates the chain. The first kind that accepts a token decides; a token that one kind finds
    /// invalid may be accepted by another.
    pub fn new(kinds: Vec<Arc<dyn TokenAuthenticator>>) -> Self {
        Self(kinds)
    }

    async fn identify(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<Option<TokenUser>, InvalidCredential> {
        let mut invalid = false;
        for kind in &self.0 {
            match kind.authenticate_token(token, audiences).await {
                Ok(Some(mut found)) => {
                    found.user = add_authenticated_group(found.user);
                    return Ok(Some(found));
                }
                Ok(None) => {}
                Err(InvalidCredential) => invalid = true,
            }
        }
        if invalid { Err(InvalidCredential) } else { Ok(None) }
    }
}

impl TokenAuthenticator for TokenChain {
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Result<Option<TokenUser>, InvalidCredential>> {
        Box::pin(self.identify(token, audiences))
    }
}

/// Authenticates requests by their bearer token. An unknown token is invalid.
pub struct BearerAuthenticator {
    tokens: Arc<dyn TokenAuthenticator>,
    audiences: Vec<String>,
}

impl BearerAuthenticator {
    /// Creates the authenticator. `audiences` are those of this server, of which a token must have
    /// one.
    pub fn new(tokens: Arc<dyn TokenAuthenticator>, audiences: Vec<String>) -> Self {
        Self { tokens, audiences }
    }

    async fn identify(&self, headers: &HeaderMap) -> Result<Option<UserInfo>, InvalidCredential> {
        let Some(token) = bearer_token(headers)? else { return Ok(None) };
        match self.tokens.authenticate_token(&token, &self.audiences).await? {
            Some(found) => Ok(Some(found.user)),
            // An unknown token is treated like an invalid one.
            None => Err(InvalidCredential),
        }
    }
}

impl Authenticator for BearerAuthenticator {
    fn authenticate<'a>(
        &'a self,
        parts: &'a request::Parts,
    ) -> BoxFuture<'a, Result<Option<UserInfo>, InvalidCredential>> {
        Box::pin(self.identify(&parts.headers))
    }
}

/// The bearer token of a request; `None` when it has none.
///
/// # Errors
/// The token is ambiguous or malformed: several headers, several tokens, a list, no ASCII, or too
/// long.
pub fn bearer_token(headers: &HeaderMap) -> Result<Option<String>, InvalidCredential> {
    let of_header = header_token(headers)?;
    let of_protocol = protocol_token(headers)?;
    match (of_header, of_protocol) {
        (Some(_), Some(_)) => Err(InvalidCredential),
        (one, None) | (None, one) => Ok(one),
    }
}

fn header_token(headers: &HeaderMap) -> Result<Option<String>, InvalidCredential> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(InvalidCredential);
    }
    let value = value.to_str().map_err(|_| InvalidCredential)?.trim();
    let (scheme, token) = value.split_once([' ', '\t']).unwrap_or((value, ""));
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Ok(None);
    }
    validate_token(token).map(Some)
}

fn validate_token(token: &str) -> Result<String, InvalidCredential> {
    let bad = |c: char| c == ',' || c.is_whitespace() || c.is_control();
    if token.is_empty() || token.len() > TOKEN_SIZE_MAX || token.contains(bad) {
        return Err(InvalidCredential);
    }
    Ok(token.to_owned())
}

fn protocol_token(headers: &HeaderMap) -> Result<Option<String>, InvalidCredential> {
    if !is_websocket(headers) {
        return Ok(None);
    }
    let mut tokens = Vec::new();
    let mut others = 0;
    for protocol in protocols(headers) {
        match protocol.strip_prefix(PROTOCOL_PREFIX) {
            Some(token) => tokens.push(token.to_owned()),
            None => others += 1,
        }
    }
    match tokens.as_slice() {
        [] => Ok(None),
        // The server must not select the token as protocol, so there must be another one.
        [token] if others > 0 => {
            let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| InvalidCredential)?;
            let text = String::from_utf8(bytes).map_err(|_| InvalidCredential)?;
            validate_token(&text).map(Some)
        }
        _ => Err(InvalidCredential),
    }
}

fn is_websocket(headers: &HeaderMap) -> bool {
    let lists = |name, expected: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|text| text.split(','))
            .any(|token| token.trim().eq_ignore_ascii_case(expected))
    };
    lists(UPGRADE, "websocket") && lists(CONNECTION, "upgrade")
}

fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .filter(|protocol| !protocol.is_empty())
}

/// Removes tokens from the offered subprotocols.
pub(super) fn strip_protocol(headers: &mut HeaderMap) {
    if !protocols(headers).any(|protocol| protocol.starts_with(PROTOCOL_PREFIX)) {
        return;
    }
    let remaining: Vec<&str> =
        protocols(headers).filter(|protocol| !protocol.starts_with(PROTOCOL_PREFIX)).collect();
    let remaining =
        HeaderValue::from_str(&remaining.join(", ")).ok().filter(|value| !value.is_empty());
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    if let Some(remaining) = remaining {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, remaining);
    }
}
