//! Service accounts: the identities of programs, and their tokens.
//!
//! [`keys`] signs and verifies; [`claims`] are the contents of a token. [`authenticator`] returns
//! the identity of a token, and checks that the objects it is bound to still exist. [`request`]
//! issues tokens on demand; [`legacy`] issues tokens that are stored in a Secret, and [`tracking`]
//! records their use.

pub mod authenticator;
pub mod claims;
pub mod keys;
pub mod legacy;
pub mod request;
pub mod tracking;

use futures::future::BoxFuture;
use serde_json::Value;

pub use authenticator::ServiceAccountTokens;
pub use keys::{SigningKey, VerifyKeys};
pub use request::TokenRequests;

use crate::authentication::CoreObjects;
use crate::registry::ReadVersion;

/// Prefix of the user names of service accounts.
pub const USER_PREFIX: &str = "system:serviceaccount:";

/// Name of the account that exists in every namespace.
pub const DEFAULT_ACCOUNT: &str = "default";

/// The user name of a service account.
pub fn user_name(namespace: &str, name: &str) -> String {
    format!("{USER_PREFIX}{namespace}:{name}")
}

/// Namespace and name of the service account with this user name; `None` for other users.
pub fn parse_user_name(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(USER_PREFIX)?.split_once(':')?;
    let whole = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
    whole.then_some((namespace, name))
}

/// The groups that all service accounts of a namespace are in.
pub fn groups(namespace: &str) -> [String; 2] {
    ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

impl CoreObjects for std::sync::Arc<crate::Registry> {
    fn get<'a>(
        &'a self,
        plural: &'a str,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async move {
            let resource = self.find("", plural)?;
            let found = self.get_at(&resource, namespace, name, ReadVersion::Latest);
            Some(found.await.ok()?.value())
        })
    }

    /// From the facts that are cached beside the object, which is not parsed: it happens with each
    /// request of a token.
    fn is_alive<'a>(
        &'a self,
        plural: &'a str,
        namespace: &'a str,
        name: &'a str,
        uid: &'a str,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let Some(resource) = self.find("", plural) else { return false };
            let found = self.get_at(&resource, namespace, name, ReadVersion::Latest).await;
            found.is_ok_and(|object| &*object.uid == uid && !object.is_terminating)
        })
    }
}

/// For components that the registry itself owns: a strong reference there would keep it alive for
/// ever.
impl CoreObjects for std::sync::Weak<crate::Registry> {
    fn get<'a>(
        &'a self,
        plural: &'a str,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async move {
            let registry = self.upgrade()?;
            CoreObjects::get(&registry, plural, namespace, name).await
        })
    }

    fn is_alive<'a>(
        &'a self,
        plural: &'a str,
        namespace: &'a str,
        name: &'a str,
        uid: &'a str,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let Some(registry) = self.upgrade() else { return false };
            registry.is_alive(plural, namespace, name, uid).await
        })
    }
}

#[cfg(test)]
mod tests;
