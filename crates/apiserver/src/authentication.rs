//! Authentication: maps the credentials of a request to an identity.
//!
//! [`UnionAuthenticator`] tries its members in order. [`certificates`] handles client certificates
//! and [`bearer`] bearer tokens, whose kinds implement [`TokenAuthenticator`]: static files,
//! service accounts, [`bootstrap_tokens`], [`oidc`] and [`token_webhook`]. [`jwt`] verifies
//! signatures. [`front_proxy`] handles the identity in the headers of a trusted proxy.
//! Impersonation follows in [`crate::impersonation`].

pub mod bearer;
pub mod bootstrap_tokens;
pub mod certificates;
mod core_objects;
pub mod front_proxy;
pub mod jwt;
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

/// Tries several authenticators in order; the first identity wins. An invalid credential is an
/// error unless another one is valid, even where anonymous requests are allowed.
pub struct UnionAuthenticator {
    members: Vec<Arc<dyn Authenticator>>,
    anonymous: bool,
}

impl UnionAuthenticator {
    /// Creates the union. If `anonymous`, requests without any credential are `system:anonymous`.
    pub fn new(members: Vec<Arc<dyn Authenticator>>, anonymous: bool) -> Self {
        Self { members, anonymous }
    }

    async fn identify(
        &self,
        parts: &request::Parts,
    ) -> Result<Option<UserInfo>, InvalidCredential> {
        // It is unknown which of two headers a proxy on the way has checked.
        if parts.headers.get_all(AUTHORIZATION).iter().nth(1).is_some() {
            return Err(InvalidCredential);
        }
        let mut invalid = false;
        for member in &self.members {
            match member.authenticate(parts).await {
                Ok(Some(user)) => return Ok(Some(add_authenticated_group(user))),
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

/// Adds the group of authenticated users, unless the identity is the anonymous one.
pub(crate) fn add_authenticated_group(mut user: UserInfo) -> UserInfo {
    if user.name != USER_ANONYMOUS && !user.in_group(GROUP_AUTHENTICATED) {
        user.groups.push(GROUP_AUTHENTICATED.to_owned());
    }
    user
}

/// Removes all credentials and identity headers after authentication, so that nothing behind this
/// point can use, log or forward them. Removes the names of these headers from `Connection`, too.
/// Impersonation headers remain for [`crate::impersonation`].
pub fn strip_credentials(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    headers.remove(http::header::PROXY_AUTHORIZATION);
    remove_named(headers, |name| name.starts_with(front_proxy::PREFIX));
    bearer::strip_protocol(headers);
}

/// Removes all headers whose lower-case name `matches` accepts, and their names from `Connection`.
pub(crate) fn remove_named(headers: &mut HeaderMap, matches: impl Fn(&str) -> bool) {
    let names: Vec<HeaderName> =
        headers.keys().filter(|name| matches(name.as_str())).cloned().collect();
    for name in names {
        headers.remove(name);
    }
    let listed: Vec<HeaderValue> = headers.get_all(CONNECTION).iter().cloned().collect();
    let is_removed = |token: &str| matches(&token.trim().to_ascii_lowercase());
    let tokens = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or_default().to_owned();
        text.split(',').map(|token| token.trim().to_owned()).collect::<Vec<_>>()
    };
    if !listed.iter().any(|value| tokens(value).iter().any(|token| is_removed(token))) {
        return;
    }
    let remaining: Vec<String> =
        listed.iter().flat_map(tokens).filter(|t| !t.is_empty() && !is_removed(t)).collect();
    headers.remove(CONNECTION);
    if let (false, Ok(value)) = (remaining.is_empty(), HeaderValue::from_str(&remaining.join(", ")))
    {
        headers.insert(CONNECTION, value);
    }
}

#[cfg(test)]
mod tests;
