//! Who asks: from credentials of a request to an identity.
//!
//! [`UnionAuthenticator`] asks its members in order. A client certificate is [`certificates`], a
//! bearer token [`bearer`] (a static file, a service account, whatever else implements
//! [`TokenAuthenticator`]: [`bootstrap_tokens`], [`oidc`], [`token_webhook`]), an identity told by a trusted proxy [`front_proxy`]. Whom that identity
//! stands in for is [`crate::impersonation`].

pub mod bearer;
pub mod bootstrap_tokens;
pub mod certificates;
mod core_objects;
pub mod front_proxy;
pub mod oidc;
mod remote;
pub mod static_tokens;
pub mod token_webhook;

use std::sync::Arc;

use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, CONNECTION};
use http::{HeaderMap, HeaderName, HeaderValue, request};

pub use bearer::{BearerAuthenticator, TokenAuthenticator, TokenChain, TokenUser};
pub use bootstrap_tokens::BootstrapTokens;
pub use certificates::{CertificateVerifier, X509Authenticator};
pub use core_objects::CoreObjects;
pub use front_proxy::FrontProxyAuthenticator;
pub use oidc::{OidcConfig, OidcTokens};
pub use static_tokens::StaticTokens;
pub use token_webhook::{ReviewVersion, TokenWebhook};

use crate::attributes::{
    Authenticator, GROUP_AUTHENTICATED, InvalidCredential, USER_ANONYMOUS, UserInfo,
};

/// Asks several authenticators in order; the first identity wins. A credential that does not hold
/// is an error only if no other one does, but then it is one even where strangers are let in.
pub struct UnionAuthenticator {
    members: Vec<Arc<dyn Authenticator>>,
    anonymous: bool,
}

impl UnionAuthenticator {
    /// `anonymous`: requests without any credential are `system:anonymous`.
    pub fn new(members: Vec<Arc<dyn Authenticator>>, anonymous: bool) -> Self {
        Self { members, anonymous }
    }

    async fn identify(
        &self,
        parts: &request::Parts,
    ) -> Result<Option<UserInfo>, InvalidCredential> {
        // Which of two a proxy on the way has looked at, nobody knows.
        if parts.headers.get_all(AUTHORIZATION).iter().nth(1).is_some() {
            return Err(InvalidCredential);
        }
        let mut invalid = false;
        for member in &self.members {
            match member.authenticate(parts).await {
                Ok(Some(user)) => return Ok(Some(authenticated(user))),
                Ok(None) => {}
                Err(InvalidCredential) => invalid = true,
            }
        }
        if invalid {
            return Err(InvalidCredential);
        }
        Ok(self.anonymous.then(UserInfo::anonymous))
    }
}

impl Authenticator for UnionAuthenticator {
    fn authenticate<'a>(
        &'a self,
        parts: &'a request::Parts,
    ) -> BoxFuture<'a, Result<Option<UserInfo>, InvalidCredential>> {
        Box::pin(self.identify(parts))
    }
}

/// The identity, in the group that all but the anonymous one are in.
pub(crate) fn authenticated(mut user: UserInfo) -> UserInfo {
    if user.name != USER_ANONYMOUS && !user.in_group(GROUP_AUTHENTICATED) {
        user.groups.push(GROUP_AUTHENTICATED.to_owned());
    }
    user
}

/// Takes all credentials and all identities that a proxy may have told out of the headers, once
/// they were looked at: nothing behind this point can take them for its own, log them, or pass them
/// on. Names of such headers go out of `Connection` too. Impersonation headers stay for
/// [`crate::impersonation`].
pub fn strip_credentials(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    headers.remove(http::header::PROXY_AUTHORIZATION);
    remove_named(headers, |name| name.starts_with(front_proxy::PREFIX));
    bearer::strip_protocol(headers);
}

/// Removes all headers whose lower-case name `doomed` picks, and their names from `Connection`.
pub(crate) fn remove_named(headers: &mut HeaderMap, doomed: impl Fn(&str) -> bool) {
    let names: Vec<HeaderName> =
        headers.keys().filter(|name| doomed(name.as_str())).cloned().collect();
    for name in names {
        headers.remove(name);
    }
    let listed: Vec<HeaderValue> = headers.get_all(CONNECTION).iter().cloned().collect();
    let is_doomed = |token: &str| doomed(&token.trim().to_ascii_lowercase());
    let tokens = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or_default().to_owned();
        text.split(',').map(|token| token.trim().to_owned()).collect::<Vec<_>>()
    };
    if !listed.iter().any(|value| tokens(value).iter().any(|token| is_doomed(token))) {
        return;
    }
    let kept: Vec<String> =
        listed.iter().flat_map(tokens).filter(|t| !t.is_empty() && !is_doomed(t)).collect();
    headers.remove(CONNECTION);
    if let (false, Ok(value)) = (kept.is_empty(), HeaderValue::from_str(&kept.join(", "))) {
        headers.insert(CONNECTION, value);
    }
}

#[cfg(test)]
mod tests;
