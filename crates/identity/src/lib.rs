//! Passwords, tokens, and the user behind a request. The crate knows no kind and has no state but
//! failed attempts.
//!
//! [`credential`] reads what a request presents, [`token`] creates and compares token keys,
//! [`password`] hashes passwords, [`throttle`] slows down guessing, [`login_throttle`] does that
//! for logins, [`provider`] reaches directories elsewhere, [`cross_site`] and [`browser`] protect a
//! browser's login from pages of other sites.
//! An [`Authenticate`], which a feature implements, finds the user of a token.

pub mod browser;
pub mod credential;
pub mod cross_site;
pub mod login_throttle;
pub mod password;
pub mod provider;
pub mod secret;
pub mod throttle;
pub mod token;

#[cfg(test)]
mod tests;

use std::time::SystemTime;

use futures::future::BoxFuture;

pub use credential::{Presented, TokenSource, read_credential};
pub use login_throttle::LoginThrottle;
pub use password::Passwords;
pub use provider::IdentityProvider;
pub use secret::Secret;
pub use throttle::Throttle;
pub use token::{TokenKey, generate_key, hash_key, random_text, verify_key};

/// The user, or program of a user, behind a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Object name of the user: `u-abcde`.
    pub user_id: String,
    /// The name that the user types at login; empty for users without a local login.
    pub login_name: String,
    /// The name that others see.
    pub display_name: String,
    /// Ids of the user at identity providers: `local://u-abcde`.
    pub principal_ids: Vec<String>,
    /// Principal ids of the user's groups.
    pub groups: Vec<String>,
    /// Name of the token that was presented.
    pub token_id: String,
    /// The only cluster that the token is valid for, when it is bound to one.
    pub cluster: Option<String>,
    /// The only project that the token is valid for, as `<cluster>:<project>`, when it is bound to
    /// one. It is valid in the namespaces of the project and nowhere else.
    pub project: Option<String>,
    /// The provider of the login that the token comes from.
    pub auth_provider: String,
    /// When the token expires; `None`: never.
    pub expires_at: Option<SystemTime>,
}

/// Why a credential is invalid. The client gets 401 in every case; the log may say more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("no such token")]
    Unknown,
    #[error("the key does not match the token")]
    WrongKey,
    #[error("the token has expired; log in again")]
    Expired,
    #[error("the token is disabled")]
    Disabled,
    #[error("the user is disabled or deleted")]
    NoUser,
}

/// Finds the user of a credential.
pub trait Authenticate: Send + Sync + 'static {
    /// Returns the user of the token. Implementations use memory where they can; a token is valid
    /// as soon as it was created.
    ///
    /// # Errors
    /// The token is not valid; respond with 401.
    fn authenticate<'a>(
        &'a self,
        presented: &'a Presented,
    ) -> BoxFuture<'a, Result<Identity, Refused>>;
}
