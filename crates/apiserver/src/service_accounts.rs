//! Service accounts: the identities that programs have, and their tokens.
//!
//! [`keys`] signs and verifies. [`claims`] is what a token says. [`authenticator`] turns a token
//! into an identity, and checks that what the token speaks of still exists. [`request`] issues
//! tokens on demand, [`legacy`] those that live in a Secret, whose uses [`tracking`] writes down.

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

/// Name prefix of the users that service accounts are.
pub const USER_PREFIX: &str = "system:serviceaccount:";

/// Name of the account that every namespace has.
pub const DEFAULT_ACCOUNT: &str = "default";

/// The user that a service account is.
pub fn user_name(namespace: &str, name: &str) -> String {
    format!("{USER_PREFIX}{namespace}:{name}")
}

/// Namespace and name of the service account that is this user.
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
            let found = self.get_at(&resource, namespace, name, crate::registry::Version::Latest);
            Some(found.await.ok()?.value())
        })
    }
}

/// For what the registry itself holds: a strong reference there would keep it alive for ever.
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
}

#[cfg(test)]
mod tests;
