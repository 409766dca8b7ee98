//! Identity providers outside of this server: who somebody is there, and in which groups.
//!
//! An [`IdentityProvider`] checks names and passwords, finds people and groups, and reads the
//! groups of somebody anew. [`ldap`] is the one for OpenLDAP, FreeIPA and Active Directory. A
//! [`CodeProvider`] lets people log in on pages of its own; [`oidc`] is the one for OpenID Connect,
//! [`azure_ad`], [`github`] and [`google`] are those of services with an API of their own.
//! The providers here keep nothing but what they read: a change of the configuration makes a new
//! one.

pub mod azure_ad;
pub mod github;
pub mod google;
mod http;
pub mod ldap;
mod oauth;
pub mod oidc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::BoxFuture;
use hmac::{Hmac, KeyInit, Mac};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::secret::Secret;

/// Where browsers come back to from a provider's pages: the path that is registered there.
pub const CALLBACK_PATH: &str = "/verify-auth";
/// Another one, which applications in Entra ID have registered for Rancher.
pub const AZURE_CALLBACK_PATH: &str = "/verify-auth-azure";

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

impl Refreshed {
    /// What a provider's answer means that reads users by itself; `None` is a user it has not.
    fn of(read: Result<Option<Person>, ProviderError>) -> Self {
        match read {
            Ok(Some(person)) => Self::Known(person),
            Ok(None) | Err(ProviderError::Wrong) => Self::Gone,
            Err(ProviderError::Disabled) => Self::Disabled,
            Err(error) => Self::Unavailable(error.to_string()),
        }
    }
}

/// A field of a configuration that is not right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub field: &'static str,
    /// What it must be; goes after the name of the field.
    pub text: String,
}

/// The provider whose user has this principal id, and the user's id there.
pub fn provider_of_user(id: &str) -> Option<(&str, &str)> {
    id.split_once("_user://")
}

/// The configuration in an object, whose other fields do not count. What is null or empty has its
/// default.
fn config_in<T: DeserializeOwned>(object: &Value) -> Result<T, Vec<Problem>> {
    let mut fields = object.as_object().cloned().unwrap_or_default();
    fields.retain(|_, value| !value.is_null() && value != "");
    serde_json::from_value(Value::Object(fields)).map_err(|error| {
        vec![Problem { field: "", text: format!("the configuration is malformed: {error}") }]
    })
}

/// Who can be found at a provider.
pub trait Principals: Send + Sync + 'static {
    /// Users and groups that `text` may mean, of one kind or of both; at most some hundred.
    /// `grant`: that of the user who searches, for providers that show more to users.
    ///
    /// # Errors
    /// The provider does not respond or its configuration is not right.
    fn search<'a>(
        &'a self,
        text: &'a str,
        kind: Option<PrincipalKind>,
        grant: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Vec<Principal>, ProviderError>>;

    /// The principal with this id, if the provider has it.
    ///
    /// # Errors
    /// Like [`Self::search`].
    fn principal<'a>(
        &'a self,
        id: &'a str,
        grant: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Option<Principal>, ProviderError>>;
}

/// A provider that checks names and passwords.
pub trait IdentityProvider: Principals {
    /// Checks the name and password. An empty password is refused before anything is sent.
    ///
    /// # Errors
    /// See [`ProviderError`].
    fn authenticate<'a>(
        &'a self,
        username: &'a str,
        password: &'a Secret,
    ) -> BoxFuture<'a, Result<Person, ProviderError>>;

    /// Reads the user with this principal id anew.
    fn refresh<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Refreshed>;
}

/// One login through the pages of a provider. A code is good for the attempt that it was made for
/// only.
#[derive(Clone, Debug)]
pub struct CodeAttempt {
    /// Comes back with the code.
    pub state: String,
    /// Comes back within what the code is exchanged for.
    pub nonce: Secret,
    /// Known to this server alone until the code is exchanged: 43 to 128 characters.
    pub verifier: Secret,
}

impl CodeAttempt {
    /// The attempt that rests on `secret`, which nobody else can guess. `purpose` begins its state,
    /// so that what comes back says what it is for. The secret cannot be derived from any part.
    pub fn of(secret: &Secret, purpose: &str) -> Self {
        let part = |name: &str| {
            let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes())
                .expect("HMAC takes keys of any length");
            mac.update(name.as_bytes());
            URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
        };
        Self {
            state: format!("{purpose}{}", part("state")),
            nonce: Secret::new(part("nonce")),
            verifier: Secret::new(part("verifier")),
        }
    }

    /// Whether the state that came back is that of this attempt.
    pub fn is_state(&self, state: &str) -> bool {
        self.state.as_bytes().ct_eq(state.as_bytes()).into()
    }
}

/// Who logged in.
#[derive(Clone, Debug)]
pub struct CodeLogin {
    pub person: Person,
    /// With it the user can be read anew later; absent if the provider gives none.
    pub grant: Option<Secret>,
}

/// What a browser comes back with.
#[derive(Clone, Debug)]
pub struct ReturnedCode {
    pub code: Secret,
    /// Who says to have made it (RFC 9207), if anybody does.
    pub issuer: Option<String>,
}

/// A provider on whose pages people log in; their browser comes back with a code.
pub trait CodeProvider: Principals {
    /// Where the browser logs in.
    ///
    /// # Errors
    /// The provider does not respond or its configuration is not right.
    fn login_url<'a>(
        &'a self,
        attempt: &'a CodeAttempt,
    ) -> BoxFuture<'a, Result<String, ProviderError>>;

    /// Where the browser comes back to: a URL of this server.
    fn callback(&self) -> &str;

    /// Exchanges the code that came back for who logged in.
    ///
    /// # Errors
    /// [`ProviderError::Wrong`] for a code that is not of this attempt or provider, or was used
    /// before.
    fn redeem<'a>(
        &'a self,
        attempt: &'a CodeAttempt,
        code: &'a ReturnedCode,
    ) -> BoxFuture<'a, Result<CodeLogin, ProviderError>>;

    /// Reads the user with this principal id anew, and gives the grant for the next time if it is
    /// another one. `grant`: that of the last login, if there is one.
    fn refresh<'a>(
        &'a self,
        user: &'a str,
        grant: Option<&'a Secret>,
    ) -> BoxFuture<'a, (Refreshed, Option<Secret>)>;
}
