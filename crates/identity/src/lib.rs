//! Passwords, tokens and the person behind a request. Knows no kind and keeps no state but
//! attempts.
//!
//! [`credential`] reads what a request presents, [`token`] makes and compares token keys,
//! [`password`] hashes passwords, [`throttle`] slows guessing down, [`login_throttle`] that of logins, [`cross_site`] and
//! [`browser`] keep other sites' pages away from a browser's login. Whose token it is says an [`Authenticate`], which a
//! feature implements.

pub mod browser;
pub mod credential;
pub mod cross_site;
pub mod login_throttle;
pub mod password;
pub mod secret;
pub mod throttle;
pub mod token;

#[cfg(test)]
mod tests;

use std::time::SystemTime;

use futures::future::BoxFuture;

pub use credential::{Presented, Source, presented};
pub use login_throttle::LoginThrottle;
pub use password::Passwords;
pub use secret::Secret;
pub use throttle::Throttle;
pub use token::{TokenKey, generate_key, hash_key, random_text, verify_key};

/// The person, or program of a person, behind a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Object name of the user: `u-abcde`.
    pub user_id: String,
    pub login_name: String,
    pub display_name: String,
    /// Where the person is known: `local://u-abcde`.
    pub principal_ids: Vec<String>,
    /// Principal ids of the person's groups.
    pub groups: Vec<String>,
    /// Name of the token presented.
    pub token_id: String,
    /// The only cluster the token is good for, when it is bound to one.
    pub cluster: Option<String>,
    pub auth_provider: String,
    pub expires_at: Option<SystemTime>,
}

/// Why a credential does not hold. The client is told 401 whatever it is; the log may say more.
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
    #[error("the user is disabled or gone")]
    NoUser,
}

/// Finds out whose credential it is.
pub trait Authenticate: Send + Sync + 'static {
    /// Answers from memory where it can; a token made a moment ago holds at once.
    fn authenticate<'a>(
        &'a self,
        presented: &'a Presented,
    ) -> BoxFuture<'a, Result<Identity, Refused>>;
}
