//! Bearer tokens, from the `Authorization` header or, for browsers' WebSockets, from a subprotocol.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue, request};

use super::authenticated;
use crate::attributes::{Authenticator, InvalidCredential, UserInfo};

/// Longest token that is looked at.
pub const TOKEN_SIZE_MAX: usize = 16 * 1024;

/// A WebSocket subprotocol of this prefix carries a token, in base64url without padding.
const PROTOCOL_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// Whose a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenUser {
    pub user: UserInfo,
    /// Those of the wanted audiences that the token is meant for.
    pub audiences: Vec<String>,
}

/// Knows one kind of bearer token.
pub trait TokenAuthenticator: Send + Sync + 'static {
    /// `Ok(None)`: not a token of this kind. `Err`: of this kind, and does not hold. A token meant
    /// for none of `audiences` does not hold.
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Result<Option<TokenUser>, InvalidCredential>>;
}

/// Kinds of tokens, asked in order.
pub struct TokenChain(Vec<Arc<dyn TokenAuthenticator>>);

impl TokenChain {
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
                    found.user = authenticated(found.user);
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

/// Authenticates requests by their token.
pub struct BearerAuthenticator {
    tokens: Arc<dyn TokenAuthenticator>,
    audiences: Vec<String>,
}

impl BearerAuthenticator {
    /// `audiences`: what a token for this server is meant for.
    pub fn new(tokens: Arc<dyn TokenAuthenticator>, audiences: Vec<String>) -> Self {
        Self { tokens, audiences }
    }

    async fn identify(&self, headers: &HeaderMap) -> Result<Option<UserInfo>, InvalidCredential> {
        let Some(token) = bearer_token(headers)? else { return Ok(None) };
        match self.tokens.authenticate_token(&token, &self.audiences).await? {
            Some(found) => Ok(Some(found.user)),
            // Nobody knows this token, which is as bad as a wrong one.
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
/// When it is not clear what the token is: several headers, several tokens, a list, no ASCII, too
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
    checked(token).map(Some)
}

fn checked(token: &str) -> Result<String, InvalidCredential> {
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
        // The token is not a protocol to answer with, so there must be another one.
        [token] if others > 0 => {
            let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| InvalidCredential)?;
            let text = String::from_utf8(bytes).map_err(|_| InvalidCredential)?;
            checked(&text).map(Some)
        }
        _ => Err(InvalidCredential),
    }
}

fn is_websocket(headers: &HeaderMap) -> bool {
    let lists = |name, wanted: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|text| text.split(','))
            .any(|token| token.trim().eq_ignore_ascii_case(wanted))
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

/// Takes tokens out of the offered subprotocols.
pub(super) fn strip_protocol(headers: &mut HeaderMap) {
    if !protocols(headers).any(|protocol| protocol.starts_with(PROTOCOL_PREFIX)) {
        return;
    }
    let kept: Vec<&str> =
        protocols(headers).filter(|protocol| !protocol.starts_with(PROTOCOL_PREFIX)).collect();
    let kept = HeaderValue::from_str(&kept.join(", ")).ok().filter(|value| !value.is_empty());
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    if let Some(kept) = kept {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, kept);
    }
}
