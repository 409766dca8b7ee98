//! Identity providers outside of this server: who somebody is there, and in which groups.
//!
//! An [`IdentityProvider`] checks names and passwords, finds people and groups, and reads the
//! groups of somebody anew. [`ldap`] is the one for OpenLDAP, FreeIPA and Active Directory. The
//! providers here have no state: a change of the configuration makes a new one.

pub mod ldap;

use futures::future::BoxFuture;

use crate::secret::Secret;

/// Whether a principal is a user or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrincipalKind {
    User,
    Group,
}

/// A user or a group, as a provider knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// `<provider>_user://<id there>` or `<provider>_group://<id there>`.
    pub id: String,
    pub kind: PrincipalKind,
    /// The name that others see.
    pub display_name: String,
    /// The name that a user types at login; for a group, its name.
    pub login_name: String,
}

/// Somebody whom a provider authenticated or still knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    pub user: Principal,
    /// Sorted by id, without duplicates.
    pub groups: Vec<Principal>,
}

/// Why a provider did not do what it was called for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// Unknown user, wrong password, or none at all: callers cannot distinguish them.
    #[error("authentication failed")]
    Wrong,
    /// The provider knows the user, and has disabled the account.
    #[error("the account is disabled")]
    Disabled,
    /// The provider does not respond, or failed. May pass; says nothing about the user.
    #[error("{0}")]
    Unavailable(String),
    /// The configuration is not right: its field, and what to do.
    #[error("{field}: {text}")]
    Misconfigured { field: &'static str, text: String },
}

/// What a provider says about somebody who logged in earlier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refreshed {
    Known(Person),
    /// The provider responded, and has no such user.
    Gone,
    Disabled,
    /// Nothing is known; change nothing. The cause is for the log.
    Unavailable(String),
}

/// A provider that checks names and passwords.
pub trait IdentityProvider: Send + Sync + 'static {
    /// Checks the name and password. An empty password is refused before anything is sent.
    ///
    /// # Errors
    /// See [`ProviderError`].
    fn authenticate<'a>(
        &'a self,
        username: &'a str,
        password: &'a Secret,
    ) -> BoxFuture<'a, Result<Person, ProviderError>>;

    /// Users and groups that `text` may mean, of one kind or of both; at most some hundred.
    ///
    /// # Errors
    /// The provider does not respond or its configuration is not right.
    fn search<'a>(
        &'a self,
        text: &'a str,
        kind: Option<PrincipalKind>,
    ) -> BoxFuture<'a, Result<Vec<Principal>, ProviderError>>;

    /// The principal with this id, if the provider has it.
    ///
    /// # Errors
    /// Like [`Self::search`].
    fn principal<'a>(
        &'a self,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Principal>, ProviderError>>;

    /// Reads the user with this principal id anew.
    fn refresh<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Refreshed>;
}
