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
            let found =
                self.get_at(&resource, namespace, name, crate::registry::ReadVersion::Latest);
            Some(found.await.ok()?.value())
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
}

#[cfg(test)]
mod tests;
